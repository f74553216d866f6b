package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// history asks for records of the transaction history.
func history(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v0/transactions", strings.NewReader(`{"page_size":1000}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	return send(t, r, nil)
}

func TestServesAScanService(t *testing.T) {
	t.Parallel()
	said, url, stop := start(t, "--updates", "200", "--scan-word", "coin", "--scan-balance-changes", "--scan-release", "0.6.1")
	require.Contains(t, said, "a Scan service of this ledger's network on "+url+"/api/scan\n")
	_, version := get(t, url+"/api/scan/version", "")
	require.Contains(t, version, `"version":"0.6.1"`)
	status, records := history(t, url+"/api/scan")
	require.Equal(t, http.StatusOK, status, records)
	require.Contains(t, records, `"coin_owner"`)
	require.Contains(t, records, `"change_to_holding_fees_rate"`)
	status, _ = get(t, url+"/v2/state/ledger-end", "")
	require.Equal(t, http.StatusOK, status, "the participant is beside it")
	require.NoError(t, stop())

	_, url, stop = start(t, "--updates", "200", "--scan-page-limit", "3", "--scan-updates-lag", "20", "--scan-bulk-every", "10s", "--scan-lie-about", "9")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/scan/v0/history/bulk/updates",
		strings.NewReader(`{"start_record_time":"0001-01-01T00:00:00Z","end_record_time":"2030-01-01T00:00:00Z","page_size":1000}`))
	require.NoError(t, err)
	status, listed := send(t, r, nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, listed, "/api/scan/v0/history/bulk/download/0001-01-01T00%3A00%3A00Z~")
	require.NoError(t, stop())

	token := writeFile(t, "token", "s3cret\n")
	_, url, stop = start(t, "--updates", "5", "--token-file", token)
	status, _ = get(t, url+"/api/scan/version", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = get(t, url+"/api/scan/version", "s3cret")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, stop())
}

func TestServesNoScanService(t *testing.T) {
	t.Parallel()
	recording := writeFile(t, "updates.json", `[{"update":{"OffsetCheckpoint":{"value":{"offset":4,"synchronizerTimes":[]}}}}]`)
	for name, args := range map[string][]string{"not wanted": {"--updates", "5", "--no-scan"}, "a recording": {"--replay", recording}} {
		t.Run(name, func(t *testing.T) {
			said, url, stop := start(t, args...)
			require.NotContains(t, said, "Scan")
			status, body := history(t, url+"/api/scan")
			require.Equal(t, http.StatusNotFound, status)
			require.Contains(t, body, `"status":404`, "the participant answers")
			require.NoError(t, stop())
		})
	}
	for _, release := range []string{"latest", "0", "0.6; rm", ""} {
		var errs bytes.Buffer
		require.Equal(t, exitFailed, exitCode(run(context.Background(), []string{"--updates", "5", "--scan-release=" + release}, io.Discard), &errs))
		require.Contains(t, errs.String(), "--scan-release")
	}
}

// Who has to prove who they are, and is told how, is told for both servers.
func TestFlagsForAScanServiceOverHTTPS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, _, _ := certificate(t)
	said, url, stop := start(t, "--updates", "5", "--tls-cert", certFile, "--tls-key", keyFile, "--client-ca", certFile)
	require.Contains(t, said, "--scan-url "+url+"/api/scan --scan-ca-file "+certFile+" --scan-cert-file CERTIFICATE --scan-key-file KEY\n")
	require.NoError(t, stop())
	said, url, stop = start(t, "--updates", "5", "--auth", "--write-tokens", filepath.Join(t.TempDir(), "tokens"))
	require.Contains(t, said, "\n    --scan-url "+url+"/api/scan\n")
	status, _ := history(t, url+"/api/scan")
	require.Equal(t, http.StatusOK, status, "it asks for no token")
	require.NoError(t, stop())
	require.NotContains(t, (&secure{TLSCert: certFile}).howToConnect("https://x", false, nil), "scan")
}
