package scan

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/ledger"
)

// What each answer means for reading on, for looking at the newest records and for asking the version.
func TestWhatEachStatusMeans(t *testing.T) {
	t.Parallel()
	const (
		again = iota
		act
		refused // the cursor, where one was sent; else again
		missing
	)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   int
		says   string
	}{
		"an error with a cursor":        {answer(500, `{"error":"An unexpected error occurred."}`), refused, ": HTTP status 500 Internal Server Error: An unexpected error occurred."},
		"an error, unusual":             {answer(500, `{"error":{"code":7}}`), refused, `; the answer begins "{\"error\":{\"code\":7}}"`},
		"a proxy's error":               {plain(500, "<html>"), refused, `; the answer begins "<html>"`},
		"bad gateway":                   {plain(502, "<html>\x00\x1b[31m"+strings.Repeat("x", 100_000)), again, `the answer begins "<html> [31mxxx`},
		"unavailable":                   {answer(503, `{"error":"\u001b[2J\nplease\twait"}`), again, ": HTTP status 503 Service Unavailable: [2J please wait"},
		"gateway timeout":               {plain(504, ""), again, "504 Gateway Timeout"},
		"too many requests":             {answer(429, `{"error":"slower"}`), again, "429 Too Many Requests: slower"},
		"request timeout":               {plain(408, ""), again, "408 Request Timeout"},
		"odd":                           {plain(599, ""), again, "HTTP status 599"},
		"teapot":                        {plain(418, "sorry"), again, "418 I'm a teapot"},
		"a proxy's bad request":         {plain(400, "<html>400"), again, `the answer begins "<html>400"`},
		"a bad request":                 {answer(400, `{"error":"no such order"}`), act, "the Scan service refuses the request as invalid. see that --scan-url is a Scan service of Splice 0.6"},
		"wants a token":                 {plain(401, "who?"), act, "the Scan service wants a token and none is configured. give the file that holds it with --scan-token-file, or have tokens fetched with --scan-oauth-token-url; a Scan service itself wants neither"},
		"forbidden":                     {plain(403, "RBAC: access denied"), act, "the server refuses access, which a Scan service does to nobody: a proxy before it does. ask who runs the service to let this machine in"},
		"too large for a proxy":         {plain(413, ""), act, "the server says that the request or its answer is too large, even for a single record. raise the limit"},
		"unknown path":                  {answer(404, `{"error":"The requested resource could not be found."}`), missing, "404 Not Found: The requested resource could not be found."},
		"a proxy's unknown path":        {plain(404, "<html>nginx"), missing, "and what answers does not speak as a Scan service; is --scan-url the base of one, such as https://scan.example.com/api/scan?"},
		"another method":                {answer(405, ``), missing, "405 Method Not Allowed"},
		"another service's bad request": {answer(400, `{"code":"INVALID_ARGUMENT","cause":"no update_format"}`), missing, "400 Bad Request"},
		"not implemented":               {answer(501, ``), missing, "501 Not Implemented"},
		"a redirect is not taken": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example.com/start?code=hunter2", http.StatusTemporaryRedirect)
		}, again, ": HTTP status 307 Temporary Redirect: it redirects to https://login.example.com/start, which is not followed; set --scan-url"},
		"a web page": {plain(200, "<html>  <body>Please log in"), again, `content type "text/html; charset=UTF-8" instead of application/json; is --scan-url the base of the JSON API?; the answer begins "<html> <body>Please log in"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.answer)
			for operation, err := range each(t, client(t, Config{URL: s.URL, Reached: true})) {
				require.NotContains(t, err.Error(), "hunter2")
				require.NotContains(t, err.Error(), "\x1b")
				require.Less(t, len(err.Error()), 1000)
				if c.want == act && name == "too large for a proxy" && operation == "version" {
					_ = retryable(t, err)
					continue
				}
				var e *Error
				switch {
				case c.want == act:
					require.Contains(t, problem(t, err), c.says)
				case c.want == missing:
					path := map[string]string{"version": "GET " + s.URL + pathVersion}[operation]
					if path == "" {
						path = "POST " + s.URL + pathTransactions
					}
					require.ErrorIs(t, err, ledger.ErrNotOffered)
					require.ErrorContains(t, err, path, "what was asked is said")
					require.ErrorContains(t, err, c.says)
				case c.want == refused && operation == "transactions":
					require.ErrorIs(t, err, ledger.ErrCursorRefused)
					require.ErrorContains(t, err, `read transactions after event id "#1220a:0": the service fails to read on after this event id: transactions: HTTP status 500`)
					require.ErrorContains(t, err, c.says)
				default:
					_ = retryable(t, err)
					require.ErrorContains(t, err, c.says)
				}
				require.ErrorAs(t, err, &e)
				require.Equal(t, operation, e.Operation)
			}
		})
	}
}

// Only a cursor can be refused: from the beginning a 500 is trouble.
func TestAnErrorWithoutACursorMayPass(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(500, `{"error":"An unexpected error occurred."}`))
	_, err := client(t, Config{URL: s.URL}).TransactionsAfter(t.Context(), "")
	require.Equal(t, http.StatusInternalServerError, retryable(t, err).Status)
	require.ErrorContains(t, err, "read transactions from the beginning: transactions: HTTP status 500")
}

// A proxy that finds no service behind it for a while, or refuses access, does not end the history; a service without
// it does.
func TestAHistoryThatWasThereIsLookedForAgain(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[http.HandlerFunc]
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { (*now.Load())(w, r) })
	c := client(t, Config{URL: s.URL})
	to := func(handle http.HandlerFunc) { now.Store(&handle) }
	to(answer(200, page("#1:0")))
	_, err := c.TransactionsAfter(t.Context(), "")
	require.NoError(t, err)

	to(plain(404, "default backend - 404"))
	_, err = c.TransactionsAfter(t.Context(), "#1:0")
	_ = retryable(t, err)
	require.ErrorContains(t, err, "POST "+s.URL+"/v0/transactions was there before, and what answers now is not a Scan service")
	require.ErrorContains(t, err, `the answer begins "default backend - 404"`)

	to(plain(403, "<html>too many requests from your address"))
	_, err = c.TransactionsAfter(t.Context(), "#1:0")
	require.Equal(t, http.StatusForbidden, retryable(t, err).Status)
	require.ErrorContains(t, err, "a proxy before it does; it let requests through before, so it is asked again")
	require.ErrorContains(t, err, "too many requests from your address")

	to(answer(404, `{"error":"The requested resource could not be found."}`))
	_, err = c.TransactionsAfter(t.Context(), "#1:0")
	require.ErrorIs(t, err, ledger.ErrNotOffered)
}

// What tells who it is has let us in.
func TestARefusalAfterTheServiceWasMet(t *testing.T) {
	t.Parallel()
	refused := plain(403, "<html>too many requests from your address")
	s := serve(t, described(map[string]http.HandlerFunc{pathVersion: answer(200, `{"version":"0.6.1"}`), pathTransactions: refused}))
	c := client(t, Config{URL: s.URL})
	_, err := c.TransactionsAfter(t.Context(), "")
	require.Contains(t, problem(t, err), "ask who runs the service to let this machine in")
	_, err = c.Version(t.Context())
	require.NoError(t, err)
	_, err = c.TransactionsAfter(t.Context(), "")
	require.Equal(t, http.StatusForbidden, retryable(t, err).Status)
}

func TestHowLongToWait(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 500, 503} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3")
			answer(status, `{"error":"too many"}`)(w, r)
		})
		for _, err := range each(t, client(t, Config{URL: s.URL})) {
			var waits interface{ Wait() time.Duration }
			require.ErrorAs(t, err, &waits)
			require.Equal(t, 3*time.Second, waits.Wait())
		}
	}
	busy := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "17")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	c := client(t, Config{URL: busy.URL, Access: access.Config{
		OAuth: access.OAuth{TokenURL: busy.URL + "/token", ClientID: "indexer", ClientSecretFile: fileOf(t, "hunter2")},
	}})
	_, err := c.TransactionsAfter(t.Context(), "")
	require.Equal(t, 17*time.Second, retryable(t, err).Wait(), "the token endpoint's patience counts too")
}

// A configured token may be replaced while nothing restarts; a user in the URL can't.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	s := serve(t, plain(401, ""))
	path := fileOf(t, "e30.eyJzdWIiOiJhbGljZSIsImV4cCI6MTcwMDAwMDAwMH0.x")
	_, err := client(t, Config{URL: s.URL, Access: access.Config{TokenFile: path}}).TransactionsAfter(t.Context(), "")
	_ = retryable(t, err)
	require.ErrorContains(t, err, "the Scan service refused the token of the file "+path+
		", which expired at 2023-11-14T22:13:20Z; another one is used with the next try: transactions: HTTP status 401")

	_, err = client(t, Config{URL: strings.Replace(s.URL, "//", "//joe:hunter2@", 1)}).TransactionsAfter(t.Context(), "")
	require.Contains(t, problem(t, err), "the Scan service, or a proxy before it, refused the user and password in --scan-url. "+
		"correct them, or give a token with --scan-token-file")
}
