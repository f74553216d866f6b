package sandbox

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

func TestUsersMatchTheServersDocuments(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 5)
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		api := openapi.Ledger(t, version)
		a, c := guarded(t, l, ServerOptions{Version: version}, AuthorityOptions{})
		a.SetUser(User{ID: "user", Rights: []Right{CanReadAs("a"), CanActAs("b"), CanExecuteAs("c"), CanReadAsAnyParty()}})
		a.SetUser(User{ID: "admin", Rights: []Right{ParticipantAdmin()}})
		check := func(token, path, documented string, status int) answer {
			got := c.with(token).do(http.MethodGet, path, "")
			require.Equal(t, status, got.status)
			require.NoError(t, api.CheckResponse(http.MethodGet, documented, got.status, got.body))
			return got
		}
		const own, rights = "/v2/authenticated-user", "/v2/users/{user-id}/rights"
		for _, id := range []string{"user", "admin"} {
			got := check(a.Token(id), own, own, 200)
			require.Empty(t, api.Missing("User", got.object()["user"].(map[string]any)), version)
			check(a.Token(id), "/v2/users/"+id+"/rights", rights, 200)
		}
		check("x", "/v2/users/user/rights", rights, 401)
		check(a.Token("user"), "/v2/users/admin/rights", rights, 403)
		check(a.Token("admin"), "/v2/users/unknown/rights", rights, 404)
		got := serve(t, l, ServerOptions{Version: version}).do(http.MethodGet, own, "")
		require.Equal(t, 400, got.status)
		require.Contains(t, got.kind, "application/json")
	}
}

// An administrator makes users and gives them rights, which count at once; nobody else does.
func TestUsersAreChanged(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 5)
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		api := openapi.Ledger(t, version)
		a, c := guarded(t, l, ServerOptions{Version: version}, AuthorityOptions{})
		a.SetUser(User{ID: "admin", Rights: []Right{ParticipantAdmin()}})
		const users, rights = "/v2/users", "/v2/users/{user-id}/rights"
		post := func(by, path, documented, body string) answer {
			require.NoError(t, api.CheckRequest(http.MethodPost, documented, nil, []byte(body)))
			got := c.with(a.Token(by)).do(http.MethodPost, path, body)
			require.NoError(t, api.CheckResponse(http.MethodPost, documented, got.status, got.body))
			return got
		}
		const made = `{"user":{"id":"reader"},"rights":[{"kind":{"CanReadAs":{"value":{"party":"a"}}}}]}`
		require.Equal(t, "reader", post("admin", users, users, made).object()["user"].(map[string]any)["id"])
		post("admin", users, users, made).refused(409, "USER_ALREADY_EXISTS")
		post("reader", users, users, made).redacted(403, 7, `{}`)
		post("admin", users, users, `{"user":{"id":"with space"}}`).refused(400, "INVALID_ARGUMENT")

		const more = `{"userId":"reader","rights":[{"kind":{"CanReadAs":{"value":{"party":"a"}}}},{"kind":{"CanReadAsAnyParty":{"value":{}}}}]}`
		post("reader", "/v2/users/reader/rights", rights, more).redacted(403, 7, `{}`)
		got := post("admin", "/v2/users/reader/rights", rights, more)
		require.JSONEq(t, `{"newlyGrantedRights":[{"kind":{"CanReadAsAnyParty":{"value":{}}}}]}`, string(got.body))
		got = c.with(a.Token("reader")).do(http.MethodGet, "/v2/users/reader/rights", "")
		require.Len(t, got.object()["rights"], 2)
		post("admin", "/v2/users/other/rights", rights, more).refused(400, "INVALID_ARGUMENT")
		post("admin", "/v2/users/other/rights", rights, strings.Replace(more, "reader", "other", 1)).refused(404, "USER_NOT_FOUND")
		require.Equal(t, 400, c.with(a.Token("admin")).do(http.MethodPost, users, `{"user":{"id":"x"},"rights":[{"kind":{"CanFly":{}}}]}`).status)
	}
	open := serve(t, l, ServerOptions{})
	require.Contains(t, string(open.do(http.MethodPost, "/v2/users", "{}").body), `"status":404`)
}
