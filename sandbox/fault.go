package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Fault is a disturbance. Stall comes first and goes with any of the others.
type Fault struct {
	// Stall waits this long, or until the client gives up.
	Stall time.Duration
	// Reset closes the connection without an answer.
	Reset bool
	// Status, if not 0, is answered with ContentType and Body instead of the data.
	Status            int
	ContentType, Body string
	// RetryAfter, if not 0, is the Retry-After header of the Status, in seconds.
	RetryAfter int
	// Cut, if positive, breaks the connection after that many bytes of the body.
	Cut int
	// Pause makes Cut a pause this long after those bytes; the rest of the body follows.
	Pause time.Duration
	// Took, if not nil, is called when the disturbance has had its effect. It is not
	// called if the body is no longer than Cut, or the client left before.
	Took func()
}

func (f *Fault) took() {
	if f.Took != nil {
		f.Took()
	}
}

// slowed answers a request by serve after the latency, unless a fault disturbs it.
func slowed(w http.ResponseWriter, r *http.Request, latency time.Duration, fault func(*http.Request) *Fault,
	serve http.HandlerFunc) {
	if !wait(r.Context(), latency) {
		late(r.Context(), w)
		return
	}
	if fault != nil {
		if f := fault(r); f != nil {
			disturbed(w, r, f, serve)
			return
		}
	}
	serve(w, r)
}

// wait reports whether d has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// disturbed answers with a fault; serve gives the undisturbed answer.
func disturbed(w http.ResponseWriter, r *http.Request, f *Fault, serve http.HandlerFunc) {
	if !wait(r.Context(), f.Stall) {
		late(r.Context(), w)
		return
	}
	switch {
	case f.Reset:
		reset(w)
		f.took()
	case f.Status != 0:
		if f.ContentType != "" {
			w.Header().Set("Content-Type", f.ContentType)
		}
		if f.RetryAfter != 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		w.WriteHeader(f.Status)
		fmt.Fprint(w, f.Body)
		f.took()
	case f.Cut > 0:
		cut(w, r, f, serve)
	default:
		if f.Stall > 0 {
			f.took()
		}
		serve(w, r)
	}
}

// cut breaks an answer off in its body, or makes it pause there.
func cut(w http.ResponseWriter, r *http.Request, f *Fault, serve http.HandlerFunc) {
	whole := &recorder{header: w.Header(), status: http.StatusOK}
	serve(whole, r)
	body := whole.body.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(whole.status)
	if f.Cut >= len(body) {
		w.Write(body)
		return
	}
	w.Write(body[:f.Cut])
	_ = http.NewResponseController(w).Flush() // a client that left is noticed next
	if f.Pause > 0 && wait(r.Context(), f.Pause) {
		w.Write(body[f.Cut:])
		f.took()
		return
	}
	if r.Context().Err() == nil {
		f.took()
	}
	panic(http.ErrAbortHandler)
}

// reset drops the connection so that the client reads a reset, not an end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // otherwise the client reads an end, which is an error too
	}
	conn.Close()
}

// recorder keeps an answer to be cut.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
