package access

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo sends back all that came, as a talkative endpoint may.
func echo(status int, contentType, format string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		got, _ := json.Marshal(fmt.Sprint(r.PostForm, r.Header["Authorization"]))
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(format, "%", string(got)))
	}
}

func TestErrorsOfTheEndpointSayWhatToDoAndNoSecret(t *testing.T) {
	t.Parallel()
	const (
		who   = "check --ledger-oauth-client-id and the secret in "
		what  = "check --ledger-oauth-audience and --ledger-oauth-scopes"
		where = "check --ledger-oauth-token-url"
	)
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		status int
		code   string
		says   []string
	}{
		"wrong secret": {echo(401, "application/json", `{"error":"invalid_client","error_description":%}`), 401, "invalid_client",
			[]string{"HTTP status 401 Unauthorized: invalid_client: map[", "[secret]", who, "the client credentials grant"}},
		"wrong grant": {echo(400, "application/json;charset=UTF-8", `{"error":"unauthorized_client"}`), 400, "unauthorized_client", []string{who}},
		"wrong scope": {echo(400, "application/json", `{"error":"invalid_scope","error_description":"no such\nscope"}`), 400, "invalid_scope",
			[]string{"invalid_scope: no such scope; " + what}},
		"wrong audience": {echo(403, "application/json", `{"error":"access_denied","error_description":"Service not enabled"}`), 403, "access_denied",
			[]string{what}},
		"another grant":       {echo(400, "application/json", `{"error":"unsupported_grant_type"}`), 400, "unsupported_grant_type", []string{"does not give tokens for client credentials"}},
		"another code":        {echo(400, "application/json", `{"error":"odd"}`), 400, "odd", []string{who, "--ledger-oauth-scopes"}},
		"an error that is OK": {echo(200, "application/json", `{"error":"invalid_client"}`), 200, "invalid_client", []string{": invalid_client; " + who}},
		"as a form":           {echo(400, "application/x-www-form-urlencoded", `error=invalid_client&error_description=no`), 400, "invalid_client", []string{"invalid_client: no"}},
		"plain text":          {echo(401, "text/plain", `who are you? %`), 401, "", []string{`the answer begins "who are you?`, "[secret]", who}},
		"a web page":          {echo(404, "text/html", "<html>%</html>"), 404, "", []string{"404 Not Found", `the answer begins "<html>`, where}},
		"empty":               {echo(400, "application/json", ""), 400, "", []string{`the answer begins ""`, where}},
		"away":                {echo(503, "text/html", "maintenance: %"), 503, "", []string{"status 503", "maintenance"}},
		"no JSON":             {echo(200, "application/json", "hello %"), 0, "", []string{"oauth2: cannot parse json", where}},
		"no token":            {echo(200, "application/json", `{"expires_in":5}`), 0, "", []string{"missing access_token", where}},
		"another type": {echo(200, "application/json", `{"access_token":"abcd","token_type":"DPoP"}`), 200, "",
			[]string{"it returned a token of type DPoP", where}},
		"a token with a line break": {echo(200, "application/json", `{"access_token":"ab\ncd","token_type":"Bearer"}`), 200, "",
			[]string{"a header can't hold"}},
		"wrong types": {echo(400, "application/json", `{"error":7,"error_description":[%]}`), 400, "", []string{`the answer begins "{`, where}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			e.answers(c.handle)
			a, _ := e.client()
			_, err := a.Token(t.Context())
			var told *TokenError
			require.ErrorAs(t, err, &told)
			require.Equal(t, c.status, told.Status)
			require.Equal(t, c.code, told.Code)
			require.ErrorContains(t, err, "no token from "+e.URL+"/token")
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "p0licy")
			require.Less(t, len(err.Error()), 1500)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// The secret would go to whomever the endpoint names.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	t.Cleanup(thief.Close)
	e := newEndpoint(t)
	e.answers(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/token?code=p0licy", http.StatusTemporaryRedirect)
	})
	a, _ := e.client()
	_, err := a.Token(t.Context())
	require.ErrorContains(t, err, "it redirects to "+thief.URL+"/token, which is not followed: check --ledger-oauth-token-url")
	require.NotContains(t, err.Error(), "p0licy")
	require.False(t, followed.Load())
}

func TestAnEndpointThatIsAwayOrSilent(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	e.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	a, _ := e.client()
	a.tokens.http.Timeout = 20 * time.Millisecond
	_, err := a.Token(t.Context())
	var told *TokenError
	require.ErrorAs(t, err, &told)
	require.Zero(t, told.Status)
	require.ErrorContains(t, err, "no answer within 20ms")

	e.Close()
	a, _ = e.client() // one that waits for as long as it takes to be refused
	_, err = a.Token(t.Context())
	require.ErrorAs(t, err, &told)
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), "p0licy")
}

func TestTheEndpointMayAskForPatience(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "-7": 0, "": 0, "soon": 0, "99999999999999": 24 * time.Hour} {
		e := newEndpoint(t)
		e.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		a, _ := e.client()
		_, err := a.Token(t.Context())
		var told *TokenError
		require.ErrorAs(t, err, &told)
		require.Equal(t, want, told.Wait(), header)
	}
}
