package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// The part network measures how fast the updates of a network are indexed.
const (
	networkMost  = 1000 // updates of a page
	networkLeast = 0.85 // ratio to the limit
)

// networkUpdate is what is read of an update that a Scan service sends.
type networkUpdate struct {
	ID         string    `json:"update_id"`
	Migration  int64     `json:"migration_id"`
	RecordTime time.Time `json:"record_time"`
	Event      struct {
		Migration int64 `json:"migration_id"`
	} `json:"event"` // of a reassignment
}

// eachNetworkUpdate calls add with the updates of a network, as its Scan service sends them, until there are no more or
// it returns false.
func eachNetworkUpdate(ctx context.Context, scan *sandbox.Scan, add func(offset int64, id string,
	raw []byte) bool) error {
	after := ""
	for {
		answer, err := ask(ctx, scan, pathUpdates, fmt.Sprintf(`{"page_size":%d%s}`, networkMost, after))
		if err != nil {
			return err
		}
		var page struct {
			Updates []json.RawMessage `json:"transactions"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return fmt.Errorf("read the simulated server's page: %w", err)
		}
		for _, raw := range page.Updates {
			var u networkUpdate
			if err := json.Unmarshal(raw, &u); err != nil {
				return fmt.Errorf("read an update of the simulated server: %w", err)
			}
			migration := max(u.Migration, u.Event.Migration)
			offset, err := ledger.NetworkOffset(migration, ledger.Time{Time: u.RecordTime, Valid: true})
			if err != nil {
				return err
			}
			if !add(int64(offset), u.ID, raw) {
				return nil
			}
			after = fmt.Sprintf(`,"after":{"after_migration_id":%d,"after_record_time":%q}`, migration,
				u.RecordTime.Format("2006-01-02T15:04:05.000000Z"))
		}
		if len(page.Updates) < networkMost || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// buildNetwork makes a data set of the first n updates of a network.
func buildNetwork(ctx context.Context, name string, n int) error {
	return build(name, countNetworkUpdate, func(b *builder) error {
		l := sandbox.NewLedger(sandbox.Options{Seed: seed, EventsPerUpdate: catchupEvents})
		for shown := -1; shown < n; { // a network shows some of a ledger's updates
			l.Grow(max(2*n, l.Len()/2))
			shown = 0
			if err := eachNetworkUpdate(ctx, sandbox.NewScan(l, sandbox.ScanOptions{}), func(int64, string, []byte) bool {
				shown++
				return shown < n
			}); err != nil {
				return err
			}
		}
		return eachNetworkUpdate(ctx, sandbox.NewScan(l, sandbox.ScanOptions{}), func(offset int64, _ string,
			raw []byte) bool {
			b.add(offset, raw)
			b.Last = offset
			return b.Elements < int64(n)
		})
	})
}

func countNetworkUpdate(rows map[string]int64, raw []byte) (events int64, err error) {
	u, err := ledger.DecodeNetworkUpdate(raw, "")
	return countRows(rows, &u), err
}

// network measures how fast the updates of a network are read, alone and beside those of a participant.
func (h *harness) network(ctx context.Context) (err error) {
	data, path, err := h.dataset(fmt.Sprintf("network-%d", h.Updates),
		func(name string) error { return buildNetwork(ctx, name, h.Updates) })
	if err != nil {
		return err
	}
	participant, participantPath, err := h.updates(ctx, updatesOptions{N: h.Updates, Events: catchupEvents,
		Shape: sandbox.ACSDelta})
	if err != nil {
		return err
	}
	sources := []source{
		{serveOptions{Kind: serveUpdates, Data: participantPath, Pages: true}, h.db.pair, participant.Rows, participant.Last},
		{serveOptions{Kind: serveNetwork, Data: path}, config.NetworkSchemas, data.Rows, data.Last},
	}
	var l *limit
	if h.Limit {
		if _, err := h.indexAll(ctx, sources[1:]); err != nil {
			return err
		}
		if l, err = takeLimit(ctx, h.db.of(config.NetworkSchemas), filepath.Join(h.folder, "limit"), ofFacts); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.remove()) }()
	}
	bulk := filepath.Join(h.folder, "bulk")
	if err := writeBulk(bulk, data); err != nil {
		return fmt.Errorf("write bulk files: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bulk)) }()
	var s networkSamples
	for i := range h.Runs {
		h.say("round %d of %d", i+1, h.Runs)
		if l != nil {
			took, err := l.writeAndProject(ctx)
			if err != nil {
				return fmt.Errorf("limit: %w", err)
			}
			s.limits.add(data.Elements, run{usage: took})
		}
		n, err := h.indexAll(ctx, sources[1:])
		if err != nil {
			return err
		}
		p, err := h.indexAll(ctx, sources[:1])
		if err != nil {
			return err
		}
		both, err := h.indexAll(ctx, sources)
		if err != nil {
			return fmt.Errorf("both ledgers: %w", err)
		}
		files, err := h.loadBulk(ctx, bulk, data)
		if err != nil {
			return fmt.Errorf("bulk files: %w", err)
		}
		s.add(participant, data, p, n, both, files)
		h.say("network: %.0f updates/s, %.0f beside the participant, %.0f from bulk files; participant: %.0f, %.0f beside "+
			"the network",
			last(s.updates.rate), last(s.besideUpdates.rate), last(s.files.rate), last(s.participant.rate),
			last(s.besideParticipant.rate))
	}
	h.reportNetwork(data, &s)
	return nil
}

// networkSamples are what the rounds measured. Rates of updates are those until all of them were visible.
type networkSamples struct {
	limits, updates, records, participant  samples
	files                                  samples // bulk files, read from disk
	both, besideUpdates, besideParticipant samples // the two ledgers at once
}

// add adds what a round measured of each ledger alone, of both at once, and of the network's from bulk files.
func (s *networkSamples) add(participant, network *dataset, p, n, both, files run) {
	until := func(visible time.Duration) run { return run{usage: usage{wall: visible}} }
	s.updates.add(network.Elements, until(n.visible[0]))
	s.records.add(network.Elements, n)
	s.files.add(network.Elements, files)
	s.participant.add(participant.Elements, until(p.visible[0]))
	s.both.add(participant.Elements+network.Elements, both)
	s.both.times = append(s.both.times, both.wall.Seconds()/(p.wall+n.wall).Seconds())
	s.besideParticipant.add(participant.Elements, until(both.visible[0]))
	s.besideUpdates.add(network.Elements, until(both.visible[1]))
	s.besideParticipant.ratio = append(s.besideParticipant.ratio, last(s.besideParticipant.rate)/last(s.participant.rate))
	s.besideUpdates.ratio = append(s.besideUpdates.ratio, last(s.besideUpdates.rate)/last(s.updates.rate))
	if len(s.limits.rate) > 0 {
		s.updates.ratio = append(s.updates.ratio, last(s.updates.rate)/last(s.limits.rate))
		s.files.ratio = append(s.files.ratio, last(s.files.rate)/last(s.limits.rate))
	}
}

func (h *harness) reportNetwork(data *dataset, s *networkSamples) {
	table := [][]string{{"", "updates/s", "to the limit", "to alone", "CPU s for 100,000", "PostgreSQL's", "peak MiB"}}
	ratio, ofFiles := "", ""
	if len(s.limits.rate) > 0 {
		table = append(table, cells("**the limit**: psql COPY, two connections, with the projection",
			thousands(median(s.limits.rate)), "1.00", "", "",
			cell("%.2f", median(s.limits.server)), ""))
		ratio, ofFiles = cell("%.2f", median(s.updates.ratio)), cell("%.2f", median(s.files.ratio))
		h.target(target{what: "updates of a network to the limit", measured: median(s.updates.ratio), wanted: networkLeast,
			digits: 2})
	}
	seen := func(what string, s *samples, toLimit, toAlone string) {
		table = append(table, cells(what, thousands(median(s.rate)), toLimit, toAlone, "", "", ""))
	}
	whole := func(what string, s *samples, toLimit string) {
		table = append(table, cells(what, thousands(median(s.rate)), toLimit, "", cell("%.2f", median(s.cpu)),
			cell("%.2f", median(s.server)), cell("%.0f", median(s.peak))))
	}
	seen("until all updates are visible", &s.updates, ratio, "")
	whole("and all records that follow from them", &s.records, "")
	whole("from bulk files on disk, without the records", &s.files, ofFiles)
	seen("a participant's, until all are visible", &s.participant, "", "")
	seen("the network's beside the participant's", &s.besideUpdates, "", cell("%.2f", median(s.besideUpdates.ratio)))
	seen("the participant's beside the network's", &s.besideParticipant, "",
		cell("%.2f", median(s.besideParticipant.ratio)))
	whole("both together, with the records", &s.both, "")
	h.add(section{title: "Updates of a network", table: table, notes: []string{
		shapeOf(data) + " A service gives pages of 1,000, a participant pages of 2,000. With `--until-current` the records " +
			"are derived when all updates are there.",
		fmt.Sprintf("Both ledgers at once in one database take %.2f of the time that one takes after the other.",
			median(s.both.times)),
	}})
}

// writeAndProject writes the rows and what follows from them.
func (l *limit) writeAndProject(ctx context.Context) (u usage, err error) {
	copied, err := l.write(ctx)
	if err != nil {
		return u, err
	}
	projected, err := l.project(ctx, 0)
	return usage{wall: copied.wall + projected.wall, postgres: copied.postgres + projected.postgres}, err
}
