package jsonhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// closesSecond serves the first request of its first connection, and closes that connection when the second is there,
// as a server or a proxy does that has waited for long enough. Later connections are served.
func closesSecond(t *testing.T) (url string, requests *atomic.Int64) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	requests = &atomic.Int64{}
	serve := func(conn net.Conn, most int64) {
		defer func() { _ = conn.Close() }()
		for r, n := bufio.NewReader(conn), int64(0); ; n++ {
			request, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			requests.Add(1)
			if n == most {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
	go func() {
		for most := int64(1); ; most = -1 {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, most)
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

func TestAClosedConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request  Request
		requests int64
		fails    bool
	}{
		"POST":     {Request{Body: struct{}{}}, 3, false},
		"GET":      {Request{}, 3, false},
		"a change": {Request{Body: struct{}{}, Changes: true}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := closesSecond(t)
			c, err := New(Config{URL: url}, Dialect{Flags: "ledger", Refused: func(Answer) bool { return false }})
			require.NoError(t, err)
			defer c.Close()
			test.request.MaxBytes, test.request.SilenceTimeout = 10, AnswerTimeout
			kept := make(chan error, 1)
			_, err = c.Do(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(err error) { kept <- err }}), test.request)
			require.NoError(t, err)
			require.NoError(t, <-kept)
			_, err = c.Do(t.Context(), test.request)
			require.Equal(t, test.fails, err != nil, err)
			require.Equal(t, test.requests, requests.Load())
		})
	}
}

// A kept connection may end with a request that is then sent again over another kept one. No connection is new, and no
// request fails, but what is behind a proxy may be another server by then.
func TestAnEndedConnectionIsTold(t *testing.T) {
	t.Parallel()
	var together sync.WaitGroup
	together.Add(2)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch requests.Add(1) {
		case 1, 2: // which take a connection each
			together.Done()
			together.Wait()
		case 3:
			panic(http.ErrAbortHandler) // ends the connection without an answer
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	var told atomic.Int64
	c, err := New(Config{URL: server.URL}, Dialect{
		Flags: "ledger", OtherMayAnswer: func() { told.Add(1) }, Refused: func(Answer) bool { return false },
	})
	require.NoError(t, err)
	defer c.Close()
	ask := func() error {
		kept := make(chan error, 1)
		trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(err error) { kept <- err }})
		if _, err := c.Do(trace, Request{Body: struct{}{}, MaxBytes: 10, SilenceTimeout: AnswerTimeout}); err != nil {
			return err // the connection is not kept
		}
		return <-kept
	}
	var group errgroup.Group
	group.Go(ask)
	group.Go(ask)
	require.NoError(t, group.Wait())
	require.EqualValues(t, 2, told.Load())

	require.NoError(t, ask())
	require.EqualValues(t, 4, requests.Load(), "it was sent again")
	require.EqualValues(t, 3, told.Load(), "before the answer is returned")
}

// A connection that ends while it is idle leads to nothing that is sent again.
func TestWhichEndsAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told  bool
		until func(t *testing.T, mine *watched, other net.Conn)
	}{
		"idle":     {false, func(*testing.T, *watched, net.Conn) {}},
		"asked":    {true, func(t *testing.T, mine *watched, other net.Conn) { sends(t, mine, other) }},
		"answered": {false, func(t *testing.T, mine *watched, other net.Conn) { sends(t, mine, other); sends(t, other, mine) }},
		"asked anew": {true, func(t *testing.T, mine *watched, other net.Conn) {
			sends(t, mine, other)
			sends(t, other, mine)
			sends(t, mine, other)
		}},
		"closed by us": {false, func(t *testing.T, mine *watched, other net.Conn) {
			sends(t, mine, other)
			require.NoError(t, mine.Close())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { require.NoError(t, listener.Close()) }()
			conn, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }() // was closed where we end it
			other, err := listener.Accept()
			require.NoError(t, err)
			told := false
			mine := &watched{Conn: conn, ended: func() { told = true }}
			c.until(t, mine, other)
			require.NoError(t, other.Close())
			_, err = mine.Read(make([]byte, 1))
			require.Error(t, err)
			require.Equal(t, c.told, told)
		})
	}
}

func sends(t *testing.T, from, to net.Conn) {
	t.Helper()
	_, err := from.Write([]byte("?"))
	require.NoError(t, err)
	_, err = to.Read(make([]byte, 1))
	require.NoError(t, err)
}
