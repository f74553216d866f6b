// Package jsonhttp sends requests to a server that speaks JSON over HTTP, and reads the answers: what the participant's
// and the Scan's clients have in common. What an answer means is theirs to say.
package jsonhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"ledgerindexer/internal/access"
)

// Config says how to reach a server.
type Config struct {
	// Access says who we are, and whom we trust. Its URL is the base of all paths, http or https; a user and password in
	// it are sent as basic authentication. Its Flags is not empty.
	Access access.Config
	Logger *slog.Logger // nil: nothing is logged
	// Observe, if set, is told of every request: its operation, the HTTP status (0: no answer), how long it took and how
	// many bytes of JSON came. It must be safe for concurrent use.
	Observe func(operation string, status int, d time.Duration, bytes int64)
	// NotJSON, if set, is told the operation of every answer of success that is no JSON. It must be safe for concurrent use.
	NotJSON func(operation string)
	// Connected, if set, is told of each new connection, before the first request goes over it.
	Connected func()
	// Pace bounds what the server is asked for; nil: nothing does. Long polls do not count as requests in flight.
	Pace *Pace
	// Refused says of an answer that is no success whether the server wants another token.
	Refused func(Answer) bool
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	cfg    Config
	base   *url.URL // without user info
	user   *url.Userinfo
	access *access.Access
	http   *http.Client

	answered atomic.Bool
	strange  repetitions
}

// New checks the configuration and makes a client; it sends nothing. Its errors name the flag, and never repeat what may
// be a secret.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.Access.URL)
	// The text of a URL that can't be parsed may hold a password, and so may the parser's error.
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Hostname() == "" ||
		base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("--%s-url must be of the form http://host:port/prefix or https://host:port/prefix", cfg.Access.Flags)
	}
	who, err := access.New(cfg.Access, cfg.Logger)
	if err != nil {
		return nil, err
	}
	user := base.User
	base.User = nil
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &Client{cfg: cfg, base: base, user: user, access: who, http: &http.Client{
		Transport: who.Transport(&http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err == nil && cfg.Connected != nil {
					cfg.Connected()
				}
				return conn, err
			},
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: mostHeader,
			ReadBufferSize:         readAhead,
			MaxIdleConns:           32,
			MaxIdleConnsPerHost:    32,
			IdleConnTimeout:        90 * time.Second,
		}),
		// A redirected POST would become a GET without a body, and the token would go to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Access is who the client is to the server.
func (c *Client) Access() *access.Access { return c.access }

// URL is the server's, without user and password.
func (c *Client) URL() *url.URL { return c.base }

// Answered tells whether the server has answered a request, whatever it said.
func (c *Client) Answered() bool { return c.answered.Load() }

// CloseIdleConnections closes the connections that are idle.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Close closes the connections that are idle, and gives up a token that is being fetched.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.access.Close()
}
