package jsonhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// closesSecond serves the first request of its first connection, and closes that connection when the second is there, as a
// server or a proxy does that has waited for long enough. Later connections are served.
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
