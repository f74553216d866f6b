package access

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"

	"ledgerindexer/ledger"
)

// oauth is a complete configuration, changed.
func oauth(change ...func(*OAuth)) Config {
	o := OAuth{TokenURL: "https://id.example.com/token", ClientID: "indexer", ClientSecretFile: "/run/secret"}
	for _, ch := range change {
		ch(&o)
	}
	return Config{OAuth: o}
}

func TestCheckNamesTheFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"token file and OAuth": {
			func() Config { c := oauth(); c.TokenFile = "/run/token"; return c }(),
			"--scan-token-file and --scan-oauth-token-url are both given",
		},
		"token in place of the file": {
			Config{TokenFile: jwt(`{"sub":"hunter2"}`)}, "--scan-token-file must be the name of a file that holds the token, and is a token",
		},
		"token file and scopes": {
			Config{TokenFile: "/run/token", OAuth: OAuth{Scopes: []string{"x"}}}, "--scan-token-file and --scan-oauth-token-url are both given",
		},
		"admin's token file and OAuth": {
			func() Config { c := oauth(); c.TokenFile, c.TokenFlag = "/run/token", "--admin-token-file"; return c }(),
			"--admin-token-file and --scan-oauth-token-url are both given",
		},
		"no token URL":   {oauth(func(o *OAuth) { o.TokenURL = "" }), "--scan-oauth-token-url is missing"},
		"audience alone": {Config{OAuth: OAuth{Audience: "x"}}, "--scan-oauth-token-url is missing"},
		"no client":      {oauth(func(o *OAuth) { o.ClientID = "" }), "--scan-oauth-client-id is missing"},
		"no secret":      {oauth(func(o *OAuth) { o.ClientSecretFile = "" }), "--scan-oauth-client-secret-file is missing"},
		"no such scheme": {oauth(func(o *OAuth) { o.TokenURL = "ftp://id.example.com" }), "--scan-oauth-token-url must be of the form https://host/path"},
		"no host":        {oauth(func(o *OAuth) { o.TokenURL = "https:///token" }), "--scan-oauth-token-url must be of the form"},
		"no URL":         {oauth(func(o *OAuth) { o.TokenURL = "https://id:hunter2 x@example.com" }), "--scan-oauth-token-url must be of the form"},
		"user in the URL": {
			oauth(func(o *OAuth) { o.TokenURL = "https://id:hunter2@example.com/token" }), "--scan-oauth-token-url must not contain a user",
		},
		"user cut off in the URL": {
			oauth(func(o *OAuth) { o.TokenURL = "https://id:1/hunter2@example.com/token" }), "--scan-oauth-token-url must not contain a user",
		},
		"user and token file": {
			Config{URL: "https://joe:hunter2@scan", TokenFile: "/run/token"}, "--scan-url has a user in it and --scan-token-file is given",
		},
		"user and OAuth": {
			func() Config { c := oauth(); c.URL = "https://joe:hunter2@scan"; return c }(),
			"--scan-url has a user in it and --scan-oauth-token-url is given",
		},
		"bad URL":           {Config{URL: "https://joe:hunter2@scan:port"}, "--scan-url must be of the form"},
		"password with a /": {Config{URL: "https://joe:1/hunter2@scan"}, "--scan-url has an @ behind its host"},
		"certificate alone": {Config{CertFile: "c.pem"}, "--scan-key-file is missing"},
		"key alone":         {Config{KeyFile: "k.pem"}, "--scan-cert-file is missing"},
		"certificate without TLS": {
			Config{URL: "http://scan", CertFile: "c.pem", KeyFile: "k.pem"}, "--scan-cert-file and --scan-key-file are for TLS, and --scan-url is http://",
		},
		"authorities without TLS": {Config{URL: "http://scan", CAFile: "ca.pem"}, "--scan-ca-file is for TLS, and --scan-url is http://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.cfg.Flags = "scan"
			err := c.cfg.Check()
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "eyJ")
			_, err = New(c.cfg, nil)
			require.ErrorContains(t, err, c.says)
		})
	}
	for name, cfg := range map[string]Config{
		"nothing":                      {},
		"anonymous":                    {URL: "https://scan"},
		"user":                         {URL: "http://joe:hunter2@scan"},
		"user with marks":              {URL: "http://joe:1%2Fhunt@er2@scan/%40x"},
		"token":                        {URL: "http://scan", TokenFile: "/run/token"},
		"OAuth":                        oauth(),
		"an endpoint over plain HTTP":  oauth(func(o *OAuth) { o.TokenURL = "http://keycloak:8080/token?policy=x" }),
		"client's certificate":         {URL: "https://scan", CAFile: "ca.pem", CertFile: "c.pem", KeyFile: "k.pem"},
		"authorities for the endpoint": func() Config { c := oauth(); c.URL, c.CAFile = "http://scan", "ca.pem"; return c }(),
	} {
		require.NoError(t, cfg.Check(), name)
	}
}

