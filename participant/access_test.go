package participant

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/tools/throwaway"
)

// jwtOf is a token with these claims.
func jwtOf(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("a signature"))
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// guarded answers only to the token that is good at the moment.
func guarded(good *atomic.Pointer[string], handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*good.Load() {
			cantonError(http.StatusUnauthorized, "NA", "A security-sensitive error has been received", `"ledger_api_error":"invalid token"`)(w, r)
			return
		}
		handle(w, r)
	}
}

func good(token string) *atomic.Pointer[string] {
	var p atomic.Pointer[string]
	p.Store(&token)
	return &p
}

// withOAuth gets tokens from an endpoint that gives the next one whenever it is asked.
func withOAuth(t *testing.T, next func() string) (option func(*Config), endpoint *httptest.Server) {
	endpoint = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, next()))(w, nil)
	}))
	t.Cleanup(endpoint.Close)
	secret := fileOf(t, "hunter2")
	return func(cfg *Config) {
		cfg.Access.OAuth = access.OAuth{TokenURL: endpoint.URL + "/token", ClientID: "indexer", ClientSecretFile: secret}
	}, endpoint
}

// counted gives token-1, token-2, ...
func counted() (next func() string, count *atomic.Int64) {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("token-%d", n.Add(1)) }, &n
}

func TestARefusedTokenIsReplacedAndTheRequestSentAgain(t *testing.T) {
	t.Parallel()
	next, count := counted()
	option, _ := withOAuth(t, next)
	now := good("token-1")
	f := newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: guarded(now, answer(`{"offset":7}`))})
	var told []int
	c := newClient(t, f, with35, anyParty, option, func(cfg *Config) {
		cfg.Observe = func(_ context.Context, _ string, status int, _ time.Duration, _ int64) { told = append(told, status) }
	})
	_, err := c.LedgerEnd(t.Context())
	require.NoError(t, err)
	second := "token-2"
	now.Store(&second)
	end, err := c.LedgerEnd(t.Context())
	require.NoError(t, err, "nobody notices")
	require.EqualValues(t, 7, end)
	require.Equal(t, []int{200, 401, 200}, told)
	require.EqualValues(t, 2, count.Load())
}

func TestATokenThatIsRefusedForGoodBacksOffAndSaysSo(t *testing.T) {
	t.Parallel()
	next, count := counted()
	option, endpoint := withOAuth(t, next)
	f := newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: guarded(good("another"), answer(`{"offset":7}`))})
	c := newClient(t, f, with35, anyParty, option)
	_, err := c.LedgerEnd(t.Context())
	require.Equal(t, http.StatusUnauthorized, retryable(t, err).Status)
	require.ErrorContains(t, err, "the participant refused the token of the token endpoint "+endpoint.URL+"/token; another one is used with the next try: ")
	require.Len(t, f.requests(), 2, "one fresh token is tried")
	require.EqualValues(t, 2, count.Load())
}

func TestARefusedTokenThatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	next, _ := counted()
	option, endpoint := withOAuth(t, next)
	now := good("token-1")
	f := newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: guarded(now, answer(`{"offset":7}`))})
	c := newClient(t, f, with35, anyParty, option)
	_, err := c.LedgerEnd(t.Context())
	require.NoError(t, err)
	other := "another"
	now.Store(&other)
	endpoint.Close()
	_, err = c.LedgerEnd(t.Context())
	require.Equal(t, http.StatusUnauthorized, retryable(t, err).Status)
	require.ErrorContains(t, err, "no token from "+endpoint.URL+"/token: ")
	_, err = c.LedgerEnd(t.Context())
	require.Zero(t, retryable(t, err).Status, "there is none to send any more")
	require.Len(t, f.requests(), 2)
}

func TestATokenThatEndsOnTheWayIsReplaced(t *testing.T) {
	t.Parallel()
	next, count := counted()
	option, _ := withOAuth(t, next)
	var refuse atomic.Value
	f := newFake(t, map[string]http.HandlerFunc{pathUpdates: func(w http.ResponseWriter, r *http.Request) {
		if code := refuse.Swap("").(string); code != "" {
			answerOf(2, code, "no")(w, r)
			return
		}
		answer(transactions(5))(w, r)
	}})
	c := newClient(t, f, with35, anyParty, option)
	refuse.Store("ACCESS_TOKEN_EXPIRED")
	_, _, err := c.TailUpdates(t.Context(), 4, 1, time.Second)
	require.NoError(t, err)
	require.EqualValues(t, 2, count.Load())

	refuse.Store("STALE_STREAM_AUTHORIZATION") // the same token may be good again: the next try says
	_, _, err = c.TailUpdates(t.Context(), 4, 1, time.Second)
	require.Equal(t, "STALE_STREAM_AUTHORIZATION", retryable(t, err).Code)
	_, _, err = c.TailUpdates(t.Context(), 4, 1, time.Second)
	require.NoError(t, err)
}

