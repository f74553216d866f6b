package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authorized puts a header into every request.
type authorized struct {
	header string
	base   http.RoundTripper
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", a.header)
	return a.base.RoundTrip(r)
}

// sending returns a client whose requests carry the Authorization header.
func (c *client) sending(header string) *client {
	return &client{t: c.t, url: c.url, get: &http.Client{Transport: authorized{header, c.get.Transport}}}
}

func (c *client) with(token string) *client { return c.sending("Bearer " + token) }

// redacted checks that an error of the participant says nothing but its status.
func (a answer) redacted(status, grpc int, context string) {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	require.Equal(a.t, "application/json", a.kind)
	require.JSONEq(a.t, fmt.Sprintf(`{"code":"NA","cause":"A security-sensitive error has been received","correlationId":null,"traceId":null,
		"context":%s,"resources":[],"errorCategory":-1,"grpcCodeValue":%d,"retryInfo":null,"definiteAnswer":null}`, context, grpc), string(a.body))
}

// clock is a time that tests move.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// guarded serves a ledger that asks an authority.
func guarded(t *testing.T, l *Ledger, opts ServerOptions, more AuthorityOptions) (*Authority, *client) {
	t.Helper()
	if more.ParticipantID == "" {
		more.ParticipantID = l.ParticipantID()
	}
	opts.Authority = NewAuthority(more)
	return opts.Authority, serve(t, l, opts)
}