func TestNewReadsTheFilesAndNamesThem(t *testing.T) {
	t.Parallel()
	ca := throwaway.NewAuthority(t, "ca")
	cert, key := ca.Issue("client")
	_, otherKey := ca.Issue("other")
	for name, c := range map[string]struct {
		name, text string
		cfg        func(path string) Config
		says       string
	}{
		"empty token":           {"token", " \n", func(p string) Config { return Config{TokenFile: p} }, "--ledger-token-file: %s is empty"},
		"two tokens":            {"token", "hunter2\nhunter2", func(p string) Config { return Config{TokenFile: p} }, "--ledger-token-file: %s must hold the token"},
		"token with a NUL":      {"token", "hunter2\x00", func(p string) Config { return Config{TokenFile: p} }, "has characters that a header can't hold"},
		"token that is no text": {"token", "hunter2\xff", func(p string) Config { return Config{TokenFile: p} }, "has characters that a header can't hold"},
		"token without end":     {"token", strings.Repeat("hunter2", maxFile/7+1), func(p string) Config { return Config{TokenFile: p} }, "--ledger-token-file: %s is larger than"},
		"empty secret": {"secret", "\n", func(p string) Config { return oauth(func(o *OAuth) { o.ClientSecretFile = p }) },
			"--ledger-oauth-client-secret-file: %s is empty"},
		"two secrets": {"secret", "hunter2\nhunter2", func(p string) Config { return oauth(func(o *OAuth) { o.ClientSecretFile = p }) },
			"--ledger-oauth-client-secret-file: %s must hold one secret"},
		"authorities that are none": {"ca", "hunter2", func(p string) Config { return Config{CAFile: p} },
			"--ledger-ca-file: %s holds no certificate in PEM form"},
		"authorities with a key": {"ca", cert + key, func(p string) Config { return Config{CAFile: p} },
			"--ledger-ca-file: %s must hold certificates and nothing else, and has a PRIVATE KEY"},
		"a broken authority": {"ca", ca.PEM + "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n",
			func(p string) Config { return Config{CAFile: p} }, "--ledger-ca-file: %s has an unreadable certificate (number 2)"},
		"key of another": {"key", otherKey, func(p string) Config { return Config{CertFile: file(t, "cert", cert), KeyFile: p} },
			"--ledger-key-file %s: tls: private key does not match"},
		"certificate that is none": {"cert", "hunter2", func(p string) Config { return Config{CertFile: p, KeyFile: file(t, "key", key)} },
			"--ledger-cert-file %s and --ledger-key-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, c.name, c.text)
			cfg := c.cfg(path)
			cfg.Flags = "ledger"
			_, err := New(cfg, nil)
			require.ErrorContains(t, err, strings.ReplaceAll(c.says, "%s", path))
			require.NotContains(t, err.Error(), "hunter2")
			// It is for the operator, or for what else writes the file: the commands exit with 3, which a service manager may
			// try again, and say so.
			var problem *ledger.Problem
			require.ErrorAs(t, err, &problem)
			require.Regexp(t, "or correct --ledger-.*, and start again", problem.Do)

			require.NoError(t, os.Remove(path))
			_, err = New(cfg, nil)
			require.ErrorIs(t, err, os.ErrNotExist)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "--ledger-")
		})
	}
}

