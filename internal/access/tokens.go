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

const (
	// fetchTime is how long a token endpoint may take for all of its answer.
	fetchTime = 20 * time.Second
	// mostHeader is the largest header of its answer, in bytes. (Of the body the library reads one MiB.)
	mostHeader = 256 << 10
	// longestSlack is how long before it expires a token is not sent any more: requests take time, and clocks differ.
	longestSlack = 10 * time.Second
	// failurePause is how long no early renewal is tried after one that failed.
	failurePause = 5 * time.Second
	// refusalPause is how long no other token is fetched for a fresh one that is refused as well: the next would be too.
	refusalPause = time.Second
)

var errClosed = errors.New("the program is ending")

// tokens fetches tokens from the endpoint and keeps the one that is good. There is no timer: who needs a token notices
// that it is time for another one.
type tokens struct {
	access   *Access
	endpoint string // for people: without its query
	log      *slog.Logger
	grant    clientcredentials.Config // of one fetch at a time; it remembers how the endpoint wants the secret
	http     *http.Client
	clock    func() time.Time
	asked    atomic.Bool // the endpoint asked for a client's certificate, and none is configured

	ctx  context.Context // of the fetches; ends with stop
	stop context.CancelFunc

	mu       sync.Mutex
	held     token     // zero: none
	pause    time.Time // until then there is no early renewal
	replaced time.Time // when a refused token was last replaced
	flight   *flight   // the fetch under way; nil: none
}

// token is one that was fetched. The zero value is none.
type token struct {
	text    string
	renew   time.Time // from then on another one is fetched while this one is used; zero: never
	useless time.Time // from then on it is not sent; zero: it is good until it is refused
}

func (t token) good(now time.Time) bool {
	return t.text != "" && (t.useless.IsZero() || now.Before(t.useless))
}

func (t token) aging(now time.Time) bool { return !t.renew.IsZero() && !now.Before(t.renew) }

// until is when a token ends, for people.
func (t token) until() string {
	if t.useless.IsZero() {
		return "it is refused"
	}
	return t.useless.UTC().Format(time.RFC3339)
}

// flight is a fetch; any number of callers wait for it.
type flight struct {
	done  chan struct{}
	token string
	err   error
}

func newTokens(a *Access) (*tokens, error) {
	o := a.cfg.OAuth
	endpoint, err := url.Parse(o.TokenURL)
	if err != nil {
		return nil, err // Check has let no such URL through
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
		return nil, err
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: mostHeader}
	base.TLSClientConfig = a.TLS()
	base.TLSClientConfig.RootCAs, base.TLSClientConfig.GetClientCertificate = trusted.roots, a.present(&t.asked)
	t.http = &http.Client{
		Transport: &Transport{log: a.log, authorities: trusted, inUse: base},
		Timeout:   fetchTime,
		// The secret goes nowhere but to the endpoint that was configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	t.ctx, t.stop = context.WithValue(ctx, oauth2.HTTPClient, t.http), func() { cancel(errClosed) }
	return t, nil
}

// get is the token to send now. Where it is aging another one is fetched in the background; where there is none, every
// caller waits for the same fetch, each for as long as its context lets it.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	now := t.clock()
	if t.held.good(now) {
		text := t.held.text
		if t.held.aging(now) && !now.Before(t.pause) {
			t.join()
		}
		t.mu.Unlock()
		return text, nil
	}
	f := t.join()
	t.mu.Unlock()
	return f.wait(ctx)
}

// renew is a token in the place of one that was refused; "" where there is none.
func (t *tokens) renew(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	now := t.clock()
	if t.held.text != refused && t.held.good(now) {
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

// join gives the fetch under way and starts one where there is none. The caller has locked.
func (t *tokens) join() *flight {
	if t.flight == nil {
		t.flight = &flight{done: make(chan struct{})}
		go t.fly(t.flight)
	}
	return t.flight
}

// fly fetches for all who wait. It is not bound to any of their contexts: what is given up by one is of use to others.
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
		if t.held.good(now) {
			t.log.Warn("the token can't be renewed; the old one is used as long as it is good", "good_until", t.held.until(), "error", err)
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

// fetch asks the endpoint.
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
		return token{}, t.unusable("a token of type " + t.access.excerpt(got.Type()) + " came, and a bearer token is needed")
	case !sendable(got.AccessToken):
		return token{}, t.unusable("the token that came can't stand in a header")
	}
	return aged(got, began), nil
}

// aged works out until when a token is good and when the next one is fetched. The lifetime counts from before it was
// asked for: what the answer took has passed already.
func aged(got *oauth2.Token, began time.Time) token {
	t := token{text: got.AccessToken}
	expires := got.Expiry
	if expires.IsZero() {
		claims, _ := ParseClaims(got.AccessToken)
		expires = claims.Expires
	}
	lifetime := time.Until(expires).Round(time.Second)
	if expires.IsZero() || lifetime <= 0 { // not told, or told by a clock that is far from ours: the server will say when it is over
		return t
	}
	began = began.Round(0) // without its monotonic part, which stands still while a machine sleeps
	t.renew = began.Add(lifetime * 3 / 4)
	t.useless = began.Add(lifetime - min(longestSlack, lifetime/10))
	return t
}

func (t *tokens) close() {
	t.stop()
	t.http.CloseIdleConnections()
}
