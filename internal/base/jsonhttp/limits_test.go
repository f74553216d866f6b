package jsonhttp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostile is a server that sends to every request what send writes, which need not be HTTP, and then closes the
// connection. send ends when the client has gone: writing fails then.
func hostile(t *testing.T, send func(w io.Writer)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				send(conn)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}

const okJSON = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

// endless writes a text again and again until the client has gone.
func endless(w io.Writer, text string) {
	block := []byte(strings.Repeat(text, 1+4096/len(text)))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// drip writes a text again and again, slowly.
func drip(w io.Writer, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

// chunk is one of a chunked body.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// bomb is 5 MB of JSON, made small.
var bomb = sync.OnceValue(func() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(append(bytes.Repeat([]byte(" "), 5_000_000), "{}"...))
	_ = z.Close()
	return b.String()
})

// Whatever a server sends, an answer ends in time, takes bounded room, and the error says which limit it met.
func TestLimits(t *testing.T) {
	t.Parallel()
	const most = 1_000_000 // bytes
	for name, c := range map[string]struct {
		send func(w io.Writer)
		is   error    // nil: any
		says []string // in the error
	}{
		"a body without end": {func(w io.Writer) { say(w, okJSON+"\r\n"); endless(w, `"x" `) },
			ErrTooLarge, []string{"it has more than 1000000 bytes"}},
		"chunks without end": {func(w io.Writer) {
			say(w, okJSON+"Transfer-Encoding: chunked\r\n\r\n")
			endless(w, chunk(strings.Repeat(`"x" `, 100)))
		},
			ErrTooLarge, []string{"it has more than 1000000 bytes"}},
		"a body that is announced too large": {func(w io.Writer) { say(w, okJSON+"Content-Length: 4611686018427387904\r\n\r\n{}") },
			ErrTooLarge, []string{"it has 4611686018427387904 bytes", "1000000"}},
		"one text": {func(w io.Writer) { say(w, okJSON+"\r\n\""); endless(w, "x") },
			ErrTooLarge, []string{"it has more than 1000000 bytes"}},
		"many values": {func(w io.Writer) { say(w, okJSON+"\r\n["); endless(w, "{},") },
			ErrTooLarge, []string{"it has more than 100000 values"}},
		"many members": {func(w io.Writer) { say(w, okJSON+"\r\n{"); endless(w, `"":0,`) },
			ErrTooLarge, []string{"it has more than 100000 values"}},
		"much that is compressed to little": {func(w io.Writer) { say(w, okJSON+"Content-Encoding: gzip\r\n\r\n"+bomb()) },
			ErrTooLarge, []string{"it has more than 1000000 bytes"}},
		"compressed in another way": {func(w io.Writer) { say(w, okJSON+"Content-Encoding: br\r\n\r\n{}") },
			nil, []string{`encoded as "br"`, "not asked for", "--ledger-url"}},
		"compressed twice": {func(w io.Writer) { say(w, okJSON+"Content-Encoding: gzip, gzip\r\n\r\n"+bomb()) },
			nil, []string{"gzip, gzip", "not asked for"}},
		"compressed, it says": {func(w io.Writer) { say(w, okJSON+"Content-Encoding: gzip\r\n\r\n{}") },
			ErrCutOff, nil},

		"a large header":        {func(w io.Writer) { say(w, okJSON+"X: "); endless(w, "x") }, nil, []string{"headers exceeded 262144 bytes"}},
		"many headers":          {func(w io.Writer) { say(w, okJSON); endless(w, "A:b\r\n") }, nil, []string{"headers exceeded 262144 bytes"}},
		"no header, but a line": {func(w io.Writer) { endless(w, "x") }, nil, []string{"headers exceeded 262144 bytes"}},
		"a status line":         {func(w io.Writer) { say(w, "HTTP/1.1 200 "); endless(w, "x") }, nil, []string{"headers exceeded 262144 bytes"}},
		"announcements of more": {func(w io.Writer) { endless(w, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n") }, nil, nil},
		"a large trailer": {func(w io.Writer) {
			say(w, okJSON+"Trailer: X\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk("{}")+"0\r\nX: ")
			endless(w, "x")
		}, ErrCutOff, []string{"trailer"}},
		"a long chunk extension":   {func(w io.Writer) { say(w, okJSON+"Transfer-Encoding: chunked\r\n\r\n2;"); endless(w, "x") }, ErrCutOff, nil},
		"a chunk of any size":      {func(w io.Writer) { say(w, okJSON+"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}") }, ErrCutOff, nil},
		"more promised than comes": {func(w io.Writer) { say(w, okJSON+"Content-Length: 50000\r\n\r\n{}") }, ErrCutOff, []string{"after 2 bytes"}},
		"two lengths":              {func(w io.Writer) { say(w, okJSON+"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}") }, nil, []string{"Content-Length"}},
		"a negative length":        {func(w io.Writer) { say(w, okJSON+"Content-Length: -2\r\n\r\n{}") }, nil, []string{"Content-Length"}},
		"nothing":                  {func(io.Writer) {}, nil, []string{"EOF"}},
		"a large type": {func(w io.Writer) {
			say(w, "HTTP/1.1 200 OK\r\nContent-Type: "+strings.Repeat("x", 100_000)+"\r\n\r\n{}")
		},
			nil, []string{"instead of application/json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ask(t, hostile(t, c.send), most)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			for _, words := range c.says {
				require.ErrorContains(t, err, words)
			}
			require.Less(t, len(err.Error()), 1000)
			require.LessOrEqual(t, cap(a.Body), most)
			require.LessOrEqual(t, a.Bytes, int64(most+1))
		})
	}
}

// An answer that never ends and stays small is given up: after a while without anything of its body, or when it took
// too long. The one that is not meant has no part in it.
func TestLimitsOfTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send func(w io.Writer)
		is   error
		says string
	}{
		"a drip of headers": {func(w io.Writer) { say(w, okJSON); drip(w, "A:b\r\n") }, ErrSilent, "the server went silent for "},
		"a drip":            {func(w io.Writer) { say(w, okJSON+"\r\n"); drip(w, " ") }, ErrSlow, "it took more than "},
		"a drip of chunks": {func(w io.Writer) { say(w, okJSON+"Transfer-Encoding: chunked\r\n\r\n"); drip(w, chunk(" ")) },
			ErrSlow, "it took more than "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := hostile(t, c.send)
			if errors.Is(c.is, ErrSilent) {
				_, err := askWithin(t, url, 1_000_000, 50*time.Millisecond, patience)
				require.ErrorIs(t, err, c.is)
				require.ErrorContains(t, err, c.says+"50ms")
				return
			}
			a, longest, err := untilAnswered(t, url)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says+longest.String())
			require.ErrorContains(t, err, fmt.Sprintf("cut off after %d bytes", a.Bytes))
		})
	}
}