// Opening a pipe does not wait for who writes it. A link to a file is one, as Kubernetes makes them.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, t.TempDir(), os.DevNull} {
		for flag, cfg := range map[string]Config{"token-file": {TokenFile: path}, "ca-file": {CAFile: path}, "cert-file": {CertFile: path, KeyFile: path}} {
			cfg.Flags = "ledger"
			_, err := New(cfg, nil)
			require.ErrorContains(t, err, "--ledger-"+flag+": "+path+" is no regular file")
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(file(t, "token", "s3cret"), link))
	require.Equal(t, "s3cret", tokenOf(t, made(t, Config{TokenFile: link})))
}

func TestATokenFileIsReadForEveryRequest(t *testing.T) {
	t.Parallel()
	path := file(t, "token", " first\n")
	a := made(t, Config{TokenFile: path})
	require.True(t, a.Configured())
	require.Equal(t, "the file "+path, a.Origin())
	token := func() string {
		t.Helper()
		token, err := a.Token(t.Context())
		require.NoError(t, err)
		return token
	}
	require.Equal(t, "first", token())

	again, err := a.Renew(t.Context(), "first")
	require.NoError(t, err)
	require.Empty(t, again, "there is no other")

	// Replaced as tools do: another file takes the name.
	next := filepath.Join(filepath.Dir(path), "next")
	write(t, next, "second")
	require.NoError(t, os.Rename(next, path))
	fresh, err := a.Renew(t.Context(), "first")
	require.NoError(t, err)
	require.Equal(t, "second", fresh)
	require.Equal(t, "second", token())

	// Replaced in place: empty or missing for a moment.
	write(t, path, "")
	_, err = a.Token(t.Context())
	require.ErrorContains(t, err, path+" is empty")
	_, err = a.Renew(t.Context(), "second")
	require.ErrorContains(t, err, path+" is empty")
	require.NoError(t, os.Remove(path))
	_, err = a.Token(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, path, "third")
	require.Equal(t, "third", token())
	require.Equal(t, "[token], [token], [token]", a.Redact("first, second, third"), "also those that were replaced")
}

func TestCredentialsOverPlainHTTPAreWarnedOfOnce(t *testing.T) {
	t.Parallel()
	secret := file(t, "secret", "hunter2")
	for name, c := range map[string]struct {
		cfg   Config
		warns []string
	}{
		"token":            {Config{URL: "http://participant:7575", TokenFile: secret}, []string{"--ledger-url"}},
		"user":             {Config{URL: "http://joe:hunter2@participant:7575"}, []string{"--ledger-url"}},
		"address":          {Config{URL: "http://10.0.0.7", TokenFile: secret}, []string{"--ledger-url"}},
		"looks like local": {Config{URL: "http://localhost.example.com", TokenFile: secret}, []string{"--ledger-url"}},
		"endpoint": {oauth(func(o *OAuth) { o.TokenURL, o.ClientSecretFile = "http://keycloak/token", secret }),
			[]string{"--ledger-oauth-token-url"}},
		"both": {func() Config {
			c := oauth(func(o *OAuth) { o.TokenURL, o.ClientSecretFile = "http://keycloak/token", secret })
			c.URL = "http://participant"
			return c
		}(), []string{"--ledger-url", "--ledger-oauth-token-url"}},
		"nothing to send":  {Config{URL: "http://participant:7575"}, nil},
		"TLS":              {Config{URL: "https://participant:7575", TokenFile: secret}, nil},
		"this machine":     {Config{URL: "http://localhost:7575", TokenFile: secret}, nil},
		"this machine, IP": {Config{URL: "http://127.0.0.9:7575", TokenFile: secret}, nil},
		"this machine, v6": {Config{URL: "http://[::1]:7575", TokenFile: secret}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logged
			c.cfg.Flags = "ledger"
			a, err := New(c.cfg, log.logger())
			require.NoError(t, err)
			defer a.Close()
			require.Equal(t, len(c.warns), strings.Count(log.String(), "level=WARN"), log.String())
			for _, flag := range c.warns {
				require.Contains(t, log.String(), "flag="+flag)
			}
			require.NotContains(t, log.String(), "hunter2")
		})
	}
}
