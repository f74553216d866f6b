package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

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

// eachNetworkUpdate calls add with the updates of a network, as its Scan service sends them, until there are no more or it returns false.
func eachNetworkUpdate(ctx context.Context, scan *sandbox.Scan, add func(offset int64, id string, raw []byte) bool) error {
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
			after = fmt.Sprintf(`,"after":{"after_migration_id":%d,"after_record_time":%q}`, migration, u.RecordTime.Format("2006-01-02T15:04:05.000000Z"))
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
		return eachNetworkUpdate(ctx, sandbox.NewScan(l, sandbox.ScanOptions{}), func(offset int64, _ string, raw []byte) bool {
			b.add(offset, raw)
			b.Last = offset
			return b.Elements < int64(n)
		})
	})
}

// countNetworkUpdate adds the rows that an update of a network must leave.
func countNetworkUpdate(rows map[string]int64, raw []byte) (events int64) {
	created, exercised := count(raw, `"event_type":"created_event"`), count(raw, `"event_type":"exercised_event"`)
	assigned, reassigned := count(raw, `"created_event":{`), count(raw, `"unassign_id":`)
	rows["updates"]++
	rows["created"] += created
	rows["exercised"] += exercised
	rows["reassignments"] += reassigned
	return created + exercised + reassigned - assigned
}

// network measures how fast the updates of a network are read, alone and beside those of a participant.
func (h *harness) network(ctx context.Context) (err error) {
	data, path, err := h.dataset(fmt.Sprintf("network-%d", h.Updates), func(name string) error { return buildNetwork(ctx, name, h.Updates) })
	if err != nil {
		return err
	}
	participant, participantPath, err := h.updates(ctx, updatesOptions{N: h.Updates, Events: catchupEvents, Shape: sandbox.ACSDelta})
	if err != nil {
		return err
	}
	own := h.db.pair
	defer func() { h.db.pair = own }()
	var l *limit
	if h.Limit {
		h.db.pair = config.NetworkSchemas
		if _, err := h.readNetwork(ctx, path, data); err != nil {
			return err
		}
		if l, err = takeLimit(ctx, h.db, filepath.Join(h.folder, "limit"), ofFacts); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.remove()) }()
	}
	var limits, updates, records, both samples
	for i := range h.Runs {
		h.say("round %d of %d", i+1, h.Runs)
		h.db.pair = config.NetworkSchemas
		if l != nil {
			took, err := l.writeAndProject(ctx)
			if err != nil {
				return fmt.Errorf("limit: %w", err)
			}
			limits.add(data.Elements, run{usage: took})
		}
		n, err := h.readNetwork(ctx, path, data)
		if err != nil {
			return err
		}
		updates.add(data.Elements, run{usage: usage{wall: n.updates}})
		records.add(data.Elements, run{usage: n.usage})
		if l != nil {
			updates.ratio = append(updates.ratio, last(updates.rate)/last(limits.rate))
		}
		h.db.pair = own
		alone, err := h.index(ctx, serveOptions{Kind: serveUpdates, Data: participantPath, Pages: true}, participant.Rows)
		if err != nil {
			return err
		}
		together, err := h.readBoth(ctx, participantPath, path, participant, data)
		if err != nil {
			return fmt.Errorf("both ledgers: %w", err)
		}
		both.add(participant.Elements+data.Elements, run{usage: together})
		both.times = append(both.times, together.wall.Seconds()/(alone.wall+n.wall).Seconds())
		h.say("network: %.0f updates/s, %.0f with the records; both ledgers: %.0f updates/s, in %.2f of the time of one after the other",
			last(updates.rate), last(records.rate), last(both.rate), last(both.times))
	}
	h.reportNetwork(data, &limits, &updates, &records, &both)
	return nil
}

