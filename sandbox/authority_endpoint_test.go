package sandbox

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const goodForm = "grant_type=client_credentials&client_id=id&client_secret=secret"

// tokenAnswer is what a token endpoint answers.
type tokenAnswer struct {
	status int
	header http.Header
	body   map[string]any
}

// askToken sends a request to a token endpoint; edit may change it.
func askToken(t *testing.T, endpoint *httptest.Server, form string, edit func(*http.Request)) tokenAnswer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint.URL+"/token", strings.NewReader(form))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if edit != nil {
		edit(r)
	}
	resp, err := endpoint.Client().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	a := tokenAnswer{status: resp.StatusCode, header: resp.Header}
	require.NoError(t, json.Unmarshal(raw, &a.body), "%s", raw)
	return a
}

// tokenFrom gets a token for the client "id" with the secret "secret".
func tokenFrom(t *testing.T, endpoint *httptest.Server, more string) string {
	t.Helper()
	a := askToken(t, endpoint, goodForm+"&"+more, nil)
	require.Equal(t, http.StatusOK, a.status, "%v", a.body)
	return a.body["access_token"].(string)
}

func tokenEndpoint(t *testing.T, opts AuthorityOptions) (*Authority, *httptest.Server) {
	t.Helper()
	opts.ParticipantID = "participant::1"
	a := NewAuthority(opts)
	a.AddClient("id", "secret", "user")
	endpoint := httptest.NewServer(a)
	t.Cleanup(endpoint.Close)
	return a, endpoint
}

func basic(id, secret string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret)) }
}

func TestTokenEndpointGrants(t *testing.T) {
	t.Parallel()
	a, endpoint := tokenEndpoint(t, AuthorityOptions{Lifetime: 90 * time.Second, Now: newClock().now})
	a.AddClient("a b:c", "s%+&é\"", "user")
	for name, c := range map[string]struct {
		form string
		edit func(*http.Request)
		want Grant
	}{
		"form":             {goodForm, nil, Grant{Client: "id"}},
		"basic":            {"grant_type=client_credentials", basic("id", "secret"), Grant{Client: "id", Basic: true}},
		"basic and its id": {"grant_type=client_credentials&client_id=id", basic("id", "secret"), Grant{Client: "id", Basic: true}},
		"strange form": {
			url.Values{"grant_type": {"client_credentials"}, "client_id": {"a b:c"}, "client_secret": {"s%+&é\""}}.Encode(), nil, Grant{Client: "a b:c"},
		},
		"strange basic": {"grant_type=client_credentials", basic("a b:c", "s%+&é\""), Grant{Client: "a b:c", Basic: true}},
		"scope and audience": {
			goodForm + "&scope=one+two&audience=https%3A%2F%2Fledger&more=1", nil, Grant{Client: "id", Scope: "one two", Audience: "https://ledger"},
		},
	} {
		before := a.Granted()
		got := askToken(t, endpoint, c.form, c.edit)
		require.Equal(t, 200, got.status, "%s: %v", name, got.body)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		require.Equal(t, "application/json", got.header.Get("Content-Type"))
		require.Equal(t, "Bearer", got.body["token_type"])
		require.EqualValues(t, 90, got.body["expires_in"])
		if c.want.Scope == "" {
			require.NotContains(t, got.body, "scope")
		} else {
			require.Equal(t, c.want.Scope, got.body["scope"])
		}
		require.Equal(t, c.want, a.LastGrant(), name)
		require.Equal(t, before+1, a.Granted())
		p, ok := a.verify(got.body["access_token"].(string))
		require.True(t, ok)
		require.Equal(t, "user", p.Subject)
		require.Equal(t, c.want.Scope, p.Scope)
		require.EqualValues(t, 90, p.Expires-p.IssuedAt)
	}

	silent, endpoint := tokenEndpoint(t, AuthorityOptions{OmitExpiresIn: true})
	require.NotContains(t, askToken(t, endpoint, goodForm, nil).body, "expires_in")
	require.Equal(t, 1, silent.Granted())
}

