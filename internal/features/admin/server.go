package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

// Limits on the endpoints for probes and metrics.
const (
	// checkTimeout limits each readiness check.
	checkTimeout = 2 * time.Second
	// maxClients is how many connections are answered at a time on an address; others wait until one ends. An idle one
	// does after idleTimeout: a client that asks again connects again.
	maxClients  = 32
	idleTimeout = 10 * time.Second
)

// Check tries a connection.
type Check struct {
	Name string // what it connects to, such as "database"
	Try  func(context.Context) error
}

// Health reports whether the daemon is alive and ready. A process is ready if it leads or stands by for each of its
// streams, and everything that they need is reachable.
type Health struct {
	checks []Check

	mu      sync.Mutex
	streams []string // in the order of the report
	states  map[string]StreamState
}

// StreamState is the state of a stream in this process.
type StreamState struct {
	Stream string // as named in health
	State  State
	Ready  bool
	Text   string // the state in words, such as "waiting for a snapshot to be finished"
}

// NewHealth returns a Health of these streams, none of which is ready. The checks run with each request.
func NewHealth(streams []string, checks ...Check) *Health {
	h := &Health{checks: checks, states: map[string]StreamState{}}
	for _, stream := range streams {
		h.Add(stream)
	}
	return h
}

// Add adds a stream, which is not ready.
func (h *Health) Add(stream string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams = append(h.streams, stream)
	h.states[stream] = StreamState{Stream: stream, State: Waits, Text: "starting"}
}

// Set sets the state of a stream, whether that is ready, and what it is in words, such as "leading" or "waiting for a
// snapshot to be finished". It reports whether anything has changed.
func (h *Health) Set(stream string, state State, ready bool, text string) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := StreamState{Stream: stream, State: state, Ready: ready, Text: text}
	changed = h.states[stream] != now
	h.states[stream] = now
	return changed
}

// States returns the states of all streams.
func (h *Health) States() (list []StreamState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, stream := range h.streams {
		list = append(list, h.states[stream])
	}
	return list
}

// check returns the lines of the answer.
func (h *Health) check(ctx context.Context) (ready bool, lines []string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	ready = true
	h.mu.Lock()
	for _, stream := range h.streams {
		state := h.states[stream]
		ready = ready && state.Ready
		lines = append(lines, stream+": "+state.Text)
	}
	h.mu.Unlock()
	var answers []<-chan error
	for _, c := range h.checks {
		answers = append(answers, ask(ctx, c.Try))
	}
	for i, c := range h.checks {
		var err error
		select {
		case err = <-answers[i]:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", checkTimeout)
		}
		if err != nil {
			ready = false
			lines = append(lines, fmt.Sprintf("%s: %v", c.Name, err))
		} else {
			lines = append(lines, c.Name+": reachable")
		}
	}
	return ready, lines
}

// ask runs a check in the background, so that one that ignores its context delays nobody.
func ask(ctx context.Context, check func(context.Context) error) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- check(ctx) }()
	return answer
}

// Probes answers /healthz, /readyz and /metrics. public returns a text without what not everybody may read: errors of
// servers name parties.
func Probes(health *Health, metrics *Metrics, public func(text string) string) *http.ServeMux {
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
			fmt.Fprintln(w, public(line))
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.gathered, promhttp.HandlerOpts{Registry: metrics.registry}))
	return mux
}

// Serve answers requests on listener until ctx ends. What goes wrong with a connection is logged.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	return serveUntil(ctx, listener, logger, &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: idleTimeout,
	})
}

// serveUntil serves on listener until ctx ends, to so many clients at a time that the process has files left for its
// own connections.
func serveUntil(ctx context.Context, listener net.Listener, logger *slog.Logger, server *http.Server) error {
	server.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	listener = netutil.LimitListener(listener, maxClients)
	var stopping sync.WaitGroup
	stopping.Go(func() {
		<-ctx.Done()
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(shutdown) != nil {
			_ = server.Close() // cut off clients that stay connected
		}
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	stopping.Wait()
	return nil
}
