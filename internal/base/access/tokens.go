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
	"golang.org/x/sync/singleflight"
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

	fetches  singleflight.Group // of one at a time, for all who wait
	mu       sync.Mutex
	held     token     // zero: none
	replaced time.Time // when a refused token was last replaced
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
	base := &http.Transport{Proxy: ProxyOf, DialContext: dialer.DialContext,
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
	held, now := t.held, t.clock()
	var next <-chan singleflight.Result
	if !held.valid(now) || held.renewalDue(now) {
		next = t.fetched()
	}
	t.mu.Unlock()
	if held.valid(now) {
		return held.text, nil
	}
	return await(ctx, next)
}

// renew returns a token to replace a refused one; "" if there is none.
func (t *tokens) renew(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	held, now := t.held, t.clock()
	switch {
	case held.text != refused && held.valid(now):
		t.mu.Unlock()
		return held.text, nil
	case held.text == refused && now.Sub(t.replaced) < refusalPause:
		t.mu.Unlock()
		return "", nil
	case held.text == refused:
		t.replaced, t.held = now, token{}
	}
	next := t.fetched()
	t.mu.Unlock()
	text, err := await(ctx, next)
	if text == refused {
		return "", err
	}
	return text, err
}

// await waits for a token, until ctx ends.
func await(ctx context.Context, next <-chan singleflight.Result) (string, error) {
	select {
	case r := <-next:
		text, _ := r.Val.(string)
		return text, r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// fetched returns the result of the fetch in progress, or of one that it starts. It doesn't use the context of who
// waits: if one gives up, others still need the token. The caller holds the lock.
func (t *tokens) fetched() <-chan singleflight.Result {
	return t.fetches.DoChan("", func() (any, error) {
		got, err := t.fetch()
		t.mu.Lock()
		defer t.mu.Unlock()
		now := t.clock()
		if err == nil {
			t.held = got
			t.log.Debug("fetched a token", "endpoint", t.endpoint, "good_until", got.until())
			return got.text, nil
		}
		if t.held.valid(now) {
			t.held.renewFrom = now.Add(failurePause)
			t.log.Warn("the token can't be renewed; the old one is used while it is valid", "good_until", t.held.until(),
				"error", err)
		}
		return "", err
	})
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
