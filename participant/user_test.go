package participant

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

const (
	readAsAlice = `{"kind":{"CanReadAs":{"value":{"party":"alice::1"}}}}`
	actAsBob    = `{"kind":{"CanActAs":{"value":{"party":"bob::1"}}}}`
	readAsAny   = `{"kind":{"CanReadAsAnyParty":{"value":{}}}}`
	actAsAny    = `{"kind":{"CanActAsAnyParty":{"value":{}}}}`
	admin       = `{"kind":{"ParticipantAdmin":{"value":{}}}}`
	others      = `{"kind":{"CanExecuteAs":{"value":{"party":"dave::1"}}}},{"kind":{"IdentityProviderAdmin":{"value":{}}}},{"kind":{"Empty":{}}},{"kind":{"New":{}}},{}`
)

var redacted = cantonError(http.StatusForbidden, "NA", "A security-sensitive error has been received", "")

// known is a server that knows one user with these rights, and forbids the rest.
func known(id string, rights ...string) map[string]http.HandlerFunc {
	handlers := map[string]http.HandlerFunc{
		pathAuthenticatedUser:            answer(fmt.Sprintf(`{"user":{"id":%q,"primaryParty":"alice::1","isDeactivated":false,"metadata":null,"identityProviderId":""}}`, id)),
		pathUsers + "/" + id + "/rights": answer(`{"rights":[` + strings.Join(rights, ",") + `]}`),
	}
	for path := range everything() {
		handlers[path] = redacted
	}
	return handlers
}

func TestUser(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id     string
		rights []string
		want   User
	}{
		"no rights":    {"indexer", nil, User{}},
		"of parties":   {"indexer", []string{actAsBob, readAsAlice, others, readAsAlice}, User{ReadAs: []string{"alice::1", "bob::1"}}},
		"of any party": {"indexer", []string{readAsAny, readAsAlice}, User{ReadAsAnyParty: true, ReadAs: []string{"alice::1"}}},
		"acts as any":  {"indexer", []string{actAsAny}, User{ReadAsAnyParty: true}},
		"admin":        {"indexer", []string{admin}, User{ParticipantAdmin: true}},
		"odd id":       {"a@^$.!`-#+'~_|:()b", []string{admin}, User{ParticipantAdmin: true}},
		"a slash":      {"a/../b%2F?x", nil, User{}},
		"dots":         {"..", []string{admin}, User{ParticipantAdmin: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, known(test.id, test.rights...))
			got, err := newClient(t, f, Server{}, anyParty).User(t.Context())
			require.NoError(t, err)
			test.want.ID = test.id
			if test.want.ReadAs == nil {
				test.want.ReadAs = []string{}
			}
			require.ElementsMatch(t, test.want.ReadAs, got.ReadAs)
			got.ReadAs, test.want.ReadAs = nil, nil
			require.Equal(t, test.want, got)
			require.Len(t, f.requests(), 2, "nothing else is asked")
		})
	}
}

func TestUserOfAServerThatDoesNotTell(t *testing.T) {
	t.Parallel()
	rights := pathUsers + "/indexer/rights"
	for name, test := range map[string]struct {
		path    string
		handle  http.HandlerFunc
		want    verdict
		says    string
		decodes bool
	}{
		"no user management": {pathAuthenticatedUser, unknownPath, unoffered, "ask whose token this is: the server does not offer this operation", false},
		"no rights":          {rights, unknownPath, unoffered, "the server does not offer this operation", false},
		"nobody is authenticated": {pathAuthenticatedUser, answerOf(8, "INVALID_TOKEN", "requests with an empty user-id are only supported if there is an authenticated user"),
			unoffered, "INVALID_TOKEN", false},
		"nobody is authenticated, differently": {pathAuthenticatedUser, answerOf(8, "INVALID_ARGUMENT", "no"), unoffered, "INVALID_ARGUMENT", false},
		"forbidden":                            {pathAuthenticatedUser, redacted, act, "the participant does not let the token's user in. see that the user exists and is not deactivated", false},
		"rights forbidden":                     {rights, redacted, act, "the participant does not let user indexer in. see that the user exists", false},
		"no token":                             {pathAuthenticatedUser, answerOf(6, "", ""), act, "wants a token", false},
		"away":                                 {rights, plain(503, "starting"), again, "503 Service Unavailable", false},
		"nobody":                               {pathAuthenticatedUser, answer(`{}`), again, "the answer names no user", false},
		"null":                                 {pathAuthenticatedUser, answer(`{"user":{"id":null,"primaryParty":null,"isDeactivated":null}}`), again, "the answer names no user", false},
		"wrong types":                          {pathAuthenticatedUser, answer(`{"user":{"id":7}}`), again, "authenticated-user", true},
		"wrong rights":                         {rights, answer(`{"rights":{}}`), again, "user-rights", true},
		"not JSON":                             {rights, answer(`rights`), again, "user-rights", true},
		"cut off":                              {rights, answer(`{"rights":[`), again, "cut off", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handlers := known("indexer")
			handlers[test.path] = test.handle
			_, err := newClient(t, newFake(t, handlers), Server{}, anyParty).User(t.Context())
			verdict, text := given(t, err)
			require.Equal(t, test.want, verdict, "%v", err)
			require.Contains(t, text, test.says)
			if !test.decodes {
				var e *Error
				require.ErrorAs(t, err, &e)
			}
		})
	}
	for _, body := range []string{`{}`, `{"rights":null}`, `{"rights":[]}`, `{"rights":[{"kind":null}]}`, `{"rights":[{"kind":{"CanReadAs":null}}]}`,
		`{"rights":[{"kind":{"CanReadAs":{}}}]}`, `{"rights":[{"kind":{"CanReadAs":{"value":{"party":""}}}}]}`} {
		handlers := known("indexer")
		handlers[rights] = answer(body)
		u, err := newClient(t, newFake(t, handlers), Server{}, anyParty).User(t.Context())
		require.NoError(t, err, body)
		require.Equal(t, "indexer", u.ID)
		require.Empty(t, u.ReadAs)
	}
}