// untilAnswered asks a server that never ends, and allows an answer longer and longer until some of it has come in that
// time.
func untilAnswered(t *testing.T, url string) (a Answer, longest time.Duration, err error) {
	t.Helper()
	for longest = 50 * time.Millisecond; longest < patience; longest *= 2 {
		if a, err = askWithin(t, url, 1_000_000, patience, longest); a.Status != 0 {
			return a, longest, err
		}
	}
	require.FailNow(t, "no answer", "within %v: %v", longest/2, err)
	return
}

// Of an answer that is only shown, however much comes, the beginning is read.
func TestLimitsOfWhatIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send   func(w io.Writer)
		status int
	}{
		"an error without end":    {func(w io.Writer) { say(w, "HTTP/1.1 500 Oops\r\n\r\n"); endless(w, "x") }, 500},
		"an error that is a bomb": {func(w io.Writer) { say(w, "HTTP/1.1 503 Oops\r\nContent-Encoding: gzip\r\n\r\n"+bomb()) }, 503},
		"a redirect to itself":    {func(w io.Writer) { say(w, "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"); endless(w, "x") }, 302},
		"a status of no kind":     {func(w io.Writer) { say(w, "HTTP/1.1 999 What\r\n\r\n"); endless(w, "x") }, 999},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ask(t, hostile(t, c.send), 1000)
			require.NoError(t, err)
			require.Equal(t, c.status, a.Status)
			require.LessOrEqual(t, len(a.Body), errorBody)
		})
	}
	t.Run("an error that drips", func(t *testing.T) {
		t.Parallel()
		a, _, err := untilAnswered(t, hostile(t, func(w io.Writer) { say(w, "HTTP/1.1 500 Oops\r\n\r\n"); drip(w, "x") }))
		require.NoError(t, err)
		require.Equal(t, 500, a.Status)
		require.LessOrEqual(t, len(a.Body), errorBody)
	})
}

