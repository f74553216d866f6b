package config

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
)

// checkFlags is a command that asks both servers.
type checkFlags struct {
	Check struct {
		Ledger
		Scan
	} `cmd:""`
}

func TestAccessIsTheSameForLedgerAndScan(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"ledger", "scan"} {
		t.Run(flags, func(t *testing.T) {
			var fromFlags, fromVariables checkFlags
			args := []string{"check", "--ledger-url=https://participant", "--scan-url=https://scan"}
			require.NoError(t, parseInto(t, &fromFlags, nil, append(args, "--"+flags+"-oauth-token-url=https://id/token",
				"--"+flags+"-oauth-client-id=indexer", "--"+flags+"-oauth-client-secret-file=/run/secret",
				"--"+flags+"-oauth-scopes=read,more", "--"+flags+"-oauth-audience=https://participant", "--"+flags+"-ca-file=/run/ca.pem",
				"--"+flags+"-cert-file=/run/cert.pem", "--"+flags+"-key-file=/run/key.pem")...))
			name := map[string]string{"ledger": "INDEXER_LEDGER_", "scan": "INDEXER_SCAN_"}[flags]
			require.NoError(t, parseInto(t, &fromVariables, map[string]string{
				name + "OAUTH_TOKEN_URL": "https://id/token", name + "OAUTH_CLIENT_ID": "indexer",
				name + "OAUTH_CLIENT_SECRET_FILE": "/run/secret", name + "OAUTH_SCOPES": "read,more",
				name + "OAUTH_AUDIENCE": "https://participant", name + "CA_FILE": "/run/ca.pem", name + "CERT_FILE": "/run/cert.pem",
				name + "KEY_FILE": "/run/key.pem",
			}, args...))
			require.Equal(t, fromFlags, fromVariables)
			got := map[string]access.Config{"ledger": fromFlags.Check.LedgerAccess, "scan": fromFlags.Check.ScanAccess}[flags]
			require.Equal(t, access.Config{
				CAFile: "/run/ca.pem", CertFile: "/run/cert.pem", KeyFile: "/run/key.pem",
				OAuth: access.OAuth{TokenURL: "https://id/token", ClientID: "indexer", ClientSecretFile: "/run/secret",
					Scopes: []string{"read", "more"}, Audience: "https://participant"},
			}, got)
		})
	}
}

func TestUsageErrorsOfAccess(t *testing.T) {
	t.Parallel()
	args := []string{"check", "--ledger-url=https://participant"}
	for name, c := range map[string]struct {
		args    []string
		environ map[string]string
		says    string
	}{
		"two sources of tokens": {append(args, "--ledger-token-file=t", "--ledger-oauth-token-url=https://id"), nil,
			"--ledger-token-file and --ledger-oauth-token-url are both given"},
		"half of OAuth":            {append(args, "--ledger-oauth-token-url=https://id"), nil, "--ledger-oauth-client-id is missing"},
		"a key alone":              {append(args, "--ledger-key-file=k"), nil, "--ledger-cert-file is missing"},
		"TLS without TLS":          {[]string{"check", "--ledger-url=http://participant", "--ledger-ca-file=c"}, nil, "--ledger-url is http://"},
		"Scan, a certificate only": {append(args, "--scan-url=https://scan", "--scan-cert-file=c"), nil, "--scan-key-file is missing"},
		"Scan that is none":        {append(args, "--scan-url=scan:8080"), nil, "--scan-url must be of the form http://"},
		"a password for the endpoint": {args, map[string]string{"INDEXER_LEDGER_OAUTH_TOKEN_URL": "https://u:hunter2@id",
			"INDEXER_LEDGER_OAUTH_CLIENT_ID": "i", "INDEXER_LEDGER_OAUTH_CLIENT_SECRET_FILE": "s"}, "--ledger-oauth-token-url must not contain a user"},
		"a password and a token": {args[:1], map[string]string{"INDEXER_LEDGER_URL": "https://u:hunter2@participant",
			"INDEXER_LEDGER_TOKEN_FILE": "t"}, "--ledger-url has a user in it and --ledger-token-file is given"},
		"a token for a file":     {append(args, "--ledger-token-file=eyJh.eyJzdWIiOiJodW50ZXIyIn0.c2ln"), nil, "--ledger-token-file is a token"},
		"a token in a variable":  {args, map[string]string{"INDEXER_LEDGER_TOKEN_FILE": "eyJh.eyJzdWIiOiJodW50ZXIyIn0.c2ln"}, "and is a token"},
		"a token for no flag":    {append(args, "--ledger-token=eyJh.eyJzdWIiOiJodW50ZXIyIn0.c2ln"), nil, "--ledger-token is a token"},
		"a token of its own":     {append(args, "--ledger-token", "eyJh.eyJzdWIiOiJodW50ZXIyIn0.c2ln"), nil, "--ledger-token is a token"},
		"a secret for no flag":   {append(args, "--ledger-oauth-client-secret=hunter2"), nil, "unknown flag --ledger-oauth-client-secret"},
		"a secret for no flag 2": {append(args, "--ledger-oauth-secret", "hunter2"), nil, "unknown flag --ledger-oauth-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			var flags checkFlags
			err := parseInto(t, &flags, c.environ, c.args...)
			var usage *UsageError
			require.ErrorAs(t, err, &usage)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "eyJ")
		})
	}
	var flags checkFlags
	_, err := parse(&flags, "program", "", append(args, "--scan-cert-file=c"), nil, io.Discard)
	require.NoError(t, err, "where no Scan is asked, nothing about it is wrong")
}
