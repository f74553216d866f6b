// Package jsonhttp sends requests to a server that speaks JSON over HTTP, and reads the answers. It is the common part
// of the clients of the participant and of Scan, which decide what an answer means.
package jsonhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"ledgerindexer/internal/base/access"
)

// Config says how to reach a server, and has functions that are called for what it answers. The functions may be nil;
// they must be safe for concurrent use.
type Config struct {
	// URL is the base of all paths, http or https, with a prefix or without. A user and password in it are sent as basic
	// authentication, for a proxy before a server that wants no token.
	URL string
	// Access holds the credentials and the trusted authorities.
	Access access.Config
	// MaxRequests limits the requests in flight, MaxRate the requests per second; 0 means no limit. Long polls do not
	// count as requests in flight.
	MaxRequests int
	MaxRate     float64
	Logger      *slog.Logger // nil: nothing is logged
	// Observe is called after every request with a short fixed name of the operation, the HTTP status (0: no answer), the
	// duration and the bytes of JSON received.
	Observe func(ctx context.Context, operation string, status int, d time.Duration, bytes int64)
	// Decoded is called with how long it took to decode an answer's elements.
	Decoded func(ctx context.Context, operation string, d time.Duration)
	// Answered is called with every answer before its body is read, which it must not read.
	Answered func(*http.Response)
	// NotJSON is called for every answer with status 200 that is not JSON.
	NotJSON func(operation string)
	// Reached says that another client got a usable answer from the server: what is not JSON may pass from the beginning.
	Reached bool
}

// Dialect is what the client of one kind of server knows of it.
type Dialect struct {
	Flags   string            // begin the names of its flags: ledger, scan
	Base    string            // what its URL is the base of, for errors: the participant's JSON API
	Refused func(Answer) bool // reports whether an answer other than 200 asks for another token
	// OtherMayAnswer, if set, is called when another server may answer from now on: for each new connection, before its
	// first request, and for each one that ends without an answer, before what was asked over it is asked again over
	// another.
	OtherMayAnswer func()
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	cfg      Config
	server   Dialect
	throttle *throttle
	base     *url.URL // without user info
	user     *url.Userinfo
	access   *access.Access
	http     *http.Client

	answered atomic.Bool
	usable   atomic.Int64 // answers with status 200 and the right content type, without those that were not JSON
}

// New checks the configuration and returns a client; it sends nothing. Its errors name the flag and never contain
// secrets.
func New(cfg Config, server Dialect) (*Client, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Access.URL, cfg.Access.Flags = cfg.URL, cmp.Or(cfg.Access.Flags, server.Flags)
	base, err := url.Parse(cfg.URL)
	// The text of a URL that can't be parsed may contain a password, and so may the parser's error.
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Hostname() == "" ||
		base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("--%s-url must be of the form http://host:port/prefix or https://host:port/prefix",
			cfg.Access.Flags)
	}
	credentials, err := access.New(cfg.Access, cfg.Logger)
	if err != nil {
		return nil, err
	}
	user := base.User
	base.User = nil
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	c := &Client{cfg: cfg, server: server, throttle: newThrottle(cfg.MaxRequests, cfg.MaxRate), base: base, user: user,
		access: credentials, http: &http.Client{
			Transport: credentials.Transport(&http.Transport{
				Proxy:                  access.ProxyOf,
				OnProxyConnectResponse: proxyAnswered,
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := dialer.DialContext(ctx, network, address)
					if err != nil || server.OtherMayAnswer == nil {
						return conn, err
					}
					server.OtherMayAnswer()
					return &watched{Conn: conn, ended: sync.OnceFunc(server.OtherMayAnswer)}, nil
				},
				TLSHandshakeTimeout:    10 * time.Second,
				MaxResponseHeaderBytes: maxHeader,
				ReadBufferSize:         readAhead,
				MaxIdleConns:           32,
				MaxIdleConnsPerHost:    32,
				IdleConnTimeout:        90 * time.Second,
			}),
			// A redirected POST would become a GET without a body, and the token would go to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	if cfg.Reached {
		c.usable.Store(1)
	}
	return c, nil
}

// proxyAnswered returns what a proxy says that does not connect to the server.
func proxyAnswered(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return &access.ConnectionError{What: "the proxy " + proxy.Host + " does not connect to the server",
		Do:  "see what the proxy lets through, and whether the server's host belongs into NO_PROXY",
		Err: errors.New("it answers " + access.Excerpt(answer.Status))}
}

// watched is a connection that tells when it ends with a request that nothing was answered to. The transport may send
// that one again, over another kept connection if there is one: no connection is new then, and no request fails. The
// end of an idle connection says nothing.
type watched struct {
	net.Conn
	waits atomic.Bool // something was sent since the last byte came
	ended func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.waits.Store(true)
	n, err := w.Conn.Write(p)
	w.failed(err)
	return n, err
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.waits.Store(false)
	}
	w.failed(err)
	return n, err
}

// failed tells of an error that came before the transport closes the connection, and so before it sends anything again.
func (w *watched) failed(err error) {
	if err != nil && w.waits.Load() && !errors.Is(err, net.ErrClosed) {
		w.ended()
	}
}

// Logger returns what the client logs to.
func (c *Client) Logger() *slog.Logger { return c.cfg.Logger }

// Access returns the client's credentials.
func (c *Client) Access() *access.Access { return c.access }

// URL returns the server's URL without user and password.
func (c *Client) URL() *url.URL { return c.base }

// Answered reports whether the server has answered a request, with whatever status.
func (c *Client) Answered() bool { return c.answered.Load() }

// CloseIdleConnections closes idle connections.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Close closes idle connections and cancels a token request in flight.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.access.Close()
}
