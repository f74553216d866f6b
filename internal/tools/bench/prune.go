package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// The part growth also prunes its database, while a reader asks.
const (
	readEvery  = 20 * time.Millisecond // between the questions of the reader while a database is pruned
	keptEighth = 8                     // of the updates an eighth stays
)

// pruned is how long pruning took, and the longest question meanwhile.
type pruned struct{ seconds, longest []float64 } // longest in ms

// prune measures what it takes to prune a database that has grown, while a daemon runs and somebody reads.
func (h *harness) prune(ctx context.Context, url, ledger string, g *grown) (err error) {
	daemon, err := h.programs.start(ctx, "indexer", url, "run", "--ledger-url="+ledger, "--listen=")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, daemon.stop()) }()
	n := g.data.Len()
	last := g.data.Offset(n - n/keptEighth - 1)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var longest time.Duration
	group, groupCtx := errgroup.WithContext(reading)
	group.Go(func() (err error) {
		longest, err = readOn(groupCtx, url)
		return err
	})
	u, err := h.programs.run(ctx, "indexer", url, "prune", fmt.Sprintf("--before=%d", last+1), "--apply")
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	h.say("pruned %d of %d updates in %v; the longest question took %v", n-n/keptEighth, n, u.wall, longest)
	g.pruned.seconds = append(g.pruned.seconds, u.wall.Seconds())
	g.pruned.longest = append(g.pruned.longest, milliseconds(longest))
	return nil
}

// readOn asks for the latest creations again and again until ctx ends, and returns the longest time that an answer
// took.
func readOn(ctx context.Context, url string) (longest time.Duration, err error) {
	whole := context.WithoutCancel(ctx)
	conn, err := pgx.Connect(whole, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(whole)
	for ctx.Err() == nil {
		began := time.Now()
		if _, err := conn.Exec(whole, "SELECT c.contract_id, c.payload FROM ledger.created_events c ORDER BY "+
			"c.ledger_offset DESC LIMIT 10"); err != nil {
			return 0, err
		}
		longest = max(longest, time.Since(began))
		_ = sleep(ctx, readEvery) // until then, or until pruning has ended
	}
	return longest, nil
}

func (h *harness) reportPruned(g *grown) {
	n := g.data.Len()
	h.target(target{what: fmt.Sprintf("pruning %s updates to the last %s", thousands(float64(n)),
		thousands(float64(n/keptEighth))),
		measured: median(g.pruned.seconds), wanted: 60, atMost: true, unit: "s"})
	h.add(section{title: "Pruning", notes: []string{fmt.Sprintf("The database that has grown is pruned to its last %s "+
		"updates in %.0f s, while a daemon runs and a reader asks for the latest creations every %v: the longest of its "+
		"questions takes %.0f ms.",
		thousands(float64(n/keptEighth)), median(g.pruned.seconds), readEvery, median(g.pruned.longest))}})
}
