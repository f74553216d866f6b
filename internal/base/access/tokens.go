package access

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// How long a token is fetched, kept and renewed.
const (
	// After this part of its lifetime a token is renewed in the background.
	renewAfter = 3.0 / 4
	// fetchTimeout limits a token request, its whole answer included.
	fetchTimeout = 20 * time.Second
	// maxHeader is the largest header of its answer, in bytes. (The library reads at most one MiB of the body.)
	maxHeader = 256 << 10
	// maxMargin is how long before its expiry, at most, a token is no longer sent: requests take time, and clocks differ.
	maxMargin = 10 * time.Second
	// failurePause is how long no token is renewed early after a renewal failed.
	failurePause = 5 * time.Second
	// refusalPause is how long a refused token is not replaced after one was: the new one would be refused too.
	refusalPause = time.Second
)

var errClosed = errors.New("the program is ending")

// tokens fetches tokens from the endpoint and keeps the valid one. It has no timer: each request checks whether to
// renew.
type tokens struct {
	access   *Access
	endpoint string // without its query, for messages
	log      *slog.Logger
	// used by one fetch at a time; the library remembers how the endpoint expects the secret
	grant clientcredentials.Config
	http  *http.Client
	clock func() time.Time
	asked atomic.Bool // the endpoint requested a client certificate, but none is configured

	ctx  context.Context // of the fetches; ends with stop
	stop context.CancelFunc

	mu       sync.Mutex
	held     token     // zero: none
	pause    time.Time // no early renewal before this time
	replaced time.Time // when a refused token was last replaced
	flight   *flight   // the fetch in progress; nil: none
}

// token is a fetched token. The zero value is none.
type token struct {
	text      string
	renewFrom time.Time // from then on another one is fetched in the background; zero: never
	expires   time.Time // from then on it is not sent; zero: valid until it is refused
}

func (t token) valid(now time.Time) bool {
	return t.text != "" && (t.expires.IsZero() || now.Before(t.expires))
}

func (t token) renewalDue(now time.Time) bool {
	return !t.renewFrom.IsZero() && !now.Before(t.renewFrom)
}

// until returns the end of a token's validity, for the log.
func (t token) until() string {
	if t.expires.IsZero() {
		return "it is refused"
	}
	return t.expires.UTC().Format(time.RFC3339)
}

// flight is a fetch with any number of waiting callers.
type flight struct {
	done  chan struct{}
	token string
	err   error
}

func newTokens(a *Access) (*tokens, error) {
	o := a.cfg.OAuth
	endpoint, err := url.Parse(o.TokenURL)
	if err != nil {
		return nil, err // unreachable: Check refuses such URLs
	}
	endpoint.RawQuery, endpoint.Fragment = "", ""
	t := &tokens{access: a, endpoint: endpoint.String(), log: a.log, clock: time.Now}
	t.grant = clientcredentials.Config{ClientID: o.ClientID, TokenURL: o.TokenURL, Scopes: o.Scopes}
	if o.Audience != "" {
		t.grant.EndpointParams = url.Values{"audience": {o.Audience}}
	}
	// The endpoint is often not signed by the authority that signs the ledger's servers.
	trusted := a.authorities
	trusted.system, trusted.text, trusted.roots = true, "", nil
	if _, err := trusted.load(); err != nil {
		return nil, unusable(a.Flag("ca-file"), err)
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     30 * time.Second, MaxResponseHeaderBytes: maxHeader}
	base.TLSClientConfig = a.TLS()
	base.TLSClientConfig.RootCAs, base.TLSClientConfig.GetClientCertificate = trusted.roots, a.present(&t.asked)
	t.http = &http.Client{
		Transport: &Transport{log: a.log, authorities: trusted, inUse: base},
		Timeout:   fetchTimeout,
		// The secret is sent only to the configured endpoint.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	t.ctx, t.stop = context.WithValue(ctx, oauth2.HTTPClient, t.http), func() { cancel(errClosed) }
	return t, nil
}

// get returns the token to send now. If its renewal is due, it starts a fetch in the background. If there is no valid
// token, all callers wait for the same fetch, each until its context ends.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	now := t.clock()
	if t.held.valid(now) {
		text := t.held.text
		if t.held.renewalDue(now) && !now.Before(t.pause) {
			t.join()
		}
		t.mu.Unlock()
		return text, nil
	}
	f := t.join()
	t.mu.Unlock()
	return f.wait(ctx)
}

// renew returns a token to replace a refused one; "" if there is none.
func (t *tokens) renew(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	now := t.clock()
	if t.held.text != refused && t.held.valid(now) {
		text := t.held.text
		t.mu.Unlock()
		return text, nil
	}
	if t.flight == nil && now.Sub(t.replaced) < refusalPause {
		t.mu.Unlock()
		return "", nil
	}
	t.replaced, t.held = now, token{}
	f := t.join()
	t.mu.Unlock()
	text, err := f.wait(ctx)
	if text == refused {
		return "", err
	}
	return text, err
}

// join returns the fetch in progress, or starts one. The caller holds the lock.
func (t *tokens) join() *flight {
	if t.flight == nil {
		t.flight = &flight{done: make(chan struct{})}
		go t.fly(t.flight)
	}
	return t.flight
}

// fly fetches for all waiting callers. It doesn't use their contexts: if one gives up, others still need the token.
func (t *tokens) fly(f *flight) {
	got, err := t.fetch()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	switch {
	case err == nil:
		t.held, t.pause = got, time.Time{}
		f.token = got.text
		t.log.Debug("fetched a token", "endpoint", t.endpoint, "good_until", got.until())
	default:
		f.err, t.pause = err, now.Add(failurePause)
		if t.held.valid(now) {
			t.log.Warn("the token can't be renewed; the old one is used while it is valid", "good_until", t.held.until(),
				"error", err)
		}
	}
	t.flight = nil
	close(f.done)
}

func (f *flight) wait(ctx context.Context) (string, error) {
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *tokens) fetch() (token, error) {
	secret, err := t.access.clientSecret()
	if err != nil {
		return token{}, err
	}
	t.grant.ClientSecret = secret
	began := t.clock()
	got, err := t.grant.Token(t.ctx)
	if err != nil {
		return token{}, t.explain(err)
	}
	t.access.secrets.addToken(got.AccessToken)
	switch {
	case !strings.EqualFold(got.Type(), "Bearer"):
		return token{}, t.unusable("it returned a token of type " + t.access.excerpt(got.Type()) +
			", and a bearer token is needed")
	case !sendable(got.AccessToken):
		return token{}, t.unusable("the returned token contains characters that a header can't hold")
	}
	return withLifetime(got, began), nil
}

// withLifetime sets when a token expires and when to renew it. The lifetime counts from the start of the request, the
// earliest time at which the endpoint can have issued it.
func withLifetime(got *oauth2.Token, began time.Time) token {
	t := token{text: got.AccessToken}
	expires := got.Expiry
	if expires.IsZero() {
		claims, _ := ParseClaims(got.AccessToken)
		expires = claims.Expires
	}
	lifetime := time.Until(expires).Round(time.Second)
	// no lifetime, or one by a clock far from ours: use the token until it is refused
	if expires.IsZero() || lifetime <= 0 {
		return t
	}
	began = began.Round(0) // drop the monotonic clock, which stops while a machine sleeps
	t.renewFrom = began.Add(time.Duration(float64(lifetime) * renewAfter))
	t.expires = began.Add(lifetime - min(maxMargin, lifetime/10))
	return t
}

func (t *tokens) close() {
	t.stop()
	t.http.CloseIdleConnections()
}
