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
