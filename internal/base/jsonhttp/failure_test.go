package jsonhttp

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
)

// What an error means of every server.
func TestWhatStandsInBetweenIsExplained(t *testing.T) {
	t.Parallel()
	c, err := New(Config{URL: "http://127.0.0.1:1"}, Dialect{Flags: "ledger"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	const proxy = "a proxy may be what answers: see whether the server behind it runs and is ready"
	away := &access.ConnectionError{What: "nothing listens", Do: "start it", Err: errors.New("refused")}
	wrong := &access.ConnectionError{What: "it speaks TLS", Do: "write https", Configured: true, Err: errors.New("alert")}
	for name, row := range map[string]struct {
		failure  Failure
		what, do string
		common   bool
	}{
		"a port for TLS":            {Failure{Status: 400, Body: "The plain HTTP request was sent to HTTPS port"}, "what answers speaks TLS", "write https:// in --ledger-url", true},
		"a request that is no good": {Failure{Status: 400, Body: "Invalid value"}, "", "", false},
		"nobody behind a proxy":     {Failure{Status: 502, Body: "<html>Bad Gateway"}, proxy, "", true},
		"not ready":                 {Failure{Status: 503, Body: "not ready"}, proxy, "", true},
		"a proxy that gave up":      {Failure{Status: 504, Body: "<html>"}, proxy, "", true},
		"the server's own words":    {Failure{Status: 503}, "", "", false},
		"not up yet":                {Failure{Err: away}, "nothing listens; start it", "", true},
		"a wrong setting":           {Failure{Err: wrong}, "it speaks TLS", "write https", true},
	} {
		what, do, common := c.Explain(&row.failure)
		require.Equal(t, []any{row.what, row.do, row.common}, []any{what, do, common}, name)
	}
}

func TestAProxyThatDoesNotConnect(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy:3128", User: url.UserPassword("joe", "hunter2")}
	require.NoError(t, proxyAnswered(t.Context(), proxy, nil, &http.Response{StatusCode: 200}))
	err := proxyAnswered(t.Context(), proxy, nil, &http.Response{StatusCode: 407, Status: "407 Who are you?"})
	var refused *access.ConnectionError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "the proxy proxy:3128 does not connect to the server", refused.What)
	require.EqualError(t, err, "it answers 407 Who are you?")
}
