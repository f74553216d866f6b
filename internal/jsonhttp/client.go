// Package jsonhttp sends requests to a server that speaks JSON over HTTP, and reads the answers. It is the common part of
// the clients of the participant and of Scan, which decide what an answer means.
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
	// Access holds the credentials and the trusted authorities. Its URL is the base of all paths, http or https; a user and
	// password in it are sent as basic authentication. Its Flags must not be empty.
	Access access.Config
	Logger *slog.Logger // nil: nothing is logged
	// Observe, if set, is called after every request with the operation, the HTTP status (0: no answer), the duration and
	// the bytes of JSON received. It must be safe for concurrent use.
	Observe func(ctx context.Context, operation string, status int, d time.Duration, bytes int64)
	// Decoded, if set, is called with how long it took to decode an answer's elements. It must be safe for concurrent use.
	Decoded func(ctx context.Context, operation string, d time.Duration)
	// NotJSON, if set, is called for every answer with status 200 that is not JSON. It must be safe for concurrent use.
	NotJSON func(operation string)
	// Connected, if set, is called for each new connection, before its first request.
	Connected func()
	// Pace limits the requests; nil: no limit. Long polls do not count as requests in flight.
	Pace *Pace
	// Refused reports whether an answer other than 200 asks for another token.
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
	notJSONs repetitions
}

// New checks the configuration and returns a client; it sends nothing. Its errors name the flag and never contain secrets.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.Access.URL)
	// The text of a URL that can't be parsed may contain a password, and so may the parser's error.
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
			MaxResponseHeaderBytes: maxHeader,
			ReadBufferSize:         readAhead,
			MaxIdleConns:           32,
			MaxIdleConnsPerHost:    32,
			IdleConnTimeout:        90 * time.Second,
		}),
		// A redirected POST would become a GET without a body, and the token would go to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

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