// Every operation is open to those who have the rights that it needs, and to no one else.
func TestRightsByOperation(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 40)
	alice, bob := l.Parties()[0], l.Parties()[1]
	users := map[string][]Right{
		"nobody": nil, "reader": {CanReadAs(alice)}, "other": {CanReadAs(bob)}, "both": {CanReadAs(alice), CanReadAs(bob)},
		"actor": {CanActAs(alice), CanActAs(bob)}, "executor": {CanExecuteAs(alice), CanExecuteAs(bob)},
		"super": {CanReadAsAnyParty()}, "admin": {ParticipantAdmin()},
	}
	var everyone []string
	for id := range users {
		everyone = append(everyone, id)
	}
	one, two, all := []string{"reader", "both", "actor", "super"}, []string{"both", "actor", "super"}, []string{"super"}
	filters := func(parties ...string) string { return Scope{Parties: parties}.EventFormat() }
	topology := func(list string) string {
		return `{"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{"parties":` + list + `}}}`
	}
	formats := []struct {
		format string
		open   []string
	}{
		{fmt.Sprintf(`{"includeTransactions":{"eventFormat":%s,"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA"}}`, filters(alice)), one},
		{fmt.Sprintf(`{"includeTransactions":{"eventFormat":%s,"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA"}}`, filters(alice, bob)), two},
		{fmt.Sprintf(`{"includeTransactions":{"eventFormat":%s,"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA"}}`, filters()), all},
		{fmt.Sprintf(`{"includeReassignments":%s}`, filters(alice)), one},
		{fmt.Sprintf(`{"includeReassignments":%s}`, filters(alice, bob)), two},
		{fmt.Sprintf(`{"includeReassignments":%s}`, filters()), all},
		{topology(`[]`), all},
		{topology(fmt.Sprintf(`[%q]`, alice)), one},
		{topology(fmt.Sprintf(`[%q,%q]`, alice, bob)), two},
	}
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			a, anonymous := guarded(t, l, ServerOptions{Version: version}, AuthorityOptions{})
			as := map[string]*client{}
			for id, rights := range users {
				a.SetUser(User{ID: id, Rights: rights})
				as[id] = anonymous.with(a.Token(id))
			}
			check := func(open []string, method, path, body string) {
				t.Helper()
				anonymous.do(method, path, body).redacted(401, 16, `{}`)
				for _, id := range everyone {
					got := as[id].do(method, path, body)
					if slices.Contains(open, id) {
						require.Contains(t, []int{200, 404}, got.status, "%s: %s %s %s: %s", id, method, path, body, got.body)
						require.NotContains(t, string(got.body), "HttpMethod(", "%s %s is not served", method, path)
						continue
					}
					require.Equal(t, 403, got.status, "%s: %s %s %s", id, method, path, body)
					got.redacted(403, 7, `{}`)
				}
			}
			for _, f := range formats {
				check(f.open, "POST", "/v2/updates?limit=2", fmt.Sprintf(`{"endInclusive":%d,"updateFormat":%s}`, l.End(), f.format))
				check(f.open, "POST", "/v2/updates/update-by-id", fmt.Sprintf(`{"updateId":%q,"updateFormat":%s}`, l.UpdateID(3), f.format))
				if version != "3.6" {
					check(f.open, "POST", "/v2/updates/flats?limit=2", fmt.Sprintf(`{"endInclusive":%d,"updateFormat":%s}`, l.End(), f.format))
				}
				if version != "3.4" {
					check(f.open, "POST", "/v2/updates/get-updates-page", fmt.Sprintf(`{"updateFormat":%s}`, f.format))
				}
			}
			for _, c := range []struct {
				parties []string
				open    []string
			}{{[]string{alice}, one}, {[]string{alice, bob}, two}, {nil, all}} {
				format := filters(c.parties...)
				check(c.open, "POST", "/v2/updates?limit=2", fmt.Sprintf(`{"endInclusive":%d,"filter":%s}`, l.End(), format))
				if version != "3.6" {
					check(c.open, "POST", "/v2/updates/trees?limit=2", fmt.Sprintf(`{"endInclusive":%d,"filter":%s}`, l.End(), format))
				}
				check(c.open, "POST", "/v2/state/active-contracts?limit=2", fmt.Sprintf(`{"activeAtOffset":%d,"eventFormat":%s}`, l.End(), format))
				check(c.open, "POST", "/v2/state/active-contracts?limit=2", fmt.Sprintf(`{"activeAtOffset":%d,"filter":%s}`, l.End(), format))
				if version != "3.4" {
					check(c.open, "POST", "/v2/state/active-contracts-page", fmt.Sprintf(`{"eventFormat":%s}`, format))
				}
				check(c.open, "POST", "/v2/contracts/contract-by-id",
					fmt.Sprintf(`{"contractId":%q,"queryingParties":%s}`, l.contractID(nil, 3), mustJSON(c.parties)))
			}
			for _, path := range []string{
				"/v2/state/ledger-end", "/v2/state/latest-pruned-offsets", "/v2/state/connected-synchronizers",
				"/v2/parties/participant-id", "/v2/authenticated-user",
			} {
				check(everyone, "GET", path, "")
			}
			check([]string{"reader", "admin"}, "GET", "/v2/users/reader/rights", "")
			check([]string{"admin"}, "POST", "/v2/package-vetting/update", fmt.Sprintf(
				`{"changes":[{"operation":{"Unvet":{"value":{"packages":[{"packageName":"nothing"}]}}}}],"synchronizerId":%q,"dryRun":true}`,
				l.names().synchronizers[0]))
			check(everyone, "POST", "/v2/package-vetting/list", `{}`)
			for _, path := range []string{"/v2/version", "/livez", "/readyz"} {
				require.Equal(t, 200, anonymous.do("GET", path, "").status)
			}
		})
	}
}

// A token that lives longer than the participant lets it is refused, until it lives no longer than that.
func TestTokensThatLiveTooLong(t *testing.T) {
	t.Parallel()
	now := newClock()
	a, c := guarded(t, grown(t, Options{}, 5), ServerOptions{}, AuthorityOptions{MaxLifetime: 5 * time.Minute, Lifetime: 5 * time.Minute, Now: now.now})
	a.SetUser(User{ID: "user", Rights: []Right{CanReadAsAnyParty()}})
	long := a.TokenFor("user", 7*time.Minute)
	require.Equal(t, 200, c.with(a.Token("user")).do(http.MethodGet, "/v2/state/ledger-end", "").status)
	c.with(long).do(http.MethodGet, "/v2/state/ledger-end", "").redacted(401, 16, `{}`)
	now.advance(2 * time.Minute)
	require.Equal(t, 200, c.with(long).do(http.MethodGet, "/v2/state/ledger-end", "").status)
}

