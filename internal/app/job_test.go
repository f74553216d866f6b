package app

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// PostgreSQL is killed under backfills that read, and comes back after they have lost the lead: they continue, and
// their end is as if nothing had been.
func TestBackfillsOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	postgres := throwaway.LocalServer(t, throwaway.Options{})
	require.NoError(t, postgres.CreateDatabase(t.Context(), "ledger"))
	database := postgres.URL("ledger")
	l := sandbox.NewLedger(sandbox.Options{Seed: 12})
	l.Grow(300)
	at := quietOffset(t, l)
	var mu sync.Mutex
	lease := store.LeaseUpdates // whose leader loses the database with its next request; empty: nobody
	ledgerURL := serve(t, l, sandbox.ServerOptions{StrictInterface: true, ListLimit: 40, Fault: func(*http.Request) *sandbox.Fault {
		mu.Lock()
		defer mu.Unlock()
		if lease != "" && leads(t, database, lease) {
			lease = ""
			_ = postgres.Kill() // else the job ends, and does not lose the lead
		}
		return nil
	}})
	outlives := func(job func(*slog.Logger) error) {
		t.Helper()
		log, done := &journal{}, make(chan error, 1)
		go func() { done <- job(log.logger()) }()
		eventually(t, "the lead to be lost", func() bool {
			select {
			case err := <-done:
				t.Fatalf("it ended: %v", err)
			default:
			}
			return len(log.lines(t, "the lead was lost; continuing if nobody else has it")) > 0
		})
		log.wait(t, "retrying")
		require.NoError(t, postgres.Restart(t.Context()))
		require.NoError(t, <-done)
	}

	require.NoError(t, migrate(t.Context(), database))
	seed := backfillFor(database, ledgerURL, defaultScope(), at)
	seed.Restart = true
	outlives(func(logger *slog.Logger) error {
		_, err := RunBackfill(t.Context(), seed, logger, nil)
		return err
	})
	truth := sandbox.Scope{Shape: sandbox.ACSDelta}
	begun := l.TruthFromSnapshot(truth, at, at)
	require.Empty(t, sandbox.Diff(begun, relations(t, database)))
}

// A lead that is lost again and again is taken again with longer and longer waits: each term ends the sessions of the
// one before.
func TestALeadThatIsLostAgainAndAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		j := job[lostLead]{take: func(context.Context) (lostLead, bool, error) { return lostLead{}, true, nil }, logger: slog.New(slog.DiscardHandler)}
		terms := 0
		err := j.run(ctx, func(context.Context, lostLead, func(ledger.Progress)) error {
			terms++
			return store.ErrNotLeader
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Greater(t, terms, 60)
		require.Less(t, terms, 600)
	})
}

// lostLead is the writer of a term that ends as it begins.
type lostLead struct{}

func (lostLead) Lost() <-chan struct{} {
	lost := make(chan struct{})
	close(lost)
	return lost
}

func (lostLead) Err() error                                            { return store.ErrNotLeader }
func (lostLead) RecordProgress(context.Context, ledger.Progress) error { return nil }
func (lostLead) Close()                                                {}

// leads reports whether a process has, or had, a lease.
func leads(t *testing.T, database string, lease store.Lease) (led bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(t.Context()) }()
	err = conn.QueryRow(t.Context(), "SELECT holder IS NOT NULL FROM indexer.leadership WHERE lease = $1", string(lease)).Scan(&led)
	return err == nil && led
}
