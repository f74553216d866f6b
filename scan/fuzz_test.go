package scan

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
)

const secret = "correct-horse-battery"

// FuzzError reads anything as a service's answer that is no success, and asks what it means.
func FuzzError(f *testing.F) {
	for _, body := range []string{"", `{}`, `{"error":"no such event"}`, `{"error":"` + secret + `\u0000\n"}`, `{"error":1}`, `<html>` + secret, "\xff\x00", `{"error":"a","error":"b"}`} {
		f.Add(404, []byte(body), "")
		f.Add(500, []byte(body), "#1220a:0")
	}
	c, err := New(Config{URL: "http://joe:" + secret + "@localhost"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, status int, body []byte, cursor string) {
		e := newError("test", jsonhttp.Answer{Status: 100 + (status&0xffff)%900, Body: body}, nil, c.access.Redact)
		require.NotContains(t, e.Error(), secret)
		require.True(t, utf8.ValidString(e.Error()))
		require.Less(t, len(e.Error()), 4000)
		require.Equal(t, time.Duration(0), e.Wait())
		for _, record := range []string{"", "a record"} {
			said := c.explain(e, purpose{method: "POST", path: pathTransactions, cursor: cursor, record: record})
			require.Error(t, said)
			require.NotContains(t, said.Error(), secret)
			require.Less(t, len(said.Error()), 6000)
		}
	})
}

// FuzzTold reads anything as what a service tells of itself, and as a page of its history.
func FuzzTold(f *testing.F) {
	for _, body := range []string{
		`{"version":"0.5.1"}`, `{"dso_party_id":"DSO::1"}`, `{"complete":true}`, `{"version":null,"dso_party_id":"","complete":"true"}`, `{"version":"` + secret + `"}`,
		`{"dso_party_id":"x` + secret + `"}`, `{"transactions":[]}`, `{"transactions":[{"event_id":"` + secret + `","x":{}}]}`, `{"transactions":[{"event_id":"#1:0","x":{}}]}`,
		``, `null`, `[]`, "\xff", `{"a":{`, `{"version":"0.5.1","dso_party_id":"DSO::1","complete":true}`, `{"version":"0.5.1","dso_party_id":"x` + secret + `","complete":true}`,
	} {
		f.Add([]byte(body))
	}
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	f.Cleanup(server.Close)
	c, err := New(Config{URL: "http://joe:" + secret + "@" + strings.TrimPrefix(server.URL, "http://")})
	require.NoError(f, err)
	f.Cleanup(c.Close)
	f.Fuzz(func(t *testing.T, told []byte) {
		body = told
		check := func(err error) bool {
			if err == nil {
				return true
			}
			require.NotContains(t, err.Error(), secret)
			require.Less(t, len(err.Error()), 4000)
			return false
		}
		if version, err := c.Version(t.Context()); check(err) {
			require.NotEqual(t, secret, version)
		}
		if s, err := c.Describe(t.Context()); check(err) {
			require.NotContains(t, s.NetworkID, secret)
		}
		records, err := c.TransactionsAfter(t.Context(), "")
		if check(err) {
			for _, r := range records {
				require.NotEmpty(t, r.EventID)
			}
		}
	})
}