func TestTokenEndpointRefuses(t *testing.T) {
	t.Parallel()
	a, endpoint := tokenEndpoint(t, AuthorityOptions{Scopes: []string{"one", "two"}})
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		form   string
		edit   func(*http.Request)
		status int
		code   string
	}{
		"no client":          {"grant_type=client_credentials", nil, 401, "invalid_client"},
		"unknown client":     {"grant_type=client_credentials&client_id=x&client_secret=secret", nil, 401, "invalid_client"},
		"unknown, no secret": {"grant_type=client_credentials&client_id=x", nil, 401, "invalid_client"},
		"wrong secret":       {"grant_type=client_credentials&client_id=id&client_secret=x", nil, 401, "invalid_client"},
		"no secret":          {"grant_type=client_credentials&client_id=id", nil, 401, "invalid_client"},
		"wrong basic":        {"grant_type=client_credentials", basic("id", "x"), 401, "invalid_client"},
		"a bearer token":     {"grant_type=client_credentials", header("Authorization", "Bearer x"), 401, "invalid_client"},
		"basic not encoded":  {"grant_type=client_credentials", func(r *http.Request) { r.SetBasicAuth("id", "%zz") }, 400, "invalid_request"},
		"two ways":           {goodForm, basic("id", "secret"), 400, "invalid_request"},
		"two ids":            {"grant_type=client_credentials&client_id=other", basic("id", "secret"), 400, "invalid_request"},
		"no grant type":      {"client_id=id&client_secret=secret", nil, 400, "invalid_request"},
		"another grant type": {"grant_type=password&client_id=id&client_secret=secret", nil, 400, "unsupported_grant_type"},
		"repeated":           {goodForm + "&scope=one&scope=two", nil, 400, "invalid_request"},
		"not a form":         {goodForm, header("Content-Type", "application/json"), 400, "invalid_request"},
		"no content type":    {goodForm, func(r *http.Request) { r.Header.Del("Content-Type") }, 400, "invalid_request"},
		"bad escapes":        {"grant_type=%zz", nil, 400, "invalid_request"},
		"huge":               {goodForm + "&x=" + strings.Repeat("x", maxTokenRequest), nil, 400, "invalid_request"},
		"unknown scope":      {goodForm + "&scope=one+three", nil, 400, "invalid_scope"},
		"in the query":       {"", func(r *http.Request) { r.URL.RawQuery = goodForm }, 401, "invalid_client"},
		"not a POST":         {"", func(r *http.Request) { r.Method = http.MethodGet }, 405, "invalid_request"},
	} {
		got := askToken(t, endpoint, c.form, c.edit)
		require.Equal(t, c.code, got.body["error"], "%s: %v", name, got.body)
		require.Equal(t, c.status, got.status, name)
		require.NotEmpty(t, got.body["error_description"])
		require.NotContains(t, got.body["error_description"], "secret=")
		require.Equal(t, c.status == 401, got.header.Get("WWW-Authenticate") != "", name)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	}
	require.Zero(t, a.Granted())
	require.Equal(t, 200, askToken(t, endpoint, goodForm+"&scope=two+one", nil).status)

	// A new secret replaces the old one at once.
	a.AddClient("id", "new", "user")
	require.Equal(t, 401, askToken(t, endpoint, goodForm, nil).status)
}

func TestTokenEndpointFaults(t *testing.T) {
	t.Parallel()
	faults := make(chan *Fault, 1)
	a, endpoint := tokenEndpoint(t, AuthorityOptions{Fault: func(*http.Request) *Fault {
		select {
		case f := <-faults:
			return f
		default:
			return nil
		}
	}})
	faults <- &Fault{Status: 503, ContentType: "application/json", Body: `{"error":"temporarily_unavailable"}`}
	require.Equal(t, 503, askToken(t, endpoint, goodForm, nil).status)
	require.Zero(t, a.Granted())
	require.Equal(t, 200, askToken(t, endpoint, goodForm, nil).status)
}
