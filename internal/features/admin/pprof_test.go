package admin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Profiles are served until the end, which waits for nobody who takes one.
func TestProfiles(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- ServePprof(ctx, listener, slog.New(slog.DiscardHandler)) }()
	url := "http://" + listener.Addr().String()

	status, body := get(t, url+"/debug/pprof/goroutine?debug=1")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "ServePprof")
	status, _ = get(t, url+"/debug/pprof/cmdline")
	require.Equal(t, http.StatusOK, status)
	status, _ = get(t, url+"/metrics")
	require.Equal(t, http.StatusNotFound, status)

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for host, want := range map[string]int{"": http.StatusOK, "localhost:6060": http.StatusOK, "[::1]": http.StatusOK, "evil.example:6060": http.StatusMisdirectedRequest} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/debug/pprof/cmdline", nil)
		require.NoError(t, err)
		request.Host = host
		response, err := client.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, want, response.StatusCode, "a site whose name leads here: %s", host)
	}
	response, err := client.Post(url+"/debug/pprof/symbol", "text/plain", strings.NewReader("0x1"))
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)

	response, err = client.Get(url + "/debug/pprof/trace?seconds=1")
	require.NoError(t, err)
	defer response.Body.Close()
	trace, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NotEmpty(t, trace)

	cancel()
	require.NoError(t, <-done)
	_, err = net.Dial("tcp", listener.Addr().String())
	require.Error(t, err, "still listening")
}
