package jsonhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

const password = "correct-horse-battery"

// FuzzAnswer lets a server answer anything, HTTP or not, to a request that carries a password.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"", "HTTP/1.1 200 OK\r\n\r\n{}", okJSON + "Content-Length: 2\r\n\r\n{}", okJSON + "Content-Length: 9\r\n\r\n{}",
		okJSON + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", okJSON + "Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n{}",
		okJSON + "Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00", okJSON + "Content-Encoding: br\r\n\r\n{}",
		"HTTP/1.1 302 Found\r\nLocation: http://u:" + password + "@other/x?" + password + "\r\n\r\n" + password,
		"HTTP/1.1 500 Oops\r\nRetry-After: 99999999999999999999\r\n\r\nyou sent " + password, "HTTP/1.1 100 Go on\r\n\r\n" + okJSON + "\r\n[]",
		"HTTP/1.1 200 OK\r\nContent-Type: text/" + password + "\r\n\r\nx", "HTTP/2.0 200\r\n\r\n", password, "HTTP/1.1 " + password + "\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n{}", okJSON + password + "\r\n\r\n{}",
	} {
		f.Add([]byte(text))
	}
	const most = 1000
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := New(Config{URL: "http://joe:" + password + "@server"}, Dialect{Flags: "ledger", Refused: func(Answer) bool { return false }})
		require.NoError(t, err)
		defer c.Close()
		served := make(chan struct{})
		transport := &http.Transport{MaxResponseHeaderBytes: maxHeader, DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer close(served)
				defer theirs.Close()
				if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
					_, _ = theirs.Write(text) // the client may have gone
				}
			}()
			return ours, nil
		}}
		c.http.Transport = transport
		a, err := c.Do(t.Context(), Request{Path: "/", MaxBytes: most, SilenceTimeout: time.Minute})
		transport.CloseIdleConnections()
		<-served
		require.LessOrEqual(t, len(a.Body), max(most, errorBody))
		require.True(t, a.RetryAfter >= 0 && a.RetryAfter <= 24*time.Hour)
		require.NotContains(t, a.Location, password)
		switch {
		case err != nil:
			require.NotEmpty(t, err.Error())
			require.NotContains(t, err.Error(), password)
			require.Less(t, len(err.Error()), 4000)
		case a.Status == http.StatusOK:
			require.LessOrEqual(t, len(a.Body), most)
		}
	})
}

// FuzzURL looks for a URL that is taken and leads elsewhere than it says, or whose password is printed.
func FuzzURL(f *testing.F) {
	for _, text := range []string{"", "http://server", "https://joe:" + password + "@server:7575/prefix/", "http://server?x=1", "http://server#x", "ftp://server",
		"http://joe:" + password + "@ser ver", "//server", "http:///x", "http://[::1]:80/%2e%2e/", "http://a/../../b", "http://joe:" + password + "@:80",
		"HTTP://server", "http://server/%zz", "http://joe:" + password} {
		f.Add(text, "/v2/updates")
	}
	f.Add("http://server/x", "/v2/users/%2E%2E/rights")
	f.Add("http://server/x", "/v2/users/a%2Fb/rights")
	f.Fuzz(func(t *testing.T, text, path string) {
		c, err := New(Config{URL: text}, Dialect{Flags: "ledger"})
		if err != nil {
			require.NotContains(t, err.Error(), password)
			require.ErrorContains(t, err, "--ledger-")
			return
		}
		defer c.Close()
		given, err := url.Parse(text)
		require.NoError(t, err)
		require.Nil(t, c.URL().User)
		require.Equal(t, given.Host, c.URL().Host)
		require.Contains(t, []string{"http", "https"}, c.URL().Scheme)
		req, err := c.newRequest(t.Context(), Request{Path: path}, "")
		if err != nil {
			require.NotContains(t, err.Error(), password)
			return
		}
		require.Equal(t, given.Hostname(), req.URL.Hostname(), "a path leads to no other host")
		require.Equal(t, given.Port(), req.URL.Port())
		require.Empty(t, req.URL.RawQuery, "a path is no query")
		if _, has := given.User.Password(); has {
			require.NotEmpty(t, req.Header.Get("Authorization"))
		}
	})
}

// FuzzMeter compares what is counted, in pieces of any size, with what a JSON library finds.
func FuzzMeter(f *testing.F) {
	for _, text := range []string{``, `1`, `[]`, `[1,"a,\"[",{"b":[{}]}]`, `"\\"`, `{"a":1,"b":{}}`, `[[[`, `"`, `\`, `[1,2`} {
		f.Add([]byte(text), 1)
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		var c counter
		m := valueLimit{limit: 5}
		for end := range text {
			if size := 1 + max(0, size%7); (end+1)%size == 0 || end+1 == len(text) {
				c.count(text[c.bytes : end+1])
				require.Equal(t, c.values > m.limit, m.check(text[:end+1]) != nil)
			}
		}
		values, names, err := tokens(text)
		if err == nil {
			require.GreaterOrEqual(t, c.values+1, values-names, "each value is behind a comma or a bracket, or is the first")
			require.LessOrEqual(t, c.values, 2*values, "and there are no more of them")
		}
	})
}

// tokens counts the values in a JSON text, and the names of members among them.
func tokens(text []byte) (values, names int64, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		kind, length := d.StackIndex(d.StackDepth())
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) && d.StackDepth() == 0 {
			return values, names, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if d.StackDepth() == 0 && values > 0 && token.Kind() != '}' && token.Kind() != ']' {
			return 0, 0, io.ErrUnexpectedEOF // a second value
		}
		if token.Kind() != '}' && token.Kind() != ']' {
			values++
			if kind == '{' && length%2 == 0 {
				names++
			}
		}
	}
}

// FuzzUnusable compares with the plain rule: it is JSON, more text may make it JSON, or nothing does.
func FuzzUnusable(f *testing.F) {
	c, err := New(Config{URL: "http://server"}, Dialect{Flags: "ledger"})
	require.NoError(f, err)
	for _, text := range []string{``, `{`, `{"a":[1,2`, `[tru`, "{\"a\":\"\xc3", `{}`, `[1]x`, `{"a":}`, `"\ud8`, `nul`, `-`, `1`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := c.Unusable(Answer{Body: text})
		if jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
			require.NoError(t, err)
			return
		}
		if err != nil {
			var strange *NotJSONError
			require.True(t, errors.Is(err, ErrCutOff) != errors.As(err, &strange))
			require.Less(t, len(err.Error()), 400)
		}
	})
}
