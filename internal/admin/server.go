package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTimeout is how long a readiness check waits for the database and the ledger.
const checkTimeout = 2 * time.Second

// Health answers whether the daemon is alive and ready. Ready is a process that leads or stands by, with database
// and ledger in reach.
type Health struct {
	// Database and Ledger try the connection.
	Database, Ledger func(context.Context) error

	mu    sync.Mutex
	ready bool
	state string
}

// NewHealth makes a Health that is not ready.
func NewHealth(database, ledger func(context.Context) error) *Health {
	return &Health{Database: database, Ledger: ledger, state: "starting"}
}

// Set says what the daemon does, such as "leading" or "waiting for a snapshot to be finished", and whether that is
// what it is there for. It reports whether that is news.
func (h *Health) Set(ready bool, state string) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = h.ready != ready || h.state != state
	h.ready, h.state = ready, state
	return changed
}

// check returns the lines of the answer.
func (h *Health) check(ctx context.Context) (ready bool, lines []string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	h.mu.Lock()
	ready, lines = h.ready, []string{h.state}
	h.mu.Unlock()
	database, participant := ask(ctx, h.Database), ask(ctx, h.Ledger)
	for _, c := range []struct {
		name   string
		answer <-chan error
	}{{"database", database}, {"ledger", participant}} {
		var err error
		select {
		case err = <-c.answer:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", checkTimeout)
		}
		if err != nil {
			ready = false
			lines = append(lines, fmt.Sprintf("%s: %v", c.name, err))
		} else {
			lines = append(lines, c.name+": reachable")
		}
	}
	return ready, lines
}

// ask runs a check beside the others. Nobody has to wait for one that does not heed its context.
func ask(ctx context.Context, check func(context.Context) error) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- check(ctx) }()
	return answer
}

// Serve answers on listener until ctx ends.
func Serve(ctx context.Context, listener net.Listener, health *Health, metrics *Metrics) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "alive")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ready, lines := health.check(r.Context())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "not ready")
		} else {
			fmt.Fprintln(w, "ready")
		}
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.registry, promhttp.HandlerOpts{Registry: metrics.registry}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(shutdown) != nil {
			_ = server.Close() // cuts off a client that does not let go
		}
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	<-stopped
	return nil
}
