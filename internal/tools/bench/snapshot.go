package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// snapshot measures how fast a database is seeded with the active contracts.
func (h *harness) snapshot(ctx context.Context) (err error) {
	data, path, err := h.dataset(fmt.Sprintf("snapshot-%d", h.Contracts),
		func(name string) error { return buildSnapshot(ctx, name, h.Contracts) })
	if err != nil {
		return err
	}
	run := func() (usage, error) { return h.seed(ctx, path, data) }
	o := copied{what: "snapshot backfill, contracts/s", unit: "contracts", n: data.Elements, run: run, least: 0.85,
		places: ofSnapshot}
	s, limits, err := h.againstCopy(ctx, o)
	if err != nil {
		return err
	}
	seconds := float64(data.Elements) / median(s.rate)
	h.add(section{title: "Snapshot", table: copyTable(o, s, limits), notes: []string{
		fmt.Sprintf("`backfill` of %s active contracts with %s bytes of JSON each, on average, from a server with pages; "+
			"against psql COPY of its carried rows and the active set. Seeding takes %v.", thousands(float64(data.Elements)),
			thousands(float64(data.Bytes)/float64(data.Elements)),
			time.Duration(seconds*float64(time.Second)).Round(100*time.Millisecond)),
	}})
	return nil
}

// seed runs the backfill into a new database.
func (h *harness) seed(ctx context.Context, path string, data *dataset) (u usage, err error) {
	server, err := startServer(ctx, serveOptions{Kind: serveSnapshot, Data: path})
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	url, err := h.prepared(ctx)
	if err != nil {
		return u, err
	}
	if u, err = h.run(ctx, "backfill", url, "--ledger-url="+server.url); err != nil {
		return u, err
	}
	_, err = h.db.holds(ctx, data.Rows)
	return u, err
}

// copied is a run to measure against psql COPY of the same rows.
type copied struct {
	what   string // with its unit
	unit   string
	n      int64    // how many of them
	places []string // of the rows that psql writes: see takeLimit
	run    func() (usage, error)
	least  float64
}

// againstCopy runs it and psql in alternation. There is a ratio for each round.
func (h *harness) againstCopy(ctx context.Context, o copied) (s *samples, limits *samples, err error) {
	s, limits = &samples{}, &samples{}
	var l *limit
	if h.Limit {
		if _, err := o.run(); err != nil {
			return nil, nil, err
		}
		if l, err = takeLimit(ctx, h.db, filepath.Join(h.folder, "limit"), o.places); err != nil {
			return nil, nil, err
		}
		defer func() { err = errors.Join(err, l.remove()) }()
	}
	for i := range h.Runs {
		h.say("round %d of %d", i+1, h.Runs)
		if l != nil {
			took, err := l.write(ctx)
			if err != nil {
				return nil, nil, fmt.Errorf("limit: %w", err)
			}
			limits.add(o.n, run{usage: took})
			h.say("limit: %.0f %s/s, %.2f s of PostgreSQL's CPU for 100,000", last(limits.rate), o.unit, last(limits.server))
		}
		u, err := o.run()
		if err != nil {
			return nil, nil, err
		}
		s.add(o.n, run{usage: u})
		if l != nil {
			s.ratio = append(s.ratio, last(s.rate)/last(limits.rate))
		}
		h.say("ours: %.0f %s/s, %.2f s of CPU for 100,000 (PostgreSQL %.2f), %.0f MiB", last(s.rate), o.unit, last(s.cpu),
			last(s.server), last(s.peak))
	}
	if l != nil {
		h.target(target{what: o.what + " to the limit", measured: median(s.ratio), wanted: o.least, digits: 2})
	}
	return s, limits, nil
}

// copyTable returns the table of againstCopy's results.
func copyTable(o copied, s, limits *samples) [][]string {
	table := [][]string{{"", o.unit + "/s", "to the limit", "CPU s for 100,000", "PostgreSQL's", "peak MiB"}}
	ours := cells("ours", thousands(median(s.rate)), "", cell("%.2f", median(s.cpu)), cell("%.2f", median(s.server)),
		cell("%.0f", median(s.peak)))
	if len(limits.rate) > 0 {
		table = append(table, cells("the limit: psql COPY, two connections", thousands(median(limits.rate)), "1.00", "",
			cell("%.2f", median(limits.server)), ""))
		ours[2] = cell("%.2f", median(s.ratio))
	}
	return append(table, ours)
}
