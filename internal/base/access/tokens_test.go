package access

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const secret = "hunter2-of-the-client"

// clock is a time that passes when it is told to.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) pass(d time.Duration) {
	next := c.now.Load().Add(d)
	c.now.Store(&next)
}

// endpoint is a token endpoint that counts what it is asked and answers as it is told.
type endpoint struct {
	*httptest.Server
	t      *testing.T
	answer atomic.Pointer[http.HandlerFunc] // nil: the next token, good for an hour

	mu   sync.Mutex
	seen []url.Values // of the requests, with the client's id and secret wherever they came
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{t: t}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		if id, password, ok := r.BasicAuth(); ok {
			r.PostForm["client_id"] = []string{unescaped(id)}
			r.PostForm["client_secret"] = []string{unescaped(password)}
		}
		e.mu.Lock()
		e.seen = append(e.seen, r.PostForm)
		n := len(e.seen)
		e.mu.Unlock()
		if handle := e.answer.Load(); handle != nil {
			(*handle)(w, r)
			return
		}
		tell(w, http.StatusOK, map[string]any{"access_token": fmt.Sprintf("token-%d", n), "token_type": "Bearer", "expires_in": 3600})
	}))
	t.Cleanup(e.Close)
	return e
}

func unescaped(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		panic(err)
	}
	return plain
}

func tell(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (e *endpoint) answers(handle http.HandlerFunc) {
	if handle == nil {
		e.answer.Store(nil)
		return
	}
	e.answer.Store(&handle)
}

func (e *endpoint) requests() []url.Values {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]url.Values(nil), e.seen...)
}

// client is an Access that gets its tokens there, by a clock of its own.
func (e *endpoint) client(change ...func(*Config)) (*Access, *clock) {
	e.t.Helper()
	cfg := Config{Flags: "ledger", OAuth: OAuth{TokenURL: e.URL + "/token?policy=p0licy", ClientID: "the indexer",
		ClientSecretFile: file(e.t, "secret", secret+"\n")}}
	for _, ch := range change {
		ch(&cfg)
	}
	a := made(e.t, cfg)
	c := &clock{}
	now := time.Now()
	c.now.Store(&now)
	a.tokens.clock = func() time.Time { return *c.now.Load() }
	return a, c
}

func tokenOf(t *testing.T, a *Access) string {
	t.Helper()
	token, err := a.Token(t.Context())
	require.NoError(t, err)
	return token
}

// settled waits for the fetch under way, if there is one.
func settled(a *Access) {
	<-a.tokens.fetches.DoChan("", func() (any, error) { return nil, nil })
}

func TestClientCredentialsAreSentAsConfigured(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a, _ := e.client(func(c *Config) { c.OAuth.Scopes, c.OAuth.Audience = []string{"read", "more"}, "https://participant" })
	require.Equal(t, "token-1", tokenOf(t, a))
	require.Equal(t, "token-1", tokenOf(t, a))
	require.Equal(t, []url.Values{{
		"grant_type": {"client_credentials"}, "scope": {"read more"}, "audience": {"https://participant"},
		"client_id": {"the indexer"}, "client_secret": {secret},
	}}, e.requests(), "once, and with nothing else")
	require.True(t, a.Configured())
	require.Equal(t, "the token endpoint "+e.URL+"/token", a.Origin(), "without its query")
}

// Some endpoints want the secret in the header, some in the form.
func TestTheEndpointMayWantTheSecretInTheForm(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a, c := e.client()
	e.answers(func(w http.ResponseWriter, r *http.Request) {
		if _, _, basic := r.BasicAuth(); basic {
			tell(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
			return
		}
		tell(w, http.StatusOK, map[string]any{"access_token": "token", "expires_in": 100})
	})
	require.Equal(t, "token", tokenOf(t, a))
	require.Len(t, e.requests(), 2)
	c.pass(time.Hour)
	require.Equal(t, "token", tokenOf(t, a))
	require.Len(t, e.requests(), 3, "it is remembered how")
}

// An endpoint whose answer has no end is given up, whether its bytes come at once or one by one.
func TestAnEndpointWithoutEnd(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	for _, begin := range []string{`{"access_token":"`, ``} {
		e.answers(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, err := io.WriteString(w, begin)
			for part := strings.Repeat("a", 1<<16); err == nil; {
				_, err = io.WriteString(w, part)
			}
		})
		a, _ := e.client()
		_, err := a.Token(t.Context())
		require.ErrorContains(t, err, "/token: ")
	}
	synctest.Test(t, func(t *testing.T) {
		a := made(t, Config{Flags: "ledger", OAuth: OAuth{TokenURL: "http://s/token", ClientID: "i", ClientSecretFile: file(t, "secret", secret)}})
		defer a.Close()
		a.tokens.http.Transport = drip{}
		began := time.Now()
		_, err := a.Token(t.Context())
		require.Error(t, err)
		require.LessOrEqual(t, time.Since(began), 2*fetchTimeout, "the secret is sent in two ways")
	})
}

