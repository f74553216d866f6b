package throwaway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// WireFault is what a Wire can do to one connection.
type WireFault int

// The faults of a wire. Those of a COPY come in the middle of its rows, those of a COMMIT at the end of a transaction.
const (
	CutBeforeCommit WireFault = iota + 1 // both sides see the connection end, and the server never got the COMMIT
	CutAfterCommit                       // the server has committed; its answer is lost, and the connection ends
	CutCopy                              // both sides see the connection end
	EndSession                           // an administrator ends the session (pg_terminate_backend)
	DiskFull                             // the COPY fails as on a full disk (SQLSTATE 53100); the connection stays open
)

// ofCopy reports whether the fault hits a COPY; otherwise it hits a COMMIT.
func (f WireFault) ofCopy() bool { return f == CutCopy || f == EndSession || f == DiskFull }

// codeDiskFull is the SQLSTATE of a disk that is full.
const codeDiskFull = "53100"

// Wire is a proxy before a database that simulates an unreliable network. It understands the protocol of pgx: a COMMIT
// is a simple query, and rows of a COPY have messages of their own. It is safe for concurrent use.
type Wire struct {
	database         string // URL of the database itself
	url              string
	network, address string // of the server
	listener         net.Listener
	running          sync.WaitGroup

	mu    sync.Mutex
	lines map[*line]struct{}
	next  *wireOrder    // the fault for the next line that reaches it; nil: none
	open  chan struct{} // closed while the wire is not stalled
	saw   map[string]int
}

// wireOrder is a requested fault. delivered takes one value.
type wireOrder struct {
	fault     WireFault
	delivered chan bool
}

// NewWire listens on a free loopback port until Close, and forwards to the server of a database's URL, which need not
// run yet.
func NewWire(ctx context.Context, database string) (*Wire, error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("stand before the database: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand before the database: %w", err)
	}
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: listener.Addr().String(),
		Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}
	w := &Wire{
		database: database, url: through.String(), network: "tcp", address: net.JoinHostPort(config.Host,
			fmt.Sprint(config.Port)),
		listener: listener, lines: map[*line]struct{}{}, open: make(chan struct{}), saw: map[string]int{},
	}
	if strings.HasPrefix(config.Host, "/") {
		w.network, w.address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
	}
	close(w.open)
	w.running.Go(w.accept)
	return w, nil
}

// URL leads to the database through the wire.
func (w *Wire) URL() string { return w.url }

// Disturb injects a fault into the next connection that reaches a COPY or a COMMIT. It returns true when the fault has
// had its effect, and false if it has not: no connection got there before ctx ended, or the COMMIT did not commit the
// transaction. There is one fault at a time: another one replaces one that still waits.
func (w *Wire) Disturb(ctx context.Context, fault WireFault) (delivered bool) {
	return w.Order(fault)(ctx)
}

// Order is Disturb for a caller that reaches the COPY or the COMMIT itself: the fault waits for it from now on, and the
// function returned waits as Disturb does, and returns the same.
func (w *Wire) Order(fault WireFault) (delivered func(context.Context) bool) {
	order := &wireOrder{fault: fault, delivered: make(chan bool, 1)}
	w.mu.Lock()
	w.next = order
	w.mu.Unlock()
	return func(ctx context.Context) bool { return w.await(ctx, order) }
}

// await waits for an order's effect, as long as the context allows.
func (w *Wire) await(ctx context.Context, order *wireOrder) (delivered bool) {
	select {
	case delivered = <-order.delivered:
		return delivered
	case <-ctx.Done():
	}
	w.mu.Lock()
	awaited := w.next == order
	if awaited {
		w.next = nil
	}
	w.mu.Unlock()
	if awaited {
		return false
	}
	return <-order.delivered // it has begun
}

// take returns the order for a COPY or a COMMIT, if there is one.
func (w *Wire) take(copying bool) *wireOrder {
	w.mu.Lock()
	defer w.mu.Unlock()
	order := w.next
	if order == nil || order.fault.ofCopy() != copying {
		return nil
	}
	w.next = nil
	return order
}

// Stall holds back all messages in both directions until resume is called.
func (w *Wire) Stall() (resume func()) {
	gate := make(chan struct{})
	w.mu.Lock()
	w.open = gate
	w.mu.Unlock()
	return sync.OnceFunc(func() { close(gate) })
}

func (w *Wire) gate() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// Lose takes the server away from all connections without a word, and returns how many there were: they stay open, and
// nothing comes through. Those that are made later are served, as by a server that has taken over.
func (w *Wire) Lose() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.lines {
		l.lost.Store(true)
	}
	return len(w.lines)
}

// Drop cuts all connections and returns how many there were.
func (w *Wire) Drop() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.lines {
		l.cut()
	}
	return len(w.lines)
}

// Lines returns the number of connections.
func (w *Wire) Lines() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines)
}

// Saw returns how many errors with a SQLSTATE the server itself has sent.
func (w *Wire) Saw(code string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saw[code]
}

// SawDiskFull returns how often the server itself found its disk full.
func (w *Wire) SawDiskFull() int { return w.Saw(codeDiskFull) }

// Close cuts all connections and ends the listening.
func (w *Wire) Close() {
	_ = w.listener.Close() // the only possible error is that it is closed
	w.Drop()
	w.running.Wait()
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.running.Go(func() { w.connect(client) })
	}
}

// connect serves a client until either side leaves.
func (w *Wire) connect(client net.Conn) {
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial(w.network, w.address)
	if err != nil { // the server is away, so end the client's connection too
		_ = client.Close()
		return
	}
	l := &line{wire: w, client: client, server: server, ended: make(chan struct{}), ready: make(chan string, 1)}
	w.mu.Lock()
	w.lines[l] = struct{}{}
	w.mu.Unlock()
	defer func() {
		l.cut()
		w.mu.Lock()
		delete(w.lines, l)
		w.mu.Unlock()
	}()
	var answers sync.WaitGroup
	answers.Go(func() {
		defer l.cut()
		defer close(l.ready)
		_ = l.answer() // the only possible error is the end of the connection
	})
	_ = l.forward()
	l.cut()
	answers.Wait()
	if order := l.full.Swap(nil); order != nil {
		order.delivered <- false // the connection ended before the error came
	}
}

// endSession ends a session as an administrator does, and reports whether that worked.
func (w *Wire) endSession(pid uint32) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.database)
	if err != nil {
		return false
	}
	defer closeConn(conn)
	var ended bool
	err = conn.QueryRow(ctx, "SELECT pg_terminate_backend($1, 5000)", int32(pid)).Scan(&ended)
	return err == nil && ended
}

var errCut = errors.New("the wire was cut")
