package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/config"
	"ledgerindexer/store"
)

// The part tail measures how long an update takes from the ledger to a reader, at the ledger's end.
const (
	lookEvery = 5 * time.Millisecond // between queries for the visible offset
	idleFor   = time.Minute          // how long requests are counted while nothing happens
	timeout   = time.Minute          // for what should take a moment
)

// tailRate is a rate of updates, and its minimal duration.
type tailRate struct {
	perSecond float64
	atLeast   time.Duration
}

// A minute at a low rate is too short to see what delays one update in a hundred: at 5/s 1,000 visible updates are
// needed.
var tailRates = []tailRate{{1, 0}, {5, 220 * time.Second}, {10, 0}, {100, 0}, {1000, 0}, {3000, 0}}

// followed is a ledger whose end is followed.
type followed struct {
	title, of string // of the report and of the targets
	server    string // the kind of server
	flags     []string
	pair      store.Schemas
	idle      float64 // requests a minute at most where nothing happens
	p50       float64 // ms at most
}

// tail measures the time from an update's arrival at the participant until its row is visible, and the requests to an
// idle one.
func (h *harness) tail(ctx context.Context) error {
	return h.tailOf(ctx, followed{title: "Tail", server: serveGrowing, flags: []string{"--ledger-url="}, pair: h.db.pair,
		idle: 150, p50: 100})
}

// networkTail measures the same of a network's updates. A Scan service has no request that waits for news.
func (h *harness) networkTail(ctx context.Context) error {
	return h.tailOf(ctx, followed{title: "Tail of a network", of: " of a network", server: serveScan,
		flags: []string{"--scan-history=updates", "--scan-url="},
		pair:  config.NetworkSchemas, idle: 60, p50: 150})
}

