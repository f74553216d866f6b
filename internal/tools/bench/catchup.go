package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ledgerindexer/sandbox"
)

// The part catchup measures how fast a database catches up with a ledger.
const (
	// catchupEvents is the events of an update in the shape of ledger effects, on average.
	catchupEvents = 2
	// sequentialUpdates is how many updates the baseline reads at most: its rate does not depend on it.
	sequentialUpdates = 20_000
)

// variant is a server to catch up with.
type variant struct {
	name    string
	what    string
	pages   bool
	latency time.Duration
	least   float64 // ratio to the limit
}

var variants = []variant{
	{name: "lists", what: "lists of 200, 0 ms a request", least: 0.85},
	{name: "lists-20ms", what: "lists of 200, 20 ms a request", latency: 20 * time.Millisecond, least: 0.80},
	{name: "pages", what: "pages of 2,000, 0 ms a request", pages: true, least: 0.90},
	{name: "pages-20ms", what: "pages of 2,000, 20 ms a request", pages: true, latency: 20 * time.Millisecond,
		least: 0.85},
}

func variantNames() []string {
	var names []string
	for _, v := range variants {
		names = append(names, v.name)
	}
	return names
}

// samples are the results of repeated runs.
type samples struct {
	rate   []float64 // per second
	ratio  []float64 // to the limit of the same round, projection included
	plain  []float64 // to the limit without the projection
	times  []float64 // to the baseline
	cpu    []float64 // seconds for 100,000
	server []float64 // of the database server, likewise
	peak   []float64 // MiB
	asked  []float64 // requests for 100,000
	answer []float64 // MB for 100,000
}

func (s *samples) add(n int64, r run) {
	per := 100_000 / float64(n)
	s.rate = append(s.rate, rate(n, r.wall))
	s.cpu = append(s.cpu, r.cpu.Seconds()*per)
	s.server = append(s.server, r.postgres.Seconds()*per)
	s.peak = append(s.peak, float64(r.peak)/(1<<20))
	s.asked = append(s.asked, float64(r.asked.total())*per)
	s.answer = append(s.answer, float64(r.asked.Bytes)/1e6*per)
}

// rate returns n per second.
func rate(n int64, took time.Duration) float64 { return float64(n) / took.Seconds() }

// catchupResult holds the results of the rounds of a catch-up.
type catchupResult struct {
	data       *dataset
	servers    map[string]*samples // by the variant's name
	copied     samples             // of the limit: without the projection
	projected  samples             // and with it
	sequential []float64           // of the baseline
	disk       []relationSize
}

// catchup measures how fast everything that a ledger has is indexed.
func (h *harness) catchup(ctx context.Context) (err error) {
	data, path, err := h.updates(ctx, updatesOptions{N: h.Updates, Events: catchupEvents, Shape: sandbox.ACSDelta})
	if err != nil {
		return err
	}
	var l *limit
	r := &catchupResult{data: data, servers: map[string]*samples{}}
	if h.Limit {
		run, err := h.index(ctx, serveOptions{Kind: serveUpdates, Data: path, Pages: true}, data.Rows)
		if err != nil {
			return err
		}
		if r.disk, _, err = h.db.sizes(ctx, run.rows); err != nil {
			return err
		}
		if l, err = takeLimit(ctx, h.db, filepath.Join(h.folder, "limit"), ofFacts); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.remove()) }()
	}
	for i := range h.Runs {
		h.say("round %d of %d", i+1, h.Runs)
		if err := h.catchupRound(ctx, path, l, r); err != nil {
			return err
		}
	}
	h.reportCatchup(r)
	return nil
}

// catchupRound runs everything once, in alternation.
func (h *harness) catchupRound(ctx context.Context, path string, l *limit, r *catchupResult) error {
	n := r.data.Elements
	if l != nil {
		copied, err := l.write(ctx)
		if err != nil {
			return fmt.Errorf("limit: %w", err)
		}
		projected, err := l.project(ctx, 0)
		if err != nil {
			return fmt.Errorf("limit: %w", err)
		}
		r.copied.add(n, run{usage: copied})
		r.projected.add(n, run{usage: usage{wall: copied.wall + projected.wall,
			postgres: copied.postgres + projected.postgres}})
		h.say("limit: %.0f updates/s, with the projection %.0f, %.2f s of PostgreSQL's CPU for 100,000", last(r.copied.rate),
			last(r.projected.rate),
			last(r.projected.server))
	}
	if l != nil && !h.isApart {
		took, err := h.baseline(ctx, path, r.data)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		r.sequential = append(r.sequential, took)
		h.say("the baseline: %.0f updates/s", took)
	}
	for _, v := range variants {
		if len(h.Servers) > 0 && !slices.Contains(h.Servers, v.name) {
			continue
		}
		run, err := h.index(ctx, serveOptions{Kind: serveUpdates, Data: path, Pages: v.pages, Latency: v.latency},
			r.data.Rows)
		if err != nil {
			return fmt.Errorf("%s: %w", v.what, err)
		}
		s := r.servers[v.name]
		if s == nil {
			s = &samples{}
			r.servers[v.name] = s
		}
		s.add(n, run)
		if l != nil {
			s.plain = append(s.plain, last(s.rate)/last(r.copied.rate))
			s.ratio = append(s.ratio, last(s.rate)/last(r.projected.rate))
		}
		if len(r.sequential) > 0 {
			s.times = append(s.times, last(s.rate)/last(r.sequential))
		}
		h.say("%s: %.0f updates/s, %.2f s of CPU for 100,000 (PostgreSQL %.2f), %.0f MiB, %.0f requests for 100,000", v.what,
			last(s.rate), last(s.cpu),
			last(s.server), last(s.peak), last(s.asked))
	}
	return nil
}