// What servers may send is not in the way of a limit.
func TestWithinTheLimits(t *testing.T) {
	t.Parallel()
	// Elements of 4 values in 320 bytes, with brackets that count for nothing.
	page := "[" + strings.Repeat(`{"a":"`+strings.Repeat(`\\\"[,{`, 45)+`","b":[1]},`, 2000) + "{}]"
	for name, send := range map[string]func(w io.Writer){
		"plain":      func(w io.Writer) { say(w, fmt.Sprintf(okJSON+"Content-Length: %d\r\n\r\n%s", len(page), page)) },
		"to the end": func(w io.Writer) { say(w, okJSON+"\r\n"+page) },
		"chunked":    func(w io.Writer) { say(w, okJSON+"Transfer-Encoding: chunked\r\n\r\n"+chunk(page)+"0\r\n\r\n") },
		"announced":  func(w io.Writer) { say(w, "HTTP/1.1 103 Early Hints\r\n\r\n"+okJSON+"\r\n"+page) },
		"headers":    func(w io.Writer) { say(w, okJSON+strings.Repeat("A: b\r\n", 100)+"\r\n"+page) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ask(t, hostile(t, send), int64(len(page)))
			require.NoError(t, err)
			require.Equal(t, page, string(a.Body))
		})
	}
}

func client(t *testing.T, url string, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{URL: url}
	for _, fn := range change {
		fn(&cfg)
	}
	c, err := New(cfg, Dialect{Flags: "ledger", Refused: func(Answer) bool { return false }})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// patience is longer than any answer takes here, on the busiest machine.
const patience = 10 * time.Minute

func ask(t *testing.T, url string, most int64) (Answer, error) {
	t.Helper()
	return askWithin(t, url, most, patience, patience)
}

func askWithin(t *testing.T, url string, most int64, silence, longest time.Duration) (Answer, error) {
	t.Helper()
	return client(t, url).Do(t.Context(), Request{Operation: "test", Path: "/", MaxBytes: most, SilenceTimeout: silence, AnswerTimeout: longest})
}

// However the bytes are cut into pieces, the same is counted.
func TestCounterCountsWhatStandsInJSON(t *testing.T) {
	t.Parallel()
	for text, values := range map[string]int64{
		``: 0, `1`: 0, `[]`: 1, `[1,2]`: 2, `{"a":{},"b":[[]]}`: 5, `"[,{"`: 0, `["\"[,",1]`: 2, `["\\",1]`: 2, `["\\\"",[]]`: 3,
	} {
		for size := 1; size <= len(text)+1; size++ {
			var c counter
			for piece := range slices.Chunk([]byte(text), size) {
				c.count(piece)
			}
			require.Equal(t, values, c.values, "%s in pieces of %d", text, size)
			require.Equal(t, len(text), c.bytes)
		}
	}
}

// What looks like values within texts counts for nothing, wherever the pieces end.
func TestMeterStopsAtTooManyValues(t *testing.T) {
	t.Parallel()
	var body []byte
	m := newValueLimit(0)
	come := func(text string) error {
		body = append(body, text...)
		return m.check(body)
	}
	require.NoError(t, come(`["`))
	require.NoError(t, come(strings.Repeat(`[,{`, minValues)))
	require.NoError(t, come(strings.Repeat(`\"`, minValues)+`"`))
	for range minValues - 1 {
		require.NoError(t, come(`,0`))
	}
	require.ErrorContains(t, come(`,{}`), "it has more than 100000 values")
}

// The memory of one answer serves another one; what came before in it is not seen again. A small one whose length is
// known leaves it alone: who keeps that keeps no more.
func TestReleasedBodies(t *testing.T) {
	t.Parallel()
	long, short := `{"a":"`+strings.Repeat("x", 200_000)+`"}`, `{"b":1}`
	for _, header := range []string{"", fmt.Sprintf("Content-Length: %d\r\n", len(long))} {
		url := hostile(t, func(w io.Writer) { say(w, okJSON+header+"\r\n"+long) })
		other := hostile(t, func(w io.Writer) { say(w, okJSON+"\r\n"+short) })
		small := hostile(t, func(w io.Writer) { say(w, okJSON+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(short), short)) })
		for range 3 {
			a, err := ask(t, url, 1_000_000)
			require.NoError(t, err)
			require.Equal(t, long, string(a.Body))
			Release(a.Body)
			a, err = ask(t, small, 1_000_000)
			require.NoError(t, err)
			require.Equal(t, short, string(a.Body))
			require.Less(t, cap(a.Body), minBuffer)
			Release(a.Body)
			a, err = ask(t, other, 1_000_000)
			require.NoError(t, err)
			require.Equal(t, short, string(a.Body))
			Release(a.Body)
		}
	}
}

// The caller who gives up is told so, and not that the server is slow.
func TestWhoGaveUp(t *testing.T) {
	t.Parallel()
	c, err := New(Config{URL: hostile(t, func(w io.Writer) { say(w, okJSON+"\r\n"); drip(w, " ") })}, Dialect{Flags: "ledger"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Do(ctx, Request{Path: "/", MaxBytes: 1000, SilenceTimeout: time.Minute})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, errors.Is(err, ErrSlow))
}