// What the server keeps to itself when it forbids something is found out from the user's rights.
func TestForbiddenNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	grantEach := ". grant the user CanReadAs (or CanActAs) for each party of --parties"
	for name, test := range map[string]struct {
		rights []string
		need   right
		want   string
	}{
		"any party": {[]string{readAsAlice}, readAs(nil),
			"user indexer lacks CanReadAsAnyParty. grant the user CanReadAsAnyParty, or name the parties it may read as with --parties"},
		"a party":       {[]string{actAsBob}, readAs([]string{"alice::1", "bob::1"}), "user indexer lacks CanReadAs for party alice::1" + grantEach},
		"parties":       {[]string{actAsBob}, readAs(alice.Parties), "user indexer lacks CanReadAs for party alice::1 (and 2 more)" + grantEach},
		"an admin only": {[]string{admin}, readAs([]string{"alice::1"}), "user indexer lacks CanReadAs for party alice::1" + grantEach},
		"no admin":      {[]string{readAsAny}, participantAdmin, "user indexer lacks participant admin. grant the user participant admin, or use the token of one who has it"},
		"granted": {[]string{readAsAny}, readAs([]string{"alice::1"}),
			"the participant refuses user indexer, who has the right that is needed (CanReadAs for party alice::1). see whether the user was deactivated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, newFake(t, known("indexer", test.rights...)), with35, anyParty)
			_, err := c.do(t.Context(), jsonhttp.Request{Operation: "test", Path: pathLedgerEnd})
			err = c.forbidden(t.Context(), err, test.need)
			require.Equal(t, test.want, strings.TrimSuffix(problem(t, err), ", or the rights were granted a moment ago: then start again"))
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, http.StatusForbidden, e.Status)
		})
	}
}

// Reads of the scope need its right, on every path.
func TestForbiddenReadsNameTheRightOfTheScope(t *testing.T) {
	t.Parallel()
	f := newFake(t, known("indexer", readAsAlice))
	c := newClient(t, f, with35, alice)
	const want = "user indexer lacks CanReadAs for party bob::1 (and 2 more)"
	_, err := c.ReadUpdates(t.Context(), 4, 9)
	require.Contains(t, problem(t, err), want)
	_, _, err = c.TailUpdates(t.Context(), 4, 1, 0)
	require.Contains(t, problem(t, err), want)
	_, err = c.ReadSnapshot(t.Context(), 9, ledger.Token{})
	require.Contains(t, problem(t, err), want)
	handlers := everything()
	for path, handle := range known("indexer", readAsAlice) {
		if handlers[path] == nil || path == pathUpdatesPage {
			handlers[path] = handle
		}
	}
	_, err = newClient(t, newFake(t, handlers), Server{}, alice).Discover(t.Context())
	require.Contains(t, problem(t, err), want)
}

// Where the server does not tell, the token may.
func TestForbiddenNamesTheUserOfTheToken(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: redacted, pathAuthenticatedUser: redacted})
	c := newClient(t, f, with35, alice, withToken(t, jwtOf(`{"sub":"the\nindexer","aud":["x","y"]}`)))
	_, err := c.ReadUpdates(t.Context(), 4, 9)
	require.Equal(t, "the participant does not let user the indexer read as alice::1, bob::1, carol::1 and 1 more parties. "+
		"grant the user CanReadAs (or CanActAs) for each party of --parties; where that is so, see that the user exists and is not deactivated, "+
		`and that the token's audience "x y" is this participant`, problem(t, err))
}

// A server that does not answer the question behind the error does not hide the error.
func TestForbiddenDoesNotWaitForLong(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: redacted, pathAuthenticatedUser: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"user":`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}})
	_, err := newClient(t, f, with35, anyParty).ReadUpdates(t.Context(), 4, 9)
	require.Contains(t, problem(t, err), "does not let the token's user read as any party")
}

// The simulated participant, which knows users and their rights.
func TestRightsOfTheSimulatedParticipant(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 12})
	l.Grow(30)
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID()})
	parties := l.Parties()
	user := sandbox.User{ID: "indexer", Rights: []sandbox.Right{sandbox.CanReadAs(parties[0])}}
	authority.SetUser(user)
	srv := simulated(t, l, sandbox.ServerOptions{Authority: authority})
	cfg := Config{URL: srv.URL}
	withToken(t, authority.Token("indexer"))(&cfg)
	c, err := New(cfg, ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: parties[:2]})
	require.NoError(t, err)
	t.Cleanup(c.Close)

	_, err = c.Discover(t.Context())
	require.Contains(t, problem(t, err), "user indexer lacks CanReadAs for party "+parties[1]+". grant the user")
	got, err := c.User(t.Context())
	require.NoError(t, err)
	require.Equal(t, User{ID: "indexer", ReadAs: parties[:1]}, got)

	user.Rights = append(user.Rights, sandbox.CanActAs(parties[1]))
	authority.SetUser(user)
	_, err = c.Discover(t.Context())
	require.NoError(t, err)
	_, err = c.ReadUpdates(t.Context(), 0, ledger.Offset(l.End()))
	require.NoError(t, err)

	authority.DeleteUser("indexer")
	_, err = c.ReadUpdates(t.Context(), 0, ledger.Offset(l.End()))
	require.Contains(t, problem(t, err), "the participant does not let user indexer read as ")
}