func last(values []float64) float64 { return values[len(values)-1] }

// baseline returns the rate at which the baseline reads the beginning of a ledger.
func (h *harness) baseline(ctx context.Context, path string, data *dataset) (perSecond float64, err error) {
	server, err := startServer(ctx, serveOptions{Kind: serveUpdates, Data: path})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	url, err := h.db.fresh(ctx)
	if err != nil {
		return 0, err
	}
	n := min(sequentialUpdates, data.Len())
	took, err := sequential(ctx, server.url, url, sandbox.Scope{}.UpdateFormat(), data.Offset(n-1))
	if err != nil {
		return 0, err
	}
	stored, err := queryOne[int](ctx, h.db, "SELECT count(*) FROM updates")
	if err == nil && stored != n {
		err = fmt.Errorf("it stored %d updates of %d", stored, n)
	}
	return rate(int64(n), took), err
}

func (h *harness) reportCatchup(r *catchupResult) {
	table := [][]string{{"server", "updates/s", "events/s", "to the limit", "to COPY alone", "to the baseline",
		"CPU s for 100,000", "PostgreSQL's", "peak MiB",
		"requests for 100,000", "MB for 100,000"}}
	events := float64(r.data.Events) / float64(r.data.Elements)
	line := func(what string, perSecond float64, others ...string) {
		table = append(table, append(cells(what, thousands(perSecond), thousands(perSecond*events)), others...))
	}
	limited := len(r.copied.rate) > 0
	if limited {
		line("psql COPY, two connections, without the projection", median(r.copied.rate), "", "1.00", "", "",
			cell("%.2f", median(r.copied.server)), "", "", "")
		line("**the limit**: with the projection", median(r.projected.rate), "1.00", "", "", "",
			cell("%.2f", median(r.projected.server)), "", "", "")
	}
	if len(r.sequential) > 0 {
		line("the baseline: sequential, row by row", median(r.sequential), "", "", "1.0", "", "", "", "", "")
	}
	peak := 0.0
	for _, v := range variants {
		s := r.servers[v.name]
		if s == nil {
			continue
		}
		peak = max(peak, median(s.peak))
		ratios := cells("", "", "")
		if limited {
			ratios = cells(cell("%.2f", median(s.ratio)), cell("%.2f", median(s.plain)), "")
			h.target(target{what: "catch-up to the limit: " + v.what, measured: median(s.ratio), wanted: v.least, digits: 2})
		}
		if len(s.times) > 0 {
			ratios[2] = cell("%.1f", median(s.times))
		}
		line(v.what, median(s.rate), append(ratios, cell("%.2f", median(s.cpu)), cell("%.2f", median(s.server)),
			cell("%.0f", median(s.peak)), cell("%.0f", median(s.asked)),
			cell("%.0f", median(s.answer)))...)
	}
	h.add(section{title: "Catch-up", table: table, notes: []string{shapeOf(r.data)}})
	if h.isApart {
		return
	}
	if s := r.servers["lists"]; s != nil {
		if len(s.times) > 0 {
			h.target(target{what: "catch-up to a sequential row-by-row loop", measured: median(s.times), wanted: 10, digits: 1})
		}
		h.target(target{what: "CPU of the indexer for 100,000 updates", measured: median(s.cpu), wanted: 2, atMost: true,
			unit: "s", digits: 2})
	}
	if peak > 0 {
		h.target(target{what: "peak resident memory of the indexer, catch-up at full speed", measured: peak, wanted: 150,
			atMost: true, unit: "MiB"})
	}
	if limited {
		h.reportDisk(r)
	}
}

// reportDisk reports the size of a catch-up's rows on disk.
func (h *harness) reportDisk(r *catchupResult) {
	table := [][]string{{"table", "rows", "MB", "MB of indexes", "bytes for an event"}}
	var total int64
	for _, s := range r.disk {
		total += s.table + s.indexes
		if s.rows > 0 {
			table = append(table, cells(s.name, thousands(float64(s.rows)), cell("%.1f", float64(s.table)/1e6),
				cell("%.1f", float64(s.indexes)/1e6),
				thousands(float64(s.table+s.indexes)/float64(r.data.Events))))
		}
	}
	ratio := float64(total) / float64(r.data.Bytes)
	h.target(target{what: "bytes on disk, with indexes, to bytes of JSON", measured: ratio, wanted: 0.8, atMost: true,
		digits: 2})
	h.add(section{title: "Disk", table: table, notes: []string{fmt.Sprintf("What the catch-up leaves, with all indexes: "+
		"%s bytes for an event, %.2f of the JSON that was received.", thousands(float64(total)/float64(r.data.Events)),
		ratio)}})
}

// shapeOf describes the data of a measurement.
func shapeOf(d *dataset) string {
	return fmt.Sprintf("%s updates with %.2f events and %s bytes of JSON each, on average.",
		thousands(float64(d.Elements)),
		float64(d.Events)/float64(d.Elements), thousands(float64(d.Bytes)/float64(d.Elements)))
}