// drip answers with a byte each second.
type drip struct{}

func (drip) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(dripping{r.Context()}), Request: r}, nil
}

type dripping struct{ ctx context.Context }

func (d dripping) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(time.Second):
		p[0] = 'a'
		return 1, nil
	}
}

func TestConcurrentRequestsShareOneFetch(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a, c := e.client()
	for round := 1; round <= 3; round++ {
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				token, err := a.Token(t.Context())
				if err != nil || token != fmt.Sprintf("token-%d", round) {
					t.Error(token, err)
				}
			})
		}
		group.Wait()
		require.Len(t, e.requests(), round)
		c.pass(time.Hour) // it has expired
	}
}

// Who gives up does so alone: the fetch continues for the others.
func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	arrived, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release() // the endpoint waits for its requests
	e.answers(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-released
		tell(w, http.StatusOK, map[string]any{"access_token": "token"})
	})
	a, _ := e.client()
	type got struct {
		token string
		err   error
	}
	patient := make(chan got, 1)
	go func() {
		token, err := a.Token(t.Context())
		patient <- got{token, err}
	}()
	select {
	case <-arrived:
	case early := <-patient:
		t.Fatal("nothing was asked:", early.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Token(ctx)
	require.ErrorIs(t, err, context.Canceled)
	release()
	require.Equal(t, got{token: "token"}, <-patient)
}

func TestATokenIsRenewedBeforeItExpiresWhileItIsUsed(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a, c := e.client()
	require.Equal(t, "token-1", tokenOf(t, a))
	c.pass(44 * time.Minute)
	require.Equal(t, "token-1", tokenOf(t, a))
	settled(a)
	require.Len(t, e.requests(), 1, "it is good for long")

	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	e.answers(func(w http.ResponseWriter, _ *http.Request) {
		<-released
		tell(w, http.StatusOK, map[string]any{"access_token": "token-2", "expires_in": 3600})
	})
	c.pass(2 * time.Minute)
	for range 10 {
		require.Equal(t, "token-1", tokenOf(t, a), "nobody waits while it is good")
	}
	release()
	settled(a)
	require.Equal(t, "token-2", tokenOf(t, a))
	require.Len(t, e.requests(), 2)
}

func TestAFailedRenewalIsNoFailureWhileTheTokenIsGood(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a, c := e.client()
	var log logged
	a.tokens.log = log.logger()
	require.Equal(t, "token-1", tokenOf(t, a))
	e.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	before := len(e.requests())
	c.pass(46 * time.Minute)
	for range 10 {
		require.Equal(t, "token-1", tokenOf(t, a))
		settled(a)
	}
	require.Len(t, e.requests(), before+1, "it is not tried again with every request")
	require.Equal(t, 1, strings.Count(log.String(), "the token can't be renewed"))
	c.pass(failurePause)
	require.Equal(t, "token-1", tokenOf(t, a))
	settled(a)
	require.Len(t, e.requests(), before+2)

	c.pass(14 * time.Minute)
	_, err := a.Token(t.Context())
	require.ErrorContains(t, err, "HTTP status 503", "it is over")
	e.answers(nil)
	require.Contains(t, tokenOf(t, a), "token-")
}

// Whatever an endpoint says of the lifetime, a request is not a fetch.
func TestLifetimes(t *testing.T) {
	t.Parallel()
	inAnHour := time.Now().Add(time.Hour).Unix()
	for name, c := range map[string]struct {
		token    string
		expires  any
		good     time.Duration // it is used for so long
		over     time.Duration // and not any more by then; 0: it is good until it is refused
		renewals int           // within good
	}{
		"a second":             {"token", 1, 700 * time.Millisecond, 950 * time.Millisecond, 0},
		"ten seconds":          {"token", 10, 8900 * time.Millisecond, 9100 * time.Millisecond, 1},
		"an hour":              {"token", 3600, 3589 * time.Second, 3591 * time.Second, 1},
		"as text":              {"token", "3600", 3589 * time.Second, 3591 * time.Second, 1},
		"not told":             {"token", nil, 1000 * time.Hour, 0, 0},
		"zero":                 {"token", 0, 1000 * time.Hour, 0, 0},
		"negative":             {"token", -5, 1000 * time.Hour, 0, 0},
		"told by the token":    {jwt(fmt.Sprintf(`{"exp":%d}`, inAnHour)), nil, 3500 * time.Second, 3601 * time.Second, 1},
		"told wrong by it":     {jwt(`{"exp":1}`), nil, 1000 * time.Hour, 0, 0},
		"longer than sensible": {"token", 1e12, 1000 * time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			e.answers(func(w http.ResponseWriter, _ *http.Request) {
				tell(w, http.StatusOK, map[string]any{"access_token": c.token, "expires_in": c.expires, "token_type": "bearer"})
			})
			a, clock := e.client()
			for range 5 {
				require.Equal(t, c.token, tokenOf(t, a))
			}
			require.Len(t, e.requests(), 1)
			clock.pass(c.good)
			a.tokens.mu.Lock()
			good, aging := a.tokens.held.valid(a.tokens.clock()), a.tokens.held.renewalDue(a.tokens.clock())
			a.tokens.mu.Unlock()
			require.True(t, good)
			require.Equal(t, c.renewals == 1, aging)
			if c.over == 0 {
				return
			}
			clock.pass(c.over - c.good)
			a.tokens.mu.Lock()
			defer a.tokens.mu.Unlock()
			require.False(t, a.tokens.held.valid(a.tokens.clock()))
		})
	}
}

func TestARefusedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a, c := e.client()
	require.Equal(t, "token-1", tokenOf(t, a))
	var group sync.WaitGroup
	for range 10 { // all of them were refused with the same token
		group.Go(func() {
			fresh, err := a.Renew(t.Context(), "token-1")
			if err != nil || fresh != "token-2" {
				t.Error(fresh, err)
			}
		})
	}
	group.Wait()
	require.Equal(t, "token-2", tokenOf(t, a))

	for range 10 { // a fresh one is refused too: the next would be as well
		fresh, err := a.Renew(t.Context(), "token-2")
		require.NoError(t, err)
		require.Empty(t, fresh)
	}
	require.Len(t, e.requests(), 2)
	c.pass(refusalPause)
	fresh, err := a.Renew(t.Context(), "token-2")
	require.NoError(t, err)
	require.Equal(t, "token-3", fresh)
}

// An endpoint may have nothing better than what was refused.
func TestTheSameTokenAgainIsNoOther(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	e.answers(func(w http.ResponseWriter, _ *http.Request) {
		tell(w, http.StatusOK, map[string]any{"access_token": "always-this"})
	})
	a, c := e.client()
	require.Equal(t, "always-this", tokenOf(t, a))
	fresh, err := a.Renew(t.Context(), "always-this")
	require.NoError(t, err)
	require.Empty(t, fresh)

	c.pass(time.Minute)
	e.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	_, err = a.Renew(t.Context(), "always-this")
	require.ErrorContains(t, err, "HTTP status 502")
}

func TestTheSecretIsReadForEveryToken(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a, c := e.client()
	tokenOf(t, a)
	write(t, a.cfg.OAuth.ClientSecretFile, "another-secret")
	c.pass(time.Hour)
	tokenOf(t, a)
	require.Equal(t, "another-secret", e.requests()[1].Get("client_secret"))

	write(t, a.cfg.OAuth.ClientSecretFile, "")
	c.pass(time.Hour)
	_, err := a.Token(t.Context())
	require.ErrorContains(t, err, "--ledger-oauth-client-secret-file: "+a.cfg.OAuth.ClientSecretFile+" is empty")
	require.Equal(t, "[secret] [secret]", a.Redact("another-secret "+secret))
}

func TestCloseEndsAFetch(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	arrived := make(chan struct{})
	e.answers(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	a, _ := e.client()
	go func() {
		<-arrived
		a.Close()
	}()
	_, err := a.Token(t.Context())
	require.ErrorContains(t, err, "the program is ending")
}
