package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func reachable(context.Context) error { return nil }

// serve answers until the test ends, or stop is called, which returns what Serve returned.
func serve(t *testing.T, health *Health, metrics *Metrics) (url string, stop func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, listener, Probes(health, metrics, strings.ToLower), slog.New(slog.DiscardHandler))
	}() // what is public is in lower case here
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { require.NoError(t, stop()) })
	return "http://" + listener.Addr().String(), stop
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, response.Header.Get("Content-Type"), "text/plain")
	return response.StatusCode, string(text)
}

func TestReadyInEachState(t *testing.T) {
	t.Parallel()
	away := func(context.Context) error { return errors.New("connection refused") }
	both := func(h *Health) {
		h.Set("updates", Leads, true, "leading")
		h.Set("transactions", StandsBy, true, "standing by")
	}
	for name, c := range map[string]struct {
		set                    func(h *Health)
		database, ledger, scan func(context.Context) error
		status                 int
		body                   string
	}{
		"starting": {func(*Health) {}, reachable, reachable, reachable, 503,
			"not ready\nupdates: starting\ntransactions: starting\ndatabase: reachable\nledger: reachable\nscan: reachable\n"},
		"leading and standing by": {both, reachable, reachable, reachable, 200,
			"ready\nupdates: leading\ntransactions: standing by\ndatabase: reachable\nledger: reachable\nscan: reachable\n"},
		"the first waits": {func(h *Health) { both(h); h.Set("updates", Waits, false, "WAITING: run `backfill`") }, reachable, reachable, reachable, 503,
			"not ready\nupdates: waiting: run `backfill`\ntransactions: standing by\ndatabase: reachable\nledger: reachable\nscan: reachable\n"},
		"the second waits": {func(h *Health) { both(h); h.Set("transactions", Waits, false, "trying again") }, reachable, reachable, reachable, 503,
			"not ready\nupdates: leading\ntransactions: trying again\ndatabase: reachable\nledger: reachable\nscan: reachable\n"},
		"database down": {both, away, reachable, reachable, 503,
			"not ready\nupdates: leading\ntransactions: standing by\ndatabase: connection refused\nledger: reachable\nscan: reachable\n"},
		"ledger down": {both, reachable, away, reachable, 503,
			"not ready\nupdates: leading\ntransactions: standing by\ndatabase: reachable\nledger: connection refused\nscan: reachable\n"},
		"Scan down": {both, reachable, reachable, away, 503,
			"not ready\nupdates: leading\ntransactions: standing by\ndatabase: reachable\nledger: reachable\nscan: connection refused\n"},
		"all down": {func(*Health) {}, away, away, away, 503,
			"not ready\nupdates: starting\ntransactions: starting\ndatabase: connection refused\nledger: connection refused\nscan: connection refused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			health := NewHealth([]string{"updates", "transactions"}, Check{"database", c.database}, Check{"ledger", c.ledger}, Check{"scan", c.scan})
			c.set(health)
			url, _ := serve(t, health, NewMetrics())
			status, body := get(t, url+"/readyz")
			require.Equal(t, c.status, status)
			require.Equal(t, c.body, body)
			status, body = get(t, url+"/healthz")
			require.Equal(t, http.StatusOK, status, "alive in every state")
			require.Equal(t, "alive\n", body)
		})
	}
}

// What is not configured is not told.
func TestReadyWithOneStream(t *testing.T) {
	t.Parallel()
	health := NewHealth([]string{"transactions"}, Check{"database", reachable}, Check{"scan", reachable})
	health.Set("transactions", Leads, true, "leading")
	url, _ := serve(t, health, NewMetrics())
	status, body := get(t, url+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ready\ntransactions: leading\ndatabase: reachable\nscan: reachable\n", body)
}

func TestOtherPathsAndMethods(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, NewHealth(nil), NewMetrics())
	status, _ := get(t, url+"/")
	require.Equal(t, http.StatusNotFound, status)
	request, err := http.NewRequest(http.MethodPost, url+"/readyz", strings.NewReader("x"))
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
}

// A database or a ledger that does not answer at all is down: the check does not wait for it for ever.
func TestAReadinessCheckHasATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		health := NewHealth([]string{"updates"}, Check{"database", silent}, Check{"ledger", silent})
		health.Set("updates", Leads, true, "leading")
		began := time.Now()
		ready, lines := health.check(t.Context())
		require.Equal(t, checkTimeout, time.Since(began))
		require.False(t, ready)
		require.Equal(t, []string{"updates: leading", "database: no answer within 2s", "ledger: no answer within 2s"}, lines)
	})
}

