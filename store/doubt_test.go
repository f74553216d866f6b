package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// cut says what a proxy does with the next COMMIT that follows a COPY into created or transactions.
type cut int

const (
	never        cut = iota
	beforeCommit     // the server does not get it, and sees the connection end
	afterCommit      // the server gets it and answers, the client sees the connection end instead
)

// proxy stands between a store and PostgreSQL, and understands enough of their protocol to find a batch's COMMIT.
type proxy struct {
	listener net.Listener
	network  string // of the server
	address  string

	mu      sync.Mutex
	next    cut
	conns   map[net.Conn]struct{}
	working sync.WaitGroup
}

// newProxy returns a proxy to the server of a URL, and the URL that leads through it.
func newProxy(t *testing.T, databaseURL string) (*proxy, string) {
	t.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	require.NoError(t, err)
	p := &proxy{network: "tcp", address: fmt.Sprintf("%s:%d", config.Host, config.Port), conns: map[net.Conn]struct{}{}}
	if strings.HasPrefix(config.Host, "/") {
		p.network, p.address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
	}
	p.listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(p.close)
	p.working.Go(p.accept)
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: p.listener.Addr().String(), Path: config.Database,
		RawQuery: "sslmode=disable",
	}
	return p, through.String()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.working.Wait()
}

func (p *proxy) cutNext(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = c
}

func (p *proxy) takeCut() cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.next
	p.next = never
	return c
}

func (p *proxy) track(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = struct{}{}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.track(client)
		p.track(server)
		deaf, ended := make(chan struct{}), make(chan struct{}) // deaf: the server's answers no longer reach the client
		p.working.Go(func() { p.forward(client, server, deaf, ended) })
		p.working.Go(func() {
			answer(server, client, deaf)
			close(ended)
		})
	}
}

// forward passes the client's messages on, one by one, until it is time to cut.
func (p *proxy) forward(client, server net.Conn, deaf, ended chan struct{}) {
	defer server.Close()
	defer client.Close()
	batch := false
	for first := true; ; first = false {
		message, err := readMessage(client, first)
		if err != nil {
			return
		}
		batch = batch || bytes.Contains(message, []byte(`COPY "created"`)) || bytes.Contains(message, []byte(`COPY "transactions"`))
		if batch && bytes.Contains(message, []byte("commit")) {
			switch p.takeCut() {
			case beforeCommit:
				return
			case afterCommit:
				close(deaf)
				if _, err := server.Write(message); err == nil {
					<-ended // with the answer
				}
				return
			case never:
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// answer passes the server's messages on, up to the first that a deaf client is not to hear.
func answer(server, client net.Conn, deaf chan struct{}) {
	defer client.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		select {
		case <-deaf:
			return
		default:
		}
		if err != nil {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// readMessage reads a message of the client. The first one has no type byte.
func readMessage(r io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	message := make([]byte, len(head)+int(binary.BigEndian.Uint32(head[len(head)-4:]))-4)
	copy(message, head)
	_, err := io.ReadFull(r, message[len(head):])
	return message, err
}

// Rule: after any error from COMMIT the outcome is unknown: re-read, never assume. Both outcomes look alike to the
// writer, and one that reads the watermark again doubles nothing and loses nothing.
func TestCommitOutcomeUnknownIsReadAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	p, through := newProxy(t, d.URL)
	l := d.leadUpdates(d.open(through, nil))
	ctx := t.Context()
	require.NoError(t, l.Start(ctx, "", storetest.Scope, 0, true))
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 10)))

	for i, c := range []cut{beforeCommit, afterCommit, beforeCommit, afterCommit} {
		from := ledger.Offset(10 + 10*i)
		to := from + 10
		p.cutNext(c)
		err := l.Append(ctx, storetest.Scope, storetest.OneCreation(from, to))
		require.ErrorContains(t, err, "outcome is unknown")
		require.Equal(t, never, p.takeCut(), "the connection was not cut")

		at := from
		require.Eventually(t, func() bool { // the server may still be at it
			var ok bool
			at, ok, err = l.Watermark(ctx)
			return err == nil && ok && (c == beforeCommit || at == to)
		}, storetest.WaitLimit, storetest.WaitTick)
		if c == beforeCommit {
			require.Equal(t, from, at)
			require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(at, to)))
		} else {
			require.Equal(t, to, at)
			require.ErrorIs(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(from, to)), ErrCovered, "a writer that assumes")
		}
		require.Equal(t, fmt.Sprint(i+2), d.Row("SELECT count(*) FROM ledger.updates"))
		require.Equal(t, []string{fmt.Sprint("0 ", to)}, d.Coverage())
	}
}

// A writer whose twin is in doubt (its COMMIT was sent, and nobody knows) waits for it instead of doubling it.
func TestTwinInDoubtIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from, to int64 // of the twin
		commit   bool
	}{
		"same range, rolled back":  {10, 20, false},
		"same range, committed":    {10, 20, true},
		"overlapping, rolled back": {5, 15, false},
		"overlapping, committed":   {15, 25, true},
		"longer, same start":       {10, 30, true},
		"longer, same start, not":  {10, 30, false},
		"within, committed":        {12, 13, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			d := newDatabase(t)
			l := d.started()
			ctx := t.Context()
			require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 5)))
			require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(5, 10)))
			if test.from < 10 {
				d.Exec("UPDATE indexer.coverage SET to_inclusive = 5")
			}
			tx, err := d.Connect().Begin(ctx)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, "INSERT INTO indexer.coverage VALUES ('updates', $1, $2, $3)", storetest.Scope.Hash(), test.from, test.to)
			require.NoError(t, err)

			done := make(chan error, 1)
			go func() { done <- l.Append(ctx, storetest.Scope, storetest.OneCreation(10, 20)) }()
			d.WaitFor("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%coverage%')")
			require.Equal(t, "10", d.Watermark())
			if !test.commit {
				require.NoError(t, tx.Rollback(ctx))
				require.NoError(t, <-done)
				require.Equal(t, "20", d.Watermark())
				return
			}
			require.NoError(t, tx.Commit(ctx))
			require.ErrorIs(t, <-done, ErrCovered)
			require.Equal(t, "10", d.Watermark())
			require.Empty(t, d.Facts(10, 100))
		})
	}
}
