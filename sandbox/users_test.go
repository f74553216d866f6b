package sandbox

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

func TestUsersTellTheirRights(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 5)
	all := []Right{
		CanReadAs("alice::1220"), CanActAs("bob::1220"), CanExecuteAs("carol::1220"), CanReadAsAnyParty(), ParticipantAdmin(),
		CanReadAs("alice::1220"), // again
	}
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			a, c := guarded(t, l, ServerOptions{Version: version}, AuthorityOptions{})
			strange := "a@b^c$.!`-#+'~_|:()9"
			a.SetUser(User{ID: strange, PrimaryParty: "alice::1220", Rights: all})
			a.SetUser(User{ID: "poor"})
			own, poor := c.with(a.Token(strange)), c.with(a.Token("poor"))
			path := func(id string) string { return "/v2/users/" + url.PathEscape(id) + "/rights" }

			user := own.do(http.MethodGet, "/v2/authenticated-user", "").object()["user"].(map[string]any)
			require.Equal(t, strange, user["id"])
			require.Equal(t, "alice::1220", user["primaryParty"])
			require.Equal(t, version != "3.4", has(user, "primaryPartyAuthentication"))
			for _, asker := range []*client{own, c.with(a.Token(strange))} {
				got := asker.do(http.MethodGet, path(strange), "")
				require.JSONEq(t, `{"rights":[
					{"kind":{"CanReadAs":{"value":{"party":"alice::1220"}}}},
					{"kind":{"CanActAs":{"value":{"party":"bob::1220"}}}},
					{"kind":{"CanExecuteAs":{"value":{"party":"carol::1220"}}}},
					{"kind":{"CanReadAsAnyParty":{"value":{}}}},
					{"kind":{"ParticipantAdmin":{"value":{}}}}]}`, string(got.body))
			}
			require.JSONEq(t, `{"rights":[]}`, string(poor.do(http.MethodGet, path("poor"), "").body))
			require.JSONEq(t, `{"rights":[]}`, string(own.do(http.MethodGet, path("poor"), "").body), "an administrator may ask")
			poor.do(http.MethodGet, path(strange), "").redacted(403, 7, `{}`)
			poor.do(http.MethodGet, path("unknown"), "").redacted(403, 7, `{}`)
			unknown := own.do(http.MethodGet, path("unknown"), "")
			unknown.refused(404, "USER_NOT_FOUND")
			require.Contains(t, string(unknown.body), `["ErrorResource(USER)","unknown"]`)
			for _, id := range []string{"with space", "a/b", "\x00", "\"", "é", strings.Repeat("x", 129)} {
				own.do(http.MethodGet, path(id), "").refused(400, "INVALID_ARGUMENT")
			}
			for _, other := range []string{"/v2/users//rights", "/v2/users/a/b/rights", "/v2/users/poor"} {
				require.Contains(t, string(own.do(http.MethodGet, other, "").body), `"status":404`, other)
			}
			require.Equal(t, 400, own.do(http.MethodPost, path("poor"), "{}").status)
		})
	}
}

func has(o map[string]any, key string) bool {
	_, ok := o[key]
	return ok
}

// A server that asks for no user's token has nobody to tell of, but for the administrator of its first day.
func TestUsersWithoutAnAuthority(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{}, 5)
	for _, c := range []*client{serve(t, l, ServerOptions{}), serve(t, l, ServerOptions{Token: "secret"}).with("secret")} {
		got := c.do(http.MethodGet, "/v2/authenticated-user", "")
		got.refused(400, "INVALID_TOKEN")
		require.Contains(t, string(got.body), "missing a user-id")
		c.do(http.MethodGet, "/v2/users/indexer/rights", "").refused(404, "USER_NOT_FOUND")
		got = c.do(http.MethodGet, "/v2/users/participant_admin/rights", "")
		require.JSONEq(t, `{"rights":[{"kind":{"ParticipantAdmin":{"value":{}}}}]}`, string(got.body))
	}
	strict := serve(t, l, ServerOptions{StrictInterface: true})
	for _, path := range []string{"/v2/authenticated-user", "/v2/users/participant_admin/rights"} {
		require.Contains(t, string(strict.do(http.MethodGet, path, "").body), `"status":404`)
	}
}

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
