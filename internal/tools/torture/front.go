package torture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"ledgerindexer/sandbox"
)

// front is a server's address. The server can be away for a while, and its answers can be disturbed.
type front struct {
	address string
	refused atomic.Int64 // answers 401

	mu      sync.Mutex
	handler http.Handler
	server  *http.Server  // nil: nobody listens
	gone    chan struct{} // closed when server has ended
	next    *sandbox.Fault
	slow    time.Duration // before each answer
	slowed  bool          // an answer was delayed
}

// faultTimeout is how long a fault waits for its occasion, such as a request.
const faultTimeout = 1500 * ms

// open listens on the former port, or at first on a free one.
func (f *front) open(ctx context.Context) error {
	address := f.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	var listener net.Listener
	var err error
	for range 100 { // an outgoing connection may be using the port
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", address); err == nil {
			break
		}
		pause(ctx, 50*ms)
	}
	if err != nil {
		return fmt.Errorf("listen again at %s: %w", address, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.address = listener.Addr().String()
	server, gone := &http.Server{Handler: http.HandlerFunc(f.serve), ReadHeaderTimeout: 10 * time.Second},
		make(chan struct{})
	f.server, f.gone = server, gone
	go func() {
		defer close(gone)
		_ = server.Serve(listener) // until close
	}()
	return nil
}

// close ends the server and its connections.
func (f *front) close() {
	f.mu.Lock()
	server, gone := f.server, f.gone
	f.server = nil
	f.mu.Unlock()
	if server == nil {
		return
	}
	_ = server.Close() // of a listener that is closed next anyway
	<-gone
}

// turnTo makes another handler answer from now on.
func (f *front) turnTo(h http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handler = h
}

func (f *front) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	handler := f.handler
	f.mu.Unlock()
	handler.ServeHTTP(&watched{w, &f.refused}, r)
}

// watched counts refusals.
type watched struct {
	http.ResponseWriter
	refused *atomic.Int64
}

func (w *watched) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.refused.Add(1)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fault returns the fault for a request; the simulator calls it.
func (f *front) fault(*http.Request) *sandbox.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next := f.next; next != nil {
		f.next = nil
		return next
	}
	if f.slow > 0 {
		return &sandbox.Fault{Stall: f.slow, Took: func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.slowed = true
		}}
	}
	return nil
}

// disturb injects a fault into the next request, and reports whether it had an effect.
func (f *front) disturb(ctx context.Context, fault sandbox.Fault) bool {
	took := make(chan struct{}, 1)
	fault.Took = func() { took <- struct{}{} }
	f.mu.Lock()
	f.next = &fault
	f.mu.Unlock()
	select {
	case <-took:
		return true
	case <-ctx.Done():
	case <-time.After(faultTimeout):
	}
	f.mu.Lock()
	waits := f.next == &fault
	if waits {
		f.next = nil
	}
	f.mu.Unlock()
	if waits {
		return false
	}
	select { // it has begun
	case <-took:
		return true
	case <-time.After(fault.Stall + fault.Pause + time.Second):
		return false
	}
}

// slowDown delays all answers for a while, and reports whether there were any.
func (f *front) slowDown(ctx context.Context, d, by time.Duration) bool {
	f.mu.Lock()
	f.slow, f.slowed = by, false
	f.mu.Unlock()
	pause(ctx, d)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow = 0
	return f.slowed
}

// strike injects a fault of a schedule, and reports whether it had an effect.
func (f *front) strike(ctx context.Context, s fault) (bool, error) {
	status := func(code int, kind, body string, after int) bool {
		return f.disturb(ctx, sandbox.Fault{Status: code, ContentType: kind, Body: body, RetryAfter: after})
	}
	switch s.kind {
	case reset:
		return f.disturb(ctx, sandbox.Fault{Reset: true}), nil
	case truncate:
		return f.disturb(ctx, sandbox.Fault{Cut: s.size}), nil
	case stallBody:
		return f.disturb(ctx, sandbox.Fault{Cut: s.size, Pause: s.long}), nil
	case stallAnswer:
		return f.disturb(ctx, sandbox.Fault{Stall: s.long}), nil
	case tooMany:
		return status(http.StatusTooManyRequests, "text/plain", "slow down", 1), nil
	case unavailable:
		return status(http.StatusServiceUnavailable, "text/html", "<html>the service is unavailable</html>", 0), nil
	case internalError:
		return status(http.StatusInternalServerError, "text/plain", "There was an internal server error.", 0), nil
	case slow:
		return f.slowDown(ctx, s.long, s.long/4), nil
	case restartServer:
		f.close()
		pause(ctx, s.long)
		return true, f.open(context.WithoutCancel(ctx))
	}
	return false, errors.New("a server has no fault " + string(s.kind))
}

// pause waits, or returns at once when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