func TestTokensExpire(t *testing.T) {
	t.Parallel()
	now := newClock()
	now.advance(300 * time.Millisecond)
	a, c := guarded(t, grown(t, Options{}, 5), ServerOptions{}, AuthorityOptions{Lifetime: 10 * time.Second, Now: now.now})
	a.SetUser(User{ID: "user"})
	c = c.with(a.Token("user"))
	ask := func() int { return c.do(http.MethodGet, "/v2/state/ledger-end", "").status }
	require.Equal(t, 200, ask())
	now.advance(10 * time.Second)
	require.Equal(t, 200, ask(), "it is valid for its whole lifetime")
	now.advance(700 * time.Millisecond)
	require.Equal(t, 401, ask())
}

// A long poll ends when the rights of its user change, and when its token has expired and something is to be delivered.
func TestLongPollsAreGuarded(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 10)
	rights := []Right{CanReadAsAnyParty(), CanReadAs("x")}
	for name, c := range map[string]struct {
		meanwhile func(*Authority, *clock)
		status    int
		code      string
	}{
		"nothing":      {func(*Authority, *clock) {}, 200, ""},
		"fewer rights": {func(a *Authority, _ *clock) { a.SetUser(User{ID: "user", Rights: rights[:1]}) }, 409, "STALE_STREAM_AUTHORIZATION"},
		"more rights": {func(a *Authority, _ *clock) {
			a.SetUser(User{ID: "user", Rights: append(slices.Clip(rights), CanReadAs("y"))})
		}, 409, "STALE_STREAM_AUTHORIZATION"},
		"deactivated": {func(a *Authority, _ *clock) { a.SetUser(User{ID: "user", Rights: rights, Deactivated: true}) }, 409, "STALE_STREAM_AUTHORIZATION"},
		"deleted":     {func(a *Authority, _ *clock) { a.DeleteUser("user") }, 409, "STALE_STREAM_AUTHORIZATION"},
		"same rights": {func(a *Authority, _ *clock) {
			a.SetUser(User{ID: "user", PrimaryParty: "x", Rights: []Right{rights[1], rights[0], rights[1]}})
		}, 200, ""},
		"another user": {func(a *Authority, _ *clock) { a.SetUser(User{ID: "other"}) }, 200, ""},
		"revoked":      {func(a *Authority, _ *clock) { a.Revoke("user") }, 200, ""},
		"expired":      {func(_ *Authority, now *clock) { now.advance(time.Hour) }, 409, "ACCESS_TOKEN_EXPIRED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := newClock()
			a := NewAuthority(AuthorityOptions{ParticipantID: l.ParticipantID(), Now: now.now})
			var once sync.Once
			anonymous := serve(t, l, ServerOptions{Authority: a, NoCheckpoints: true, Rewrite: func(e Element) []byte {
				once.Do(func() { c.meanwhile(a, now) }) // the poll has something to deliver, and will wait for more
				return e.Raw
			}})
			a.SetUser(User{ID: "user", Rights: rights})
			got := anonymous.with(a.Token("user")).post("/v2/updates", `{"beginExclusive":%d,"updateFormat":%s}`, l.Offset(7), allUpdates)
			require.Equal(t, c.status, got.status, "%s", got.body)
			if c.code == "" {
				require.Len(t, got.list(), 2)
				return
			}
			got.refused(409, c.code)
			require.Contains(t, string(got.body), `"errorCategory":2`)
			require.Contains(t, string(got.body), `"retryInfo":"1 second"`)
		})
	}
}