func TestARefusedTokenIsDescribed(t *testing.T) {
	t.Parallel()
	const later = 4102444800 // 2100
	for claims, want := range map[string]string{
		`{"sub":"alice","exp":1700000000}`:                               ", which expired at 2023-11-14T22:13:20Z; another one is used with the next try",
		fmt.Sprintf(`{"sub":"al\nice","aud":["x","y"],"exp":%d}`, later): `, which is for user "al ice" and audience "x y" and valid until 2100-01-01T00:00:00Z, so lives for `,
		fmt.Sprintf(`{"sub":"alice","aud":"x","iat":%d,"exp":%d}`, later-301, later): `valid until 2100-01-01T00:00:00Z, so lives for 5m1s: ` +
			`a participant accepts at most 5m0s unless its max-token-lifetime says otherwise; another one is used`,
		fmt.Sprintf(`{"sub":"alice","aud":"x","iat":%d,"exp":%d}`, later-300, later): `valid until 2100-01-01T00:00:00Z;`,
		`{}`: `, which is for user "" and audience "";`,
	} {
		f := newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: answerOf(6, "", "")})
		file := fileOf(t, jwtOf(claims))
		c := newClient(t, f, with35, anyParty, withTokenFile(file))
		_, err := c.LedgerEnd(t.Context())
		_ = retryable(t, err)
		require.ErrorContains(t, err, "refused the token of the file "+file)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), strings.Split(jwtOf(claims), ".")[1])
	}
}

func TestRefusedUserOfTheURL(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		plain(http.StatusUnauthorized, fmt.Sprint("who is ", user, " with ", password, " of ", r.Header["Authorization"]))(w, r)
	}})
	c := newClient(t, f, with35, anyParty, func(cfg *Config) { cfg.URL = strings.Replace(f.URL, "http://", "http://joe:s3cret%2F1@", 1) })
	_, err := c.LedgerEnd(t.Context())
	require.Contains(t, problem(t, err), "refused the user and password in --ledger-url. correct them")
	require.ErrorContains(t, err, "who is joe with [password] of [Basic [password]]")
	require.NotContains(t, err.Error(), "s3cret")
}

// A secret that is cut in two would be found by nobody.
func TestSecretsAreTakenOutBeforeAnythingIsCut(t *testing.T) {
	t.Parallel()
	token := jwtOf(`{"sub":"alice","and":"` + strings.Repeat("x", 400) + `"}`)
	echo := func(status int, kind, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "/login/"+token+"?x="+token)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(format, "%", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		}
	}
	parts := strings.Split(token, ".")
	for name, handle := range map[string]http.HandlerFunc{
		"near the end":     echo(502, "text/plain", strings.Repeat("y", 280)+"%"),
		"error object":     echo(500, "application/json", `{"code":"% C","cause":"of %","correlationId":"%","context":{"%":"%"},"resources":[["%","%"]]}`),
		"in a good answer": echo(200, "application/json", `{"offset":null,"got":"%"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: handle})
			var log strings.Builder
			_, err := newClient(t, f, with35, anyParty, withToken(t, token), func(cfg *Config) {
				cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			}).LedgerEnd(t.Context())
			require.Error(t, err)
			text := fmt.Sprintf("%v %+v", err, err) + log.String()
			var e *Error
			if errors.As(err, &e) {
				text += fmt.Sprintf("%+v", *e)
			}
			for _, part := range []string{token, parts[1], parts[1][:60], parts[2]} {
				require.NotContains(t, text, part)
			}
		})
	}
	f := newFake(t, map[string]http.HandlerFunc{pathParticipantID: echo(200, "application/json", `{"participantId":"%"}`),
		pathLedgerEnd: answer(`{"offset":7}`)})
	c := newClient(t, f, with35, anyParty, withToken(t, token))
	_, _, err := c.Peek(t.Context())
	require.ErrorContains(t, err, "holds a secret that was sent")
	require.NotContains(t, err.Error(), parts[1])
}

// A server that takes the token for the user's name is not believed, and the token not printed.
func TestTheTokenIsNoUser(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathAuthenticatedUser: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"user":{"id":"`+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}`)
	}})
	_, err := newClient(t, f, with35, anyParty, withToken(t, "opaque")).User(t.Context())
	require.ErrorContains(t, err, "holds a secret that was sent")
	require.NotContains(t, err.Error(), "opaque")
}

// A password that happens to be part of an id leaves the id alone: it is data, which is compared and stored.
func TestDataIsNotRedacted(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathParticipantID: answer(`{"participantId":"participant1::1220"}`),
		pathLedgerEnd: answer(`{"offset":7}`)})
	c := newClient(t, f, with35, anyParty, func(cfg *Config) {
		cfg.URL = strings.Replace(cfg.URL, "http://", "http://x:participant1@", 1)
	})
	id, _, err := c.Peek(t.Context())
	require.NoError(t, err)
	require.Equal(t, "participant1::1220", id)
	require.NotContains(t, c.redact(id), "participant1")
}

// tlsFake is a server with a certificate that nobody knows but its file.
func tlsFake(t *testing.T, handle http.Handler) (server *httptest.Server, caFile string) {
	server = httptest.NewUnstartedServer(handle)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, fileOf(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func TestUntrustedServerNeedsAnOperatorAtFirst(t *testing.T) {
	t.Parallel()
	server, caFile := tlsFake(t, newFake(t, everything()).Config.Handler)
	c, err := New(Config{URL: server.URL}, anyParty)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.Discover(t.Context())
	require.Regexp(t, `^the certificate of https://127.0.0.1:\d+ is signed by "O=Acme Co", which is not trusted. give the certificate of that authority with --ledger-ca-file$`,
		problem(t, err))

	c, err = New(Config{URL: server.URL, Access: access.Config{CAFile: caFile}}, anyParty)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.Discover(t.Context())
	require.NoError(t, err)

	// Something else answers now. It was right before, so it may be so again.
	require.NoError(t, os.WriteFile(caFile, []byte(throwaway.NewAuthority(t, "another").PEM), 0o600))
	_, err = c.LedgerEnd(t.Context())
	require.Zero(t, retryable(t, err).Status)
	require.ErrorContains(t, err, "which is not trusted; put the certificate of that authority into "+caFile+" (--ledger-ca-file)")
}
