package scan

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"ledgerindexer/internal/access"
)

const (
	// MaxPage is the most records that a server serves in a page.
	MaxPage = 1000

	// maxBody is the largest answer that is read, in bytes of JSON. A record is about 2 kB.
	maxBody = 64 << 20
	// patience is how long a request may take. Servers give up before.
	patience = time.Minute
)

// Config says how to reach the Scan service.
type Config struct {
	// URL is the base of the service, http or https, such as https://scan.example.com/api/scan. A user and password in
	// it are sent as basic authentication.
	URL string
	// Access says who we are to a proxy before the service (which itself asks nobody), and whom we trust.
	Access access.Config
	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
}

// Client reads from one Scan service. It is safe for concurrent use.
type Client struct {
	base   *url.URL // without user info
	user   *url.Userinfo
	access *access.Access
	http   *http.Client
}

// New checks the configuration and makes a client; it sends nothing. Its errors never repeat what may be a secret.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("--scan-url must be of the form http://host:port/prefix or https://host:port/prefix")
	}
	user := base.User
	base.User = nil
	if cfg.Access.Flags == "" {
		cfg.Access.Flags = "scan"
	}
	cfg.Access.URL = cfg.URL
	who, err := access.New(cfg.Access, cfg.Logger)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &Client{base: base, user: user, access: who, http: &http.Client{
		Transport: who.Transport(&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second,
		}),
		Timeout: patience,
		// A redirected POST would become a GET without a body, and the token would go to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Access is who the client is to a proxy before the service, for people who look for what is wrong.
func (c *Client) Access() *access.Access { return c.access }

// Close closes the connections that are idle, and gives up a token that is being fetched.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.access.Close()
}
