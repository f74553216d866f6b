package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

const theSecret = "a secret that nobody prints"

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestAuthWithTokenFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my tokens")
	said, url, stop := start(t, "--updates", "5", "--auth", "--write-tokens", dir)
	tokens := map[string]string{}
	for _, user := range []string{"indexer", "admin"} {
		file := filepath.Join(dir, user+".token")
		require.Contains(t, said, "token-file '"+file+"'")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm())
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		tokens[user] = strings.TrimSpace(string(text))
		require.NotContains(t, said, tokens[user])
	}
	require.Contains(t, said, "--ledger-url "+url+" --ledger-token-file ")
	require.NotContains(t, said, "oauth")
	for _, c := range []struct {
		path, token string
		status      int
		says        string
	}{
		{"/v2/state/ledger-end", "", 401, `"code":"NA"`},
		{"/v2/state/ledger-end", "x", 401, `"code":"NA"`},
		{"/v2/authenticated-user", tokens["indexer"], 200, `"id":"indexer"`},
		{"/v2/users/indexer/rights", tokens["indexer"], 200, "CanReadAsAnyParty"},
		{"/v2/users/admin/rights", tokens["indexer"], 403, `"code":"NA"`},
		{"/v2/users/admin/rights", tokens["admin"], 200, "ParticipantAdmin"},
	} {
		status, body := get(t, url+c.path, c.token)
		require.Equal(t, c.status, status, "%s: %s", c.path, body)
		require.Contains(t, body, c.says)
	}
	require.NoError(t, stop())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "no file that was to be renamed is left")
}

// The requests of the README that make a user are answered.
func TestUsersOfTheReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	dir := t.TempDir()
	_, url, stop := start(t, "--updates", "5", "--auth", "--write-tokens", dir)
	token, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	require.NoError(t, err)
	want := map[string]struct {
		status int
		says   string
	}{"/v2/users": {http.StatusConflict, "USER_ALREADY_EXISTS"}, "/v2/users/indexer/rights": {http.StatusOK, "newlyGrantedRights"}}
	requests := regexp.MustCompile(`(?s)\n    curl [^\n]* \$INDEXER_LEDGER_URL(/\S+) -d '(.*?)'\n`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, requests, len(want))
	for _, request := range requests {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+request[1], strings.NewReader(request[2]))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		status, body := send(t, r, nil)
		require.Equal(t, want[request[1]].status, status, body)
		require.Contains(t, body, want[request[1]].says)
	}
	require.NoError(t, stop())
}

func TestAuthForSomeParties(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said, url, stop := start(t, "--updates", "5", "--auth", "--write-tokens", dir, "--read-as", "alice of sorts", "--read-as=-bob")
	require.Contains(t, said, "\n    --parties='alice of sorts,-bob'\n")
	parties := sandbox.NewLedger(sandbox.Options{Seed: 1}).Parties()
	require.Contains(t, said, "some parties of the ledger, for --read-as here and --parties there:\n    "+parties[0]+"\n")
	token, err := os.ReadFile(filepath.Join(dir, "indexer.token"))
	require.NoError(t, err)
	_, body := get(t, url+"/v2/users/indexer/rights", strings.TrimSpace(string(token)))
	require.NotContains(t, body, "AnyParty")
	require.Contains(t, body, `"alice of sorts"`)
	require.Contains(t, body, `"-bob"`)
	require.NoError(t, stop())
}

// At every tick the files hold new tokens; a folder that is gone is an error, which ends the command.
func TestTokenFilesAreRenewed(t *testing.T) {
	t.Parallel()
	s := &secure{Auth: true, WriteTokens: t.TempDir(), TokenLifetime: time.Hour}
	a, err := s.authority("participant::1")
	require.NoError(t, err)
	require.NoError(t, s.writeTokens(a))
	read := func() string {
		text, err := os.ReadFile(s.tokenFile(userAdmin))
		require.NoError(t, err)
		return string(text)
	}
	ctx, stop := context.WithCancel(t.Context())
	tick, done := make(chan time.Time), make(chan error, 1)
	go func() { done <- s.keepTokens(ctx, a, tick) }()
	before := read()
	tick <- time.Time{}
	tick <- time.Time{} // taken when the work of the first is done
	require.NotEqual(t, before, read())
	stop()
	require.NoError(t, <-done)

	s.WriteTokens = writeFile(t, "not-a-folder", "")
	go func() { done <- s.keepTokens(t.Context(), a, tick) }()
	tick <- time.Time{}
	require.ErrorContains(t, <-done, "--write-tokens")
}

