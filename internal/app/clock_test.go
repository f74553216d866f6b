package app

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// The clock of the database's server is set forth and back by a day while a daemon writes and another
// stands by. Nobody waits for that day: one leads, the other takes over when it ends, and the database holds
// what the ledger shows.
func TestTheClockOfTheDatabaseIsSet(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a server with a clock of its own, and has daemons take the lead again")
	server := throwaway.LocalServer(t, throwaway.Options{Clock: true})
	require.NoError(t, server.CreateDatabase(t.Context(), "clock"))
	database := server.URL("clock")
	require.NoError(t, migrate(t.Context(), database))
	w := begunWorldIn(t, database, 97, sandbox.ServerOptions{Version: "3.6"}, "acs-delta")
	_, err := RunBackfill(t.Context(), backfillFor(w.database, w.ledgerURL, w.scope, w.at), testLogger(t), nil)
	require.NoError(t, err)

	cfg := indexerFor(w.database, w.ledgerURL, w.scope)
	cfg.Listen, cfg.VerifyRate = "127.0.0.1:0", 100_000
	daemons, logs := [2]*running{}, [2]journal{}
	for i := range daemons {
		daemons[i] = startLogged(t, cfg, logs[i].logger())
	}
	// leader waits until one leads, and the other stands by.
	leader := func() (leads int) {
		t.Helper()
		eventually(t, "one that leads, and one that stands by", func() bool {
			leads = -1
			stands := 0
			for i := range logs {
				status, body := readiness(t, &logs[i])
				switch {
				case status != http.StatusOK:
				case strings.Contains(body, "updates: leading"):
					leads = i
				case strings.Contains(body, "updates: standing by"):
					stands++
				}
			}
			return leads >= 0 && stands == 1
		})
		return leads
	}
	leader()
	waitFor(t, w.database, lastUpdate(w.ledger))

	const day = 24 * time.Hour
	conn := open(t, w.database)
	for _, ahead := range []time.Duration{day, 0, -day, -2 * day, 0, -day} {
		// What the daemon writes waits for a lock while the clock is set.
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "LOCK TABLE indexer.created IN SHARE MODE")
		require.NoError(t, err)
		w.ledger.Grow(20)
		eventuallyIn(t, w.database, "it waiting", `EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.datname = current_database() AND NOT l.granted AND l.relation = 'indexer.created'::regclass)`)
		require.NoError(t, server.SetClock(ahead))
		require.NoError(t, tx.Rollback(t.Context()))
		w.ledger.Grow(5)
		waitFor(t, w.database, lastUpdate(w.ledger))
		leader()
	}
	require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT (clock_timestamp() < $1)::text", time.Now().Add(-day/2)), "the server's clock is behind")

	ends := leader()
	require.NoError(t, daemons[ends].finish())
	w.ledger.Grow(20)
	waitFor(t, w.database, lastUpdate(w.ledger))
	require.NoError(t, daemons[1-ends].finish())
	for i := range logs {
		require.Empty(t, logs[i].lines(t, differs))
	}
	w.requireBegunAt(t, w.at)
}
