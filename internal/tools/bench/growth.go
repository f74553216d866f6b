package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"ledgerindexer/sandbox"
)

// The part growth measures a large database, of this size, beside a small one.
const (
	growthBase  = 100_000    // updates that are made; those of the whole ledger are copies
	growthFirst = 10_000_000 // offset: all others have as many digits
	holdFor     = 2 * time.Minute
)

// growth measures whether a large database takes updates as fast as a small one, while a reader holds a snapshot.
func (h *harness) growth(ctx context.Context) error {
	base := min(growthBase, h.Growth)
	data, path, err := h.updates(ctx, updatesOptions{N: base, Events: 1, Shape: sandbox.ACSDelta, First: growthFirst})
	if err != nil {
		return err
	}
	g := grown{data: newCopies(data, max(h.Growth/data.Len(), 1), later{})}
	for i := range h.Runs {
		h.say("round %d of %d", i+1, h.Runs)
		if err := h.grow(ctx, path, &g); err != nil {
			return err
		}
	}
	h.reportGrowth(&g)
	h.reportPruned(&g)
	return nil
}

// grown is what was measured while databases grew.
type grown struct {
	data  *copies
	whole samples
	rates [][]float64      // of each run's tenths
	rows  map[string]int64 // of the last run's database
	size  int64            // of it, in bytes

	pruned pruned
}

// grow measures it once.
func (h *harness) grow(ctx context.Context, path string, g *grown) (err error) {
	server, err := startServer(ctx, serveOptions{Kind: serveCopies, Data: path, Pages: true, Copies: g.data.n})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	url, err := h.prepared(ctx)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	group, groupCtx := errgroup.WithContext(watching)
	var seen []arrival
	group.Go(func() (err error) {
		seen, err = watch(groupCtx, url, h.say)
		return err
	})
	group.Go(func() error { return hold(groupCtx, url) })
	began := time.Now()
	args := append([]string{"run", "--ledger-url=" + server.url, "--until-current", "--verify-rate=0", "--listen="},
		h.IndexerFlag...)
	u, err := h.programs.run(ctx, "indexer", url, args...)
	ended := time.Now()
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	served := map[string]int64{}
	for table, rows := range g.data.data.Rows {
		served[table] = rows * int64(g.data.n)
	}
	if g.rows, err = h.db.holds(ctx, served); err != nil {
		return err
	}
	if _, g.size, err = h.db.sizes(ctx, nil); err != nil {
		return err
	}
	seen = append([]arrival{{Offset: growthFirst - 1, At: began}},
		append(seen, arrival{Offset: g.data.End(), At: ended})...)
	g.rates = append(g.rates, tenths(g.data, seen))
	g.whole.add(int64(g.data.Len()), run{usage: u})
	return h.prune(ctx, url, server.url, g)
}

// watch notes each advance of the offset visible to readers, until ctx ends.
func watch(ctx context.Context, url string, say func(format string, args ...any)) (seen []arrival, err error) {
	conn, err := pgx.Connect(context.WithoutCancel(ctx), url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	said := time.Now()
	for at := int64(growthFirst); ; {
		select {
		case <-ctx.Done():
			return seen, nil
		case <-tick.C:
		}
		var now *int64 // NULL before anything is indexed
		if err := conn.QueryRow(context.WithoutCancel(ctx), "SELECT ledger.latest_offset()").Scan(&now); err != nil {
			return nil, err
		}
		if now != nil && *now > at {
			at = *now
			seen = append(seen, arrival{Offset: at, At: time.Now()})
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			say("growth: offset %d is visible", at)
		}
	}
}

// hold keeps read transactions with a snapshot of the database open for minutes each, until ctx ends.
func hold(ctx context.Context, url string) error {
	conn, err := pgx.Connect(context.WithoutCancel(ctx), url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		tx, err := conn.BeginTx(context.WithoutCancel(ctx), pgx.TxOptions{IsoLevel: pgx.RepeatableRead,
			AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		var n int64
		err = tx.QueryRow(context.WithoutCancel(ctx), "SELECT count(*) FROM ledger.stream_checkpoints").Scan(&n)
		if err != nil {
			return err
		}
		_ = sleep(ctx, holdFor) // until then, or until there is nothing more to read
		if err := tx.Rollback(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// tenths returns the rate, in updates a second, of each tenth of the elements, from what readers saw. Between two
// observations the rate is taken as constant. seen begins below the first element and ends with the last one.
func tenths(data sandbox.Elements, seen []arrival) []float64 {
	when := func(n int) time.Time { // the first n elements were visible
		if n == 0 {
			return seen[0].At
		}
		offset := data.Offset(n - 1)
		i := 1
		for i < len(seen)-1 && seen[i].Offset < offset {
			i++
		}
		a, b := seen[i-1], seen[i]
		part := float64(offset-a.Offset) / float64(b.Offset-a.Offset)
		return a.At.Add(time.Duration(part * float64(b.At.Sub(a.At))))
	}
	var rates []float64
	for i := range 10 {
		from, to := data.Len()*i/10, data.Len()*(i+1)/10
		rates = append(rates, rate(int64(to-from), when(to).Sub(when(from))))
	}
	return rates
}

func (h *harness) reportGrowth(g *grown) {
	title := []string{"tenth of the updates", "updates/s"}
	for i := range g.rates {
		title = append(title, fmt.Sprintf("run %d", i+1))
	}
	table := [][]string{title}
	for tenth := range 10 {
		rates := g.of(tenth)
		row := cells(fmt.Sprintf("%d", tenth+1), thousands(median(rates)))
		for _, r := range rates {
			row = append(row, thousands(r))
		}
		table = append(table, row)
	}
	var ratios []float64
	for _, rates := range g.rates {
		ratios = append(ratios, rates[9]/rates[0])
	}
	n := float64(g.data.Len())
	h.target(target{what: fmt.Sprintf("growth: the last tenth of %s updates to the first one", thousands(n)),
		measured: median(ratios), wanted: 0.85, digits: 2})
	took := time.Duration(n / median(g.whole.rate) * float64(time.Second))
	h.add(section{title: "Growth", table: table, notes: []string{
		fmt.Sprintf("%s updates with %.2f events and %s bytes of JSON each, on average, from a server with pages, in %v; "+
			"%s contracts were created and %s are active at the end. All the while a reader holds a snapshot, a new one "+
			"every %v. The indexer took %.2f s of CPU for 100,000 updates and %.0f MiB at most; the database is %.1f GB.",
			thousands(n), float64(g.data.data.Events)/float64(g.data.data.Elements),
			thousands(float64(g.data.data.Bytes)/float64(g.data.data.Elements)), took.Round(time.Second),
			thousands(float64(g.rows["created"])), thousands(float64(g.rows["active_contracts"])), holdFor,
			median(g.whole.cpu), median(g.whole.peak), float64(g.size)/1e9),
	}})
}

// of returns the rates of a tenth in each run.
func (g *grown) of(tenth int) (rates []float64) {
	for _, run := range g.rates {
		rates = append(rates, run[tenth])
	}
	return rates
}