func TestAuthWithOAuth(t *testing.T) {
	t.Parallel()
	said, url, stop := start(t, "--updates", "5", "--auth", "--client-secret-file", writeFile(t, "my-secret", theSecret+"\n"), "--token-lifetime", "77s")
	require.Contains(t, said, "--ledger-oauth-token-url "+url+"/oauth/token --ledger-oauth-client-id indexer --ledger-oauth-client-secret-file ")
	require.NotContains(t, said, theSecret)
	status, body := postForm(t, url+"/oauth/token", "wrong")
	require.Equal(t, 401, status)
	require.Contains(t, body, "invalid_client")
	status, body = postForm(t, url+"/oauth/token", theSecret)
	require.Equal(t, 200, status, body)
	var answer struct {
		Token   string `json:"access_token"`
		Expires int    `json:"expires_in"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Equal(t, 77, answer.Expires)
	status, body = get(t, url+"/v2/authenticated-user", answer.Token)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"id":"indexer"`)
	require.NoError(t, stop())
}

func postForm(t *testing.T, to, secret string) (int, string) {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"indexer"}, "client_secret": {secret}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(t, r, nil)
}

func send(t *testing.T, r *http.Request, config *tls.Config) (int, string) {
	t.Helper()
	status, body, err := try(r, config)
	require.NoError(t, err)
	return status, body
}

func try(r *http.Request, config *tls.Config) (int, string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// certificate makes a certificate for 127.0.0.1 that is trusted by its own pool.
func certificate(t *testing.T) (certFile, keyFile string, pair tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	cert, key := throwaway.NewAuthority(t, "sandbox").Issue("sandbox")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	require.NoError(t, err)
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cert))
	return writeFile(t, "cert.pem", cert), writeFile(t, "key.pem", key), pair, pool
}

func TestServesHTTPS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, _, servers := certificate(t)
	clientFile, _, client, _ := certificate(t)
	_, _, stranger, _ := certificate(t)
	request := func(url string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v2/version", nil)
		require.NoError(t, err)
		return r
	}

	said, url, stop := start(t, "--updates", "5", "--tls-cert", certFile, "--tls-key", keyFile)
	require.Regexp(t, "^https://", url)
	require.Contains(t, said, "--ledger-url "+url+" --ledger-ca-file "+certFile)
	status, _ := send(t, request(url), &tls.Config{RootCAs: servers})
	require.Equal(t, 200, status)
	_, _, err := try(request(url), nil)
	require.ErrorContains(t, err, "certificate")
	require.NoError(t, stop())

	said, url, stop = start(t, "--updates", "5", "--tls-cert", certFile, "--tls-key", keyFile, "--client-ca", clientFile)
	require.Contains(t, said, "--ledger-cert-file CERTIFICATE --ledger-key-file KEY")
	status, _ = send(t, request(url), &tls.Config{RootCAs: servers, Certificates: []tls.Certificate{client}})
	require.Equal(t, 200, status)
	for _, certificates := range [][]tls.Certificate{nil, {stranger}} {
		_, _, err = try(request(url), &tls.Config{RootCAs: servers, Certificates: certificates})
		require.Error(t, err)
	}
	require.NoError(t, stop())
}

func TestSecureFlagsThatDoNotFit(t *testing.T) {
	t.Parallel()
	certFile, keyFile, _, _ := certificate(t)
	empty, secret, missing := writeFile(t, "empty", " \n"), writeFile(t, "secret", theSecret), filepath.Join(t.TempDir(), "missing")
	tls := []string{"--tls-cert", certFile, "--tls-key", keyFile}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no way to a token":       {[]string{"--auth"}, "add --write-tokens"},
		"secret without auth":     {[]string{"--client-secret-file", secret}, "are for --auth"},
		"parties without auth":    {[]string{"--read-as", "alice"}, "are for --auth"},
		"tokens without auth":     {[]string{"--write-tokens", missing}, "are for --auth"},
		"two kinds of tokens":     {[]string{"--auth", "--write-tokens", missing, "--token-file", secret}, "leave one of them out"},
		"short life":              {[]string{"--auth", "--write-tokens", missing, "--token-lifetime", "999ms"}, "at least 1s"},
		"no secret":               {[]string{"--auth", "--client-secret-file", missing}, "read --client-secret-file"},
		"empty secret":            {[]string{"--auth", "--client-secret-file", empty}, "it is empty"},
		"tokens in a file":        {[]string{"--auth", "--write-tokens", secret}, "--write-tokens: "},
		"cert without key":        {tls[:2], "give both"},
		"key without cert":        {tls[2:], "give both"},
		"key for cert":            {[]string{"--tls-cert", keyFile, "--tls-key", certFile}, "read --tls-cert and --tls-key"},
		"authority without https": {[]string{"--client-ca", certFile}, "give --tls-cert and --tls-key"},
		"no authority":            {append(tls[:4:4], "--client-ca", missing), "read --client-ca"},
		"not an authority":        {append(tls[:4:4], "--client-ca", secret), "no PEM certificate"},
		"shown with all":          {[]string{"--all", "--auth", "--write-tokens", missing}, "leave out"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, exitFailed, exitCode(run(t.Context(), append([]string{"--updates", "5", "--listen", "127.0.0.1:0"}, c.args...), &out), &errs))
			require.Contains(t, errs.String(), c.says)
			require.NotContains(t, errs.String(), theSecret)
		})
	}
}
