package app

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
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
	cfg.RequestLimits, cfg.VerifyRate, cfg.LookupRate = config.RequestLimits{MaxRequests: 3}, 100_000, 100
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 3, most)
}