func (h *harness) reportNetwork(data *dataset, limits, updates, records, both *samples) {
	table := [][]string{{"", "updates/s", "to the limit", "CPU s for 100,000", "PostgreSQL's", "peak MiB"}}
	ratio := ""
	if len(limits.rate) > 0 {
		table = append(table, cells("**the limit**: psql COPY, two connections, with the projection", thousands(median(limits.rate)), "1.00", "", cell("%.2f", median(limits.server)), ""))
		ratio = cell("%.2f", median(updates.ratio))
		h.target(target{what: "updates of a network to the limit", measured: median(updates.ratio), wanted: networkLeast, digits: 2})
	}
	line := func(what string, s *samples, ratio string) {
		table = append(table, cells(what, thousands(median(s.rate)), ratio, cell("%.2f", median(s.cpu)), cell("%.2f", median(s.server)), cell("%.0f", median(s.peak))))
	}
	table = append(table, cells("until all updates are visible", thousands(median(updates.rate)), ratio, "", "", ""))
	line("and all records that follow from them", records, "")
	line("both ledgers at once on one database, the participant's from pages", both, "")
	h.add(section{title: "Updates of a network", table: table, notes: []string{
		shapeOf(data) + " A service gives pages of 1,000. With `--until-current` the records are derived when all updates are there.",
		fmt.Sprintf("Both ledgers at once take %.2f of the time that one takes after the other.", median(both.times)),
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

// networkRun is a run over all updates of a network.
type networkRun struct {
	usage
	updates time.Duration // until all of them were visible
}

// readNetwork runs the indexer over the updates of a network into a new database, until the records that follow from them are there too.
func (h *harness) readNetwork(ctx context.Context, path string, data *dataset) (r networkRun, err error) {
	server, err := startServer(ctx, serveOptions{Kind: serveNetwork, Data: path})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	url, err := h.prepared(ctx)
	if err != nil {
		return r, err
	}
	seen := make(chan time.Duration, 1)
	look, stop := context.WithCancel(ctx)
	defer stop()
	go func() { seen <- whenVisible(look, url, data.Last) }()
	args := append([]string{"run", "--scan-url=" + server.url, "--scan-history=updates", "--until-current", "--listen="}, h.IndexerFlag...)
	if r.usage, err = h.run(ctx, "indexer", url, args...); err != nil {
		return r, err
	}
	time.AfterFunc(timeout, stop)
	if r.updates = <-seen; r.updates == 0 {
		return r, errors.New("the last update did not become visible")
	}
	_, err = h.db.holds(ctx, data.Rows)
	return r, err
}

// whenVisible returns after what time the update at an offset is visible; 0: ctx ended before.
func whenVisible(ctx context.Context, url string, offset int64) time.Duration {
	began := time.Now()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for at := int64(0); sleep(ctx, 2*lookEvery) == nil; {
		if err := conn.QueryRow(ctx, "SELECT coalesce(network.latest_offset(), 0)").Scan(&at); err != nil {
			return 0
		}
		if at >= offset {
			return time.Since(began)
		}
	}
	return 0
}

// readBoth runs the indexer over a participant's updates and those of a network at once, into one new database.
func (h *harness) readBoth(ctx context.Context, participantPath, networkPath string, participant, network *dataset) (u usage, err error) {
	servers := map[string]*server{}
	for kind, path := range map[string]string{serveUpdates: participantPath, serveNetwork: networkPath} {
		s, err := startServer(ctx, serveOptions{Kind: kind, Data: path, Pages: true})
		if err != nil {
			return u, err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		servers[kind] = s
	}
	url, err := h.prepared(ctx, config.NetworkSchemas)
	if err != nil {
		return u, err
	}
	args := []string{"run", "--ledger-url=" + servers[serveUpdates].url, "--scan-url=" + servers[serveNetwork].url, "--scan-history=updates", "--until-current", "--listen="}
	if u, err = h.run(ctx, "indexer", url, append(args, h.IndexerFlag...)...); err != nil {
		return u, err
	}
	own := h.db.pair
	defer func() { h.db.pair = own }()
	for pair, data := range map[store.Schemas]*dataset{own: participant, config.NetworkSchemas: network} {
		h.db.pair = pair
		if _, err = h.db.holds(ctx, data.Rows); err != nil {
			return u, err
		}
	}
	return u, nil
}