func (h *harness) tailOf(ctx context.Context, of followed) (err error) {
	table := [][]string{{"updates/s", "updates", "p50 ms", "p99 ms", "longest ms", "requests/s"}}
	f, err := h.follow(ctx, of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	asked, err := f.idle(ctx)
	if err != nil {
		return err
	}
	h.say("idle: %.0f requests a minute", asked)
	for _, rate := range tailRates {
		lasted := max(h.TailTime, rate.atLeast)
		took, requests, err := f.measure(ctx, rate.perSecond, lasted)
		if err != nil {
			return fmt.Errorf("%.0f updates/s: %w", rate.perSecond, err)
		}
		p50, p99 := milliseconds(percentile(took, 50)), milliseconds(percentile(took, 99))
		perSecond := float64(requests) / lasted.Seconds()
		h.say("%.0f updates/s: p50 %.0f ms, p99 %.0f ms of %d, %.1f requests/s", rate.perSecond, p50, p99, len(took),
			perSecond)
		table = append(table, cells(thousands(rate.perSecond), thousands(float64(len(took))), cell("%.0f", p50),
			cell("%.0f", p99),
			cell("%.0f", milliseconds(percentile(took, 100))), cell("%.1f", perSecond)))
		what := fmt.Sprintf("from the server having an update%s to its row being visible, %s updates/s", of.of,
			thousands(rate.perSecond))
		h.target(target{what: what + ": p50", measured: p50, wanted: of.p50, atMost: true, unit: "ms"})
		if len(took) < 100 {
			continue // its p99 would be the longest
		}
		h.target(target{what: what + ": p99", measured: p99, wanted: 250, atMost: true, unit: "ms"})
	}
	h.target(target{what: "requests a minute where the ledger" + of.of + " is idle", measured: asked, wanted: of.idle,
		atMost: true})
	h.add(section{title: of.title, table: table, notes: []string{fmt.Sprintf("From when the server has an update until "+
		"a reader in SQL sees it. Updates come independently of each other, for %v at each rate, and at 5 a second for "+
		"long enough that there "+
		"are 1,000; a reader looks every %v. A ledger where nothing happens is asked %.0f times a minute.", h.TailTime,
		lookEvery, asked)}})
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// follower is an indexer that follows a ledger that grows.
type follower struct {
	h       *harness
	of      followed
	server  *server
	indexer *running
	conn    *pgx.Conn
}

// follow starts a server and an indexer that has caught up with it.
func (h *harness) follow(ctx context.Context, of followed) (_ *follower, err error) {
	f := &follower{h: h, of: of}
	if f.server, err = startServer(ctx, serveOptions{Kind: of.server}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	url, err := h.db.fresh(ctx)
	if err != nil {
		return nil, err
	}
	args := append(append([]string{"run", "--listen="}, of.flags...), h.IndexerFlag...)
	args[1+len(of.flags)] += f.server.url
	cmd, err := h.programs.command(ctx, "indexer", url, append(args, "--until-current", "--verify-rate=0")...)
	if err != nil {
		return nil, err
	}
	if _, err := measure(cmd); err != nil { // creates the schema and indexes the ledger so far
		return nil, err
	}
	if f.indexer, err = h.programs.start(ctx, "indexer", url, args...); err != nil {
		return nil, err
	}
	if f.conn, err = pgx.Connect(ctx, url); err != nil {
		return nil, err
	}
	return f, nil
}

// stop ends everything, the indexer as an operator would.
func (f *follower) stop() (err error) {
	if f.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		err = f.conn.Close(ctx)
	}
	if f.indexer != nil {
		err = errors.Join(err, f.indexer.stop())
	}
	return errors.Join(err, f.server.stop())
}

// idle counts the requests of a minute in which nothing happens.
func (f *follower) idle(ctx context.Context) (perMinute float64, err error) {
	if err := sleep(ctx, 5*time.Second); err != nil { // wait for its start
		return 0, err
	}
	before, err := f.server.stats(ctx)
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, idleFor); err != nil {
		return 0, err
	}
	after, err := f.server.stats(ctx)
	return float64(after.total()-before.total()) / idleFor.Minutes(), err
}

// measure lets the ledger grow for a while. It returns how long each update took to be visible, and the number of
// requests meanwhile.
func (f *follower) measure(ctx context.Context, perSecond float64,
	d time.Duration) (took []time.Duration, requests int64, err error) {
	before, err := f.server.stats(ctx)
	if err != nil {
		return nil, 0, err
	}
	var arrived []arrival
	grown := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(grown)
		return f.server.get(groupCtx, fmt.Sprintf("%s?rate=%g&for=%s", pathGrow, perSecond, d), &arrived)
	})
	var seen []arrival
	group.Go(func() (err error) {
		seen, err = f.look(groupCtx, grown, &arrived)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	after, err := f.server.stats(ctx)
	if err != nil {
		return nil, 0, err
	}
	stored, err := queryOne[int](ctx, f.h.db, "SELECT count(*) FROM "+f.of.pair.Tables+".updates WHERE ledger_offset "+
		"BETWEEN $1 AND $2",
		arrived[0].Offset, arrived[len(arrived)-1].Offset)
	if err != nil {
		return nil, 0, err
	}
	if stored != len(arrived) {
		return nil, 0, fmt.Errorf("%d updates were served and %d are in the database", len(arrived), stored)
	}
	return delays(arrived, seen), after.total() - before.total(), nil
}

// look notes each advance of the visible offset. It ends when grown is closed and the last arrived update is visible.
func (f *follower) look(ctx context.Context, grown <-chan struct{}, arrived *[]arrival) (seen []arrival, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	at, last := int64(-1), int64(-1)
	for last < 0 || at < last {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-grown:
			if len(*arrived) == 0 {
				return nil, errors.New("nothing arrived: measure longer")
			}
			last, grown = (*arrived)[len(*arrived)-1].Offset, nil
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, errors.New("the last updates do not become visible"))
			defer cancel()
		case <-tick.C:
		}
		var now int64
		if err := f.conn.QueryRow(ctx, "SELECT "+f.of.pair.Views+".latest_offset()").Scan(&now); err != nil {
			return nil, err
		}
		if now > at {
			at = now
			seen = append(seen, arrival{Offset: now, At: time.Now()})
		}
	}
	return seen, nil
}

// delays returns for each update the time from its arrival until it was visible. Both lists are in order.
func delays(arrived, seen []arrival) []time.Duration {
	var took []time.Duration
	for _, a := range arrived {
		for len(seen) > 0 && seen[0].Offset < a.Offset {
			seen = seen[1:]
		}
		if len(seen) == 0 {
			break
		}
		took = append(took, seen[0].At.Sub(a.At))
	}
	return took
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
