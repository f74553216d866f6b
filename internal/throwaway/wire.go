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
	DiskFull                             // the COPY fails as on a disk that is full (SQLSTATE 53100); the connection lives on
)

// ofCopy says where the fault strikes: in a COPY, or else at a COMMIT.
func (f WireFault) ofCopy() bool { return f == CutCopy || f == EndSession || f == DiskFull }

// codeDiskFull is the SQLSTATE of a disk that is full.
const codeDiskFull = "53100"

// Wire stands before a database as an unreliable network does. It understands the protocol of pgx: a COMMIT comes as a
// simple query, rows of a COPY in messages of their own. Its methods can be called by several goroutines at once.
type Wire struct {
	database         string // URL of the database itself
	url              string
	network, address string // of the server
	listener         net.Listener
	running          sync.WaitGroup

	mu    sync.Mutex
	lines map[*line]struct{}
	next  *wireOrder    // what the next line to come to it does; nil: nothing
	open  chan struct{} // closed while the wire is not stalled
	saw   map[string]int
}

// wireOrder is a fault that was asked for. delivered takes one value.
type wireOrder struct {
	fault     WireFault
	delivered chan bool
}

// NewWire listens on a free loopback port until Close, and passes on to the server of a database's URL, which need not be
// there yet.
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
		database: database, url: through.String(), network: "tcp", address: net.JoinHostPort(config.Host, fmt.Sprint(config.Port)),
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

// Disturb has the next connection that comes to the fault's place suffer it. It returns when that has happened and the
// fault has had its effect (true), or has not (false: there was no such place until ctx ended, or the transaction was
// not committed by the COMMIT). One is asked for at a time: another one takes the place of one that is awaited.
func (w *Wire) Disturb(ctx context.Context, fault WireFault) (delivered bool) {
	order := &wireOrder{fault: fault, delivered: make(chan bool, 1)}
	w.mu.Lock()
	w.next = order
	w.mu.Unlock()
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
	return <-order.delivered // it is happening
}

// take is the order for a place, if there is one.
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

// Stall holds back whatever is sent either way, until resume is called.
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

// Drop cuts all connections and returns how many there were.
func (w *Wire) Drop() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.lines {
		l.cut()
	}
	return len(w.lines)
}

// Lines is how many connections there are.
func (w *Wire) Lines() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines)
}

// Saw is how many errors with a SQLSTATE the server itself has sent.
func (w *Wire) Saw(code string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saw[code]
}

// SawDiskFull is how often the server itself found its disk full.
func (w *Wire) SawDiskFull() int { return w.Saw(codeDiskFull) }

// Close cuts all connections and ends the listening.
func (w *Wire) Close() {
	_ = w.listener.Close() // it has no other error than that it is closed
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
	if err != nil { // the server is away: so is the client's connection
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
		_ = l.answer() // it ends with the connection, which is all that can be wrong
	})
	_ = l.forward()
	l.cut()
	answers.Wait()
	if order := l.full.Swap(nil); order != nil {
		order.delivered <- false // the connection ended before the error came
	}
}

// endSession ends a session as an administrator does, and tells whether it did.
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
