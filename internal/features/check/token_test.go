package check

import (
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

// guarded is a participant that wants tokens, with a user who may read as any party.
func guarded(t *testing.T, opts sandbox.ServerOptions) (*sandbox.Authority, string, *sandbox.Ledger) {
	t.Helper()
	l := grown(20)
	a := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID()})
	a.SetUser(sandbox.User{ID: "indexer", Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	opts.Authority = a
	return a, simulated(t, l, opts), l
}

func tokenFile(t *testing.T, token string) access.Config {
	t.Helper()
	return access.Config{TokenFile: file(t, "token", token)}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	a, url, l := guarded(t, sandbox.ServerOptions{})
	a.SetUser(sandbox.User{ID: "sleeper", Deactivated: true, Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	a.SetUser(sandbox.User{ID: "admin", Rights: []sandbox.Right{sandbox.ParticipantAdmin(), sandbox.CanReadAsAnyParty()}})
	a.SetUser(sandbox.User{ID: "nobody"})
	elsewhere := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: "participant9::1220ff"})
	stranger := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID()})
	for name, c := range map[string]struct {
		token  string
		tokens []string
		says   string
	}{
		"good":                     {a.Token("indexer"), []string{"ok token/token", "ok token/audience", "ok token/accepted", "ok token/user"}, "may read as any party"},
		"with a line break":        {a.Token("indexer") + "\n", []string{"ok token/token", "ok token/audience", "ok token/accepted", "ok token/user"}, ""},
		"soon at its end":          {a.TokenFor("indexer", 10*time.Minute), []string{"warning token/token", "ok token/audience", "ok token/accepted", "ok token/user"}, "it expires at"},
		"expired":                  {a.TokenFor("indexer", -time.Hour), []string{"problem token/token", "note token/accepted"}, "it expired at"},
		"an administrator's":       {a.Token("admin"), []string{"ok token/token", "ok token/audience", "ok token/accepted", "note token/user"}, "administers the participant"},
		"of a user without right":  {a.Token("nobody"), []string{"ok token/token", "ok token/audience", "ok token/accepted", "ok token/user"}, "may read as no party"},
		"of a sleeping user":       {a.Token("sleeper"), []string{"ok token/token", "note token/audience", "problem token/accepted"}, "everything (403)"},
		"of an unknown user":       {a.Token("ghost"), []string{"ok token/token", "note token/audience", "problem token/accepted"}, "everything (403)"},
		"of another participant":   {elsewhere.Token("indexer"), []string{"ok token/token", "problem token/accepted"}, "participant9::1220ff"},
		"of another issuer":        {stranger.Token("indexer"), []string{"ok token/token", "problem token/accepted"}, "refuses the token (401)"},
		"not a token of this sort": {"0paque-s3cret", []string{"note token/token", "problem token/accepted"}, "no JSON web token"},
	} {
		report := look(t, Config{LedgerURL: url, LedgerAccess: tokenFile(t, c.token)})
		require.Equal(t, c.tokens, of(report, GroupToken), name)
		text := ""
		for _, f := range report.Findings {
			text += f.Text + "\n"
		}
		require.Contains(t, text, c.says, name)
		requireNoSecret(t, report, strings.TrimSpace(c.token), c.token[strings.LastIndexByte(c.token, '.')+1:])
		if strings.Contains(name, "good") {
			require.Contains(t, levels(report), "ok scope/reading")
		} else if report.Problems > 0 {
			require.Empty(t, report.Next)
		}
	}
}

// The lifetime is named where it may be what the server refuses.
func TestARefusedTokenThatLivesLong(t *testing.T) {
	t.Parallel()
	_, url, _ := guarded(t, sandbox.ServerOptions{})
	stranger := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: grown(1).ParticipantID()})
	for lifetime, named := range map[time.Duration]bool{time.Hour: true, 4 * time.Minute: false} {
		report := look(t, Config{LedgerURL: url, LedgerAccess: tokenFile(t, stranger.TokenFor("indexer", lifetime))})
		f := find(t, report, GroupToken, "accepted")
		require.Equal(t, Problem, f.Level)
		require.Equal(t, named, strings.Contains(f.Text, "it lives for "), f.Text)
		require.Equal(t, named, strings.Contains(f.Do, "tokens issued for 5 minutes at most, or max-token-lifetime"), f.Do)
	}
}

