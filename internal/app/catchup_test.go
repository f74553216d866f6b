package app

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// roughly disturbs one answer in `often`, by a seed, in each of the ways in which a participant or a proxy does.
func roughly(seed uint64, often int) func(*http.Request) *sandbox.Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	return func(*http.Request) *sandbox.Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(often) > 0 {
			return nil
		}
		switch random.IntN(6) {
		case 0:
			return &sandbox.Fault{Reset: true}
		case 1:
			return &sandbox.Fault{Cut: 1 + random.IntN(20_000)}
		case 2:
			return &sandbox.Fault{Status: http.StatusTooManyRequests, ContentType: "text/plain", Body: "slow down"}
		case 3:
			return &sandbox.Fault{Status: http.StatusServiceUnavailable, ContentType: "text/plain", Body: "not now"}
		case 4:
			return &sandbox.Fault{Status: http.StatusBadGateway, ContentType: "text/html", Body: "<html>away</html>"}
		}
		return &sandbox.Fault{Stall: time.Duration(random.IntN(100)) * time.Millisecond}
	}
}

// ahead is how many ranges are stored and not shown.
func ahead(t *testing.T, databaseURL string) (n int) {
	t.Helper()
	require.NoError(t, sessions(t, databaseURL).QueryRow(t.Context(),
		"SELECT count(*) FROM indexer.coverage WHERE from_exclusive >= coalesce((SELECT ledger.latest_offset()), 0)").Scan(&n))
	return n
}

// Killed with SIGKILL at any point of a catch-up, and started again, with a participant that fails now and then: what
// was stored ahead is used, nothing is lost and nothing is there twice.
func TestKilledWhileCatchingUp(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	for name, c := range map[string]struct {
		options sandbox.ServerOptions
		updates int // more than three full answers, which are 200 and 2,000: fewer are not caught up with
	}{
		"lists": {sandbox.ServerOptions{Version: "3.4", ListLimit: 25, Latency: 5 * time.Millisecond}, 1000},
		"pages": {sandbox.ServerOptions{Version: "3.5", Latency: 5 * time.Millisecond}, 6500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l := sandbox.NewLedger(sandbox.Options{Seed: 51, ActiveShare: 0.3})
			l.Grow(c.updates)
			options := c.options
			options.Fault = roughly(52, 30)
			database := throwaway.Migrated(t, migrate)
			env := []string{"INDEXER_DATABASE_URL=" + database, "INDEXER_LEDGER_URL=" + serve(t, l, options), "INDEXER_LISTEN=", deltas}
			kills := killUntilDone(t, rand.New(rand.NewPCG(53, 0)), env, build(t, "indexer"), "run", "--until-current")
			require.Positive(t, kills)
			require.Zero(t, ahead(t, database))
			want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: options.Version}, l.End())
			require.Empty(t, sandbox.Diff(want, relations(t, database)))
			require.Equal(t, 1, count(t, database, "ledger.coverage"), "coverage below the watermark is one row")
		})
	}
}

// Neither background tasks nor a catch-up together exceed what the participant is to be asked for.
func TestMaxRequestsBoundsEverything(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 54})
	l.Grow(800)
	var mu sync.Mutex
	now, most := 0, 0
	server := newSwitchable(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("stream_idle_timeout_ms") { // a long poll
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() {
				mu.Lock()
				now--
				mu.Unlock()
			}()
		}
		sandbox.NewServer(l, sandbox.ServerOptions{Version: "3.4", ListLimit: 25, Latency: 2 * time.Millisecond}).ServeHTTP(w, r)
	}))
	cfg := indexerFor(throwaway.Migrated(t, migrate), server.URL, defaultScope())
	cfg.Pace, cfg.VerifyRate, cfg.LookupRate = config.Pace{MaxRequests: 3}, 100_000, 100
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 3, most)
}