func TestSetTellsWhetherItIsNews(t *testing.T) {
	t.Parallel()
	health := NewHealth([]string{"updates", "transactions"})
	require.True(t, health.Set("updates", Leads, true, "leading"))
	require.False(t, health.Set("updates", Leads, true, "leading"))
	require.True(t, health.Set("transactions", Leads, true, "leading"))
	require.True(t, health.Set("updates", Leads, false, "leading"))
	require.True(t, health.Set("updates", StandsBy, false, "standing by"))
}

// Whoever keeps a connection open, with or without having asked something, does not hold the end.
func TestStopsInSpiteOfOpenConnections(t *testing.T) {
	t.Parallel()
	url, stop := serve(t, NewHealth(nil), NewMetrics())
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(url + "/healthz")
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	response.Body.Close()
	require.NoError(t, stop())

	_, err = net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.Error(t, err, "still listening")
}

func TestStopsInSpiteOfARequestThatHangs(t *testing.T) {
	t.Parallel()
	asked, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	hang := func(context.Context) error {
		close(asked)
		<-finish
		return nil
	}
	url, stop := serve(t, NewHealth(nil, Check{"database", hang}), NewMetrics())
	statuses := make(chan int, 1)
	go func() {
		response, err := http.Get(url + "/readyz")
		if err != nil {
			statuses <- 0
			return
		}
		response.Body.Close()
		statuses <- response.StatusCode
	}()
	<-asked
	require.NoError(t, stop())
	// Cut off, or told in time that the check does not answer: both take as long.
	require.Contains(t, []int{0, http.StatusServiceUnavailable}, <-statuses)
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.ErrorContains(t, Serve(ctx, listener, Probes(NewHealth(nil), NewMetrics(), strings.ToLower), slog.New(slog.DiscardHandler)), "serve 127.0.0.1:")
}

// once is a listener with one connection.
type once struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (o once) Accept() (net.Conn, error) {
	select {
	case conn := <-o.conn:
		return conn, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o once) Close() error {
	close(o.closed)
	return nil
}

func (once) Addr() net.Addr { return &net.TCPAddr{} }

// crowd is a listener with some connections, which counts those that it has given out at a time.
type crowd struct {
	once
	open, most atomic.Int64
}

func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.once.Accept()
	if err != nil {
		return nil, err
	}
	c.most.Store(max(c.most.Load(), c.open.Add(1)))
	return &member{Conn: conn, of: c}, nil
}

type member struct {
	net.Conn
	of    *crowd
	ended sync.Once
}

func (m *member) Close() error {
	m.ended.Do(func() { m.of.open.Add(-1) })
	return m.Conn.Close()
}

// However many clients connect and ask nothing, few connections are held at a time, and one that asks is answered.
func TestAThousandIdleClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clients = 1000
		listener := &crowd{once: once{make(chan net.Conn, clients+1), make(chan struct{})}}
		var idle []net.Conn
		for range clients {
			client, server := net.Pipe()
			listener.conn <- server
			idle = append(idle, client)
		}
		asks, server := net.Pipe()
		listener.conn <- server
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(ctx, listener, Probes(NewHealth(nil), NewMetrics(), strings.ToLower), slog.New(slog.DiscardHandler))
		}()
		_, err := io.WriteString(asks, "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		answer, err := io.ReadAll(asks)
		require.NoError(t, err)
		require.Contains(t, string(answer), "alive")
		require.EqualValues(t, maxClients, listener.most.Load())
		for _, client := range idle {
			client.Close()
		}
		stop()
		require.NoError(t, <-ended)
	})
}

// failing is a listener that has no file left for a connection once.
type failing struct {
	once
	failed atomic.Bool
}

func (f *failing) Accept() (net.Conn, error) {
	if f.failed.CompareAndSwap(false, true) {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return f.once.Accept()
}

// What goes wrong while listening is in the log, in its form.
func TestErrorsOfAListenerAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		listener := &failing{once: once{make(chan net.Conn), make(chan struct{})}}
		go func() {
			ended <- Serve(ctx, listener, http.NotFoundHandler(), slog.New(slog.NewJSONHandler(&log, nil)))
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		require.NoError(t, <-ended)
		var line map[string]any
		require.NoError(t, json.Unmarshal(log.Bytes(), &line), log.String())
		require.Equal(t, "WARN", line["level"])
		require.Contains(t, line["msg"], "too many open files")
	})
}

// A client that promises a body and sends none holds a connection for half a minute, and not for ever.
func TestABodyThatDoesNotComeEndsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		listener := once{make(chan net.Conn, 1), make(chan struct{})}
		listener.conn <- server
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(ctx, listener, Probes(NewHealth(nil), NewMetrics(), strings.ToLower), slog.New(slog.DiscardHandler))
		}()
		_, err := io.WriteString(client, "GET /healthz HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n")
		require.NoError(t, err)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = io.ReadAll(client)
		require.NoError(t, err, "the server closes it")
		stop()
		require.NoError(t, <-ended)
	})
}