// A token that is well signed, for another participant: the server refuses it with 403, and does not say who it is.
func TestTokenOfAnotherParticipant(t *testing.T) {
	t.Parallel()
	elsewhere := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: "participant9::1220ff"})
	elsewhere.SetUser(sandbox.User{ID: "indexer", Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	url := simulated(t, grown(5), sandbox.ServerOptions{Authority: elsewhere})
	report := look(t, Config{LedgerURL: url, LedgerAccess: tokenFile(t, elsewhere.Token("indexer"))})
	require.Equal(t, []string{"ok token/token", "note token/audience", "problem token/accepted"}, of(report, GroupToken))
	require.Contains(t, find(t, report, GroupToken, "audience").Text, "participant9::1220ff")
	require.Contains(t, find(t, report, GroupToken, "accepted").Do, "meant for this participant")
	require.Equal(t, 1, report.Problems)
}

func TestTokenIsNeededOrNot(t *testing.T) {
	t.Parallel()
	_, url, _ := guarded(t, sandbox.ServerOptions{})
	report := look(t, Config{LedgerURL: url})
	require.Equal(t, []string{"problem token/token"}, of(report, GroupToken))
	require.Equal(t, 1, report.Problems)
	require.Contains(t, find(t, report, GroupToken, "token").Do, "--ledger-token-file")

	report = look(t, Config{LedgerURL: simulated(t, grown(5), sandbox.ServerOptions{})})
	require.Equal(t, []string{"ok token/token"}, of(report, GroupToken))

	// A token that nobody asks for does no harm.
	report = look(t, Config{LedgerURL: simulated(t, grown(5), sandbox.ServerOptions{}), LedgerAccess: tokenFile(t, "0paque")})
	require.Equal(t, []string{"note token/token", "ok token/accepted", "note token/user"}, of(report, GroupToken))
}

func TestTokenFiles(t *testing.T) {
	t.Parallel()
	a, url, _ := guarded(t, sandbox.ServerOptions{})
	open := file(t, "token", a.Token("indexer"))
	require.NoError(t, os.Chmod(open, 0o644))
	report := look(t, Config{LedgerURL: url, LedgerAccess: access.Config{TokenFile: open}})
	f := find(t, report, GroupToken, "file")
	require.Equal(t, Warning, f.Level)
	require.Equal(t, []string{"chmod 600 " + config.ShellWord(open)}, f.Paste)

	open = file(t, "secret", "s3cret")
	require.NoError(t, os.Chmod(open, 0o604))
	report = look(t, Config{
		LedgerURL: "https://127.0.0.1:1", LedgerAccess: access.Config{OAuth: access.OAuth{TokenURL: url, ClientID: "c", ClientSecretFile: open}},
		ScanURL: serve(t, scanService(t, scanOptions{})).URL, ScanAccess: access.Config{TokenFile: open},
	})
	require.Contains(t, find(t, report, GroupToken, "file").Text, "can read or change the client secret")
	require.Contains(t, find(t, report, GroupScan, "file").Text, "can read or change the token")

	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for name, cfg := range map[string]access.Config{
		"a pipe":             {TokenFile: pipe},
		"missing":            {TokenFile: filepath.Join(t.TempDir(), "none")},
		"a folder":           {TokenFile: t.TempDir()},
		"empty":              tokenFile(t, " \n"),
		"two tokens":         tokenFile(t, "s3cret\ns3cret"),
		"control characters": tokenFile(t, "s3cret\x1b[2J"),
	} {
		report := look(t, Config{LedgerURL: url, LedgerAccess: cfg})
		require.Contains(t, of(report, GroupToken), "problem token/token", name)
		require.Equal(t, 1, report.Problems, name)
		require.Contains(t, find(t, report, GroupToken, "token").Text, "--ledger-token-file", name)
		requireNoSecret(t, report, "s3cret")
	}

	// The file is looked at also where the server can't be.
	report = look(t, Config{LedgerURL: "http://127.0.0.1:1", LedgerAccess: tokenFile(t, a.TokenFor("indexer", -time.Hour))})
	require.Equal(t, []string{"problem token/token"}, of(report, GroupToken))
}

func TestTokensFromAnEndpoint(t *testing.T) {
	t.Parallel()
	a, url, _ := guarded(t, sandbox.ServerOptions{})
	a.AddClient("client", "s3cret", "indexer")
	endpoint := httptest.NewServer(a)
	t.Cleanup(endpoint.Close)
	oauth := func(secret string) access.Config {
		return access.Config{OAuth: access.OAuth{TokenURL: endpoint.URL, ClientID: "client", ClientSecretFile: file(t, "secret", secret)}}
	}
	report := look(t, Config{LedgerURL: url, LedgerAccess: oauth("s3cret")})
	require.Equal(t, []string{"ok token/token", "ok token/audience", "ok token/accepted", "ok token/user"}, of(report, GroupToken))
	require.Contains(t, find(t, report, GroupToken, "token").Text, "renewed before it expires")
	requireNoSecret(t, report, "s3cret")

	report = look(t, Config{LedgerURL: url, LedgerAccess: oauth("wr0ng")})
	require.Equal(t, []string{"problem token/token"}, of(report, GroupToken))
	f := find(t, report, GroupToken, "token")
	require.Contains(t, f.Do, "check --ledger-oauth-client-id")
	require.NotContains(t, f.Text, f.Do, "once is enough")
	require.Equal(t, 1, report.Problems)
	requireNoSecret(t, report, "wr0ng")

	// What is refused came from an endpoint, and no file holds it.
	opaque := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "0paque", "token_type": "Bearer"}`)
	}))
	elsewhere := oauth("s3cret")
	elsewhere.OAuth.TokenURL = opaque.URL
	f = find(t, look(t, Config{LedgerURL: url, LedgerAccess: elsewhere}), GroupToken, "accepted")
	require.Contains(t, f.Text, "no JSON web token")
	require.Contains(t, f.Do, "--ledger-oauth-audience")

	// Nobody can be at two places.
	both := oauth("s3cret")
	both.TokenFile = file(t, "token", "t0ken")
	report = look(t, Config{LedgerURL: url, LedgerAccess: both})
	require.Contains(t, of(report, GroupToken), "problem token/token")
}

// What a token says of itself, by tokens that no server here would accept.
func TestClaims(t *testing.T) {
	t.Parallel()
	url := simulated(t, grown(5), sandbox.ServerOptions{})
	jwt := func(payload string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(payload)) + ".s3cret"
	}
	for payload, want := range map[string][]string{
		`{"sub": "u"}`: {"note token/token", "note token/audience"},
		`{"sub": "u", "scope": "daml_ledger_api"}`:                           {"note token/token", "note token/audience"},
		`{"sub": "u", "aud": "https://example.com"}`:                         {"note token/token", "note token/audience"},
		`{"sub": "u", "aud": ["a", "b", "c", "d", "e"], "exp": 4102444800}`:  {"ok token/token", "note token/audience"},
		`{"sub": "u", "aud": "https://daml.com/jwt/aud/participant/p9::12"}`: {"note token/token", "problem token/audience"},
		`{"exp": 4102444800}`: {"ok token/token", "warning token/subject", "note token/audience"},
		`{"sub": "` + strings.Repeat("x", 10_000) + `\u001b[2J\n'", "iss": "\u0000", "aud": ["\u0007"], "exp": 1e300}`: {"note token/token", "note token/audience"},
		`{"sub": 7, "aud": {"a": 1}, "exp": "soon"}`: {"note token/token", "warning token/subject", "note token/audience"},
		`{}`: {"note token/token", "warning token/subject", "note token/audience"},
	} {
		report := look(t, Config{LedgerURL: url, LedgerAccess: tokenFile(t, jwt(payload))})
		found := of(report, GroupToken)
		require.Equal(t, append(want, "ok token/accepted", "note token/user"), found, payload)
		for _, f := range report.Findings {
			require.Less(t, len(f.Text), 1000)
		}
		requireNoSecret(t, report, "s3cret")
	}
}

// An endpoint that says nothing is the problem, not a file.
func TestATokenEndpointThatIsSilent(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	oauth := access.Config{OAuth: access.OAuth{TokenURL: endpoint.URL + "/t", ClientID: "client", ClientSecretFile: file(t, "secret", "s3cret")}}
	report := look(t, Config{
		LedgerURL: simulated(t, grown(5), sandbox.ServerOptions{}), LedgerAccess: oauth,
		ScanURL: serve(t, scanService(t, scanOptions{})).URL, ScanAccess: oauth, Timeout: shortPatience,
	})
	for group, flags := range map[string]string{GroupToken: "ledger", GroupScan: "scan"} {
		f := find(t, report, group, "token")
		require.Equal(t, Problem, f.Level)
		require.Equal(t, "the token endpoint "+endpoint.URL+"/t does not answer within "+shortPatience.String(), f.Text)
		require.Equal(t, "check --"+flags+"-oauth-token-url and the network in between", f.Do)
	}
}

// The participant may be in reach without TLS, and the token endpoint with an authority of its own.
func TestTLSForTheTokenEndpointAlone(t *testing.T) {
	t.Parallel()
	a, url, _ := guarded(t, sandbox.ServerOptions{})
	a.AddClient("client", "s3cret", "indexer")
	endpoint := httptest.NewTLSServer(a)
	t.Cleanup(endpoint.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: endpoint.Certificate().Raw})
	report := look(t, Config{LedgerURL: url, LedgerAccess: access.Config{CAFile: file(t, "ca", string(authority)),
		OAuth: access.OAuth{TokenURL: endpoint.URL, ClientID: "client", ClientSecretFile: file(t, "secret", "s3cret")}}})
	require.Zero(t, report.Problems)
	require.Contains(t, levels(report), "ok scope/reading")
}

// A proxy that lets nobody in, in its own words. Where nothing is let through, the user is not what is wrong.
func TestAProxyThatRefuses(t *testing.T) {
	t.Parallel()
	for status, topic := range map[int]string{http.StatusUnauthorized: "token", http.StatusForbidden: "token", http.StatusProxyAuthRequired: ""} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>no", status)
		})).URL
		report := look(t, Config{LedgerURL: url})
		if topic == "" {
			require.Positive(t, report.Problems)
			continue
		}
		require.Equal(t, []string{"problem token/" + topic}, of(report, GroupToken), status)
		require.Equal(t, 1, report.Problems)
		if status == http.StatusForbidden {
			report = look(t, Config{LedgerURL: url, LedgerAccess: tokenFile(t, "0paque")})
			require.Equal(t, []string{"note token/token", "problem token/accepted"}, of(report, GroupToken))
			f := find(t, report, GroupToken, "accepted")
			require.Contains(t, f.Text, "not as a participant does")
			require.Contains(t, f.Do, "see what stands between here and --ledger-url")
			require.Equal(t, 1, report.Problems)
		}
	}
}

// A user in the URL is for a proxy, and is shown nowhere.
func TestUserInTheURL(t *testing.T) {
	t.Parallel()
	inner := sandbox.NewServer(grown(5), sandbox.ServerOptions{})
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "joe" || password != "hunter2" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	report := look(t, Config{LedgerURL: strings.Replace(server.URL, "//", "//joe:hunter2@", 1)})
	require.Equal(t, []string{"note token/token"}, of(report, GroupToken))
	require.Contains(t, levels(report), "ok scope/reading")
	requireNoSecret(t, report, "hunter2", "joe")
}
