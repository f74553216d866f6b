package scan

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
)

const (
	// MaxPage is the most records that a server serves in a page.
	MaxPage = 1000

	// maxBody is the largest page that is read, in bytes of JSON. A record is about 2 kB.
	maxBody = 64 << 20
	// smallBody is the largest answer that is read about the service itself.
	smallBody = 1 << 20
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
	// Observe, if set, is told of every request: a short fixed name of the operation, the HTTP status (0: no
	// answer), how long it took and how many bytes of JSON came. It must be safe for concurrent use.
	Observe func(operation string, status int, d time.Duration, bytes int64)
	// NotJSON, if set, is told the operation of every answer of success that is no JSON. It must be safe for concurrent use.
	NotJSON func(operation string)
}

// Client reads from one Scan service. It is safe for concurrent use.
type Client struct {
	cfg    Config
	access *access.Access
	log    *slog.Logger
	http   *jsonhttp.Client

	maxBody int64
	silence time.Duration

	served atomic.Bool // it has served its history, to this client or before
	met    atomic.Bool // it has answered as a Scan service does: who refuses access now may be a proxy

	page   *jsonhttp.Size // of pages that are read on from an event id
	newest *jsonhttp.Size // of looks at the newest records
}

// New checks the configuration and makes a client; it sends nothing. Its errors never repeat what may be a secret.
func New(cfg Config) (*Client, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Access.Flags == "" {
		cfg.Access.Flags = "scan"
	}
	cfg.Access.URL = cfg.URL
	c := &Client{
		cfg: cfg, log: cfg.Logger, maxBody: maxBody, silence: jsonhttp.Silence,
		page: jsonhttp.NewSize(MaxPage), newest: jsonhttp.NewSize(MaxPage),
	}
	var err error
	c.http, err = jsonhttp.New(jsonhttp.Config{
		Access: cfg.Access, Logger: cfg.Logger,
		Observe: cfg.Observe, NotJSON: cfg.NotJSON,
		Refused: func(a jsonhttp.Answer) bool { return a.Status == http.StatusUnauthorized },
	})
	if err != nil {
		return nil, err
	}
	c.access = c.http.Access()
	return c, nil
}

// Access is who the client is to a proxy before the service, for people who look for what is wrong.
func (c *Client) Access() *access.Access { return c.access }

// WasThere tells the client that the service has a history, as was found by an earlier one: where something that does
// not speak as a Scan service says that it is missing, that passes.
func (c *Client) WasThere() {
	c.served.Store(true)
	c.met.Store(true)
}

// Close closes the connections that are idle, and gives up a token that is being fetched.
func (c *Client) Close() { c.http.Close() }
