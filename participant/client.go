package participant

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
	"ledgerindexer/ledger"
)

const (
	// DefaultLimit is what a server serves in one list call unless it is configured otherwise.
	DefaultLimit = 200
	// updatesPageSize is the most that servers serve in a page of updates.
	updatesPageSize = 2000
	// snapshotPageSize keeps a page of a snapshot to some megabytes; servers allow more.
	snapshotPageSize = 2000

	// maxBody is the largest answer that is read, in bytes of JSON.
	maxBody = 1 << 30
	// silence is how long nothing may come before an answer, or within it. Servers give up after 20 s by
	// themselves, and their word about why is worth waiting for.
	silence = 40 * time.Second
)

// Config says how to reach the participant.
type Config struct {
	// URL is the base of the participant's JSON API, http or https; a path prefix is allowed. A user and password
	// in it are sent as basic authentication, for a proxy in front of a participant that wants no token.
	URL string
	// Access says who we are, and whom we trust.
	Access access.Config
	// Limit is the number of elements asked for in one list call, 1 or more; 0 means DefaultLimit.
	Limit int
	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
	// Observe, if set, is told of every request: a short fixed name of the operation, the HTTP status (0: no
	// answer), how long it took and how many bytes of JSON came. It must be safe for concurrent use.
	Observe func(operation string, status int, d time.Duration, bytes int64)
}

// Client reads from one participant for one scope. It is safe for concurrent use.
type Client struct {
	cfg    Config
	scope  ledger.Scope
	base   *url.URL // without user info
	user   *url.Userinfo
	access *access.Access
	log    *slog.Logger
	http   *http.Client
	format formats

	maxBody int64
	silence time.Duration

	answered atomic.Bool // the server has answered, whatever

	finding chan struct{}          // one slot, taken while something is found out about the server
	logged  Server                 // what the log says; guarded by finding
	first   string                 // participant id that was found first, empty: none yet; guarded by finding
	found   atomic.Pointer[Server] // nil: not known (yet, or no longer)

	changes  atomic.Int64 // how often another server may have come since the beginning
	verified atomic.Int64 // up to which of the changes the participant is known to be the first one, or never

	served       proof // of list calls
	updatesList  size
	updatesPage  size
	snapshotList size
	snapshotPage size
}

// New checks the configuration and makes a client; it sends nothing. The files of Access must exist and be usable.
func New(cfg Config, scope ledger.Scope) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	// The text of a URL that can't be parsed may hold a password, and so may the parser's error.
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" ||
		base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("--ledger-url must be of the form http://host:port/prefix or https://host:port/prefix")
	}
	if cfg.Limit < 0 {
		return nil, fmt.Errorf("the limit of a list call must be at least 1, not %d", cfg.Limit)
	}
	if cfg.Limit == 0 {
		cfg.Limit = DefaultLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	format, err := newFormats(scope)
	if err != nil {
		return nil, err
	}
	if cfg.Access.Flags == "" {
		cfg.Access.Flags = "ledger"
	}
	cfg.Access.URL = cfg.URL
	who, err := access.New(cfg.Access, cfg.Logger)
	if err != nil {
		return nil, err
	}
	user := base.User
	base.User = nil
	c := &Client{
		cfg: cfg, scope: scope, base: base, user: user, access: who, log: cfg.Logger, format: format,
		maxBody: maxBody, silence: silence,
		finding:     make(chan struct{}, 1),
		updatesList: newSize(cfg.Limit), updatesPage: newSize(updatesPageSize),
		snapshotList: newSize(cfg.Limit), snapshotPage: newSize(snapshotPageSize),
	}
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	c.http = &http.Client{
		Transport: who.Transport(&http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err == nil {
					// Noted when the connection is there and not used yet: who looks at an answer that came over it
					// sees the note, and who looked before it was there has not looked at who is behind it.
					c.anew()
				}
				return conn, err
			},
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns:        32,
			MaxIdleConnsPerHost: 32,
			IdleConnTimeout:     90 * time.Second,
		}),
		// A redirected POST would become a GET without a body, and the token would go to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Access is who the client is to the participant, for people who look for what is wrong.
func (c *Client) Access() *access.Access { return c.access }

// Close closes the connections that are idle, and gives up a token that is being fetched.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.access.Close()
}

// redact takes secrets out of a text from outside.
func (c *Client) redact(text string) string { return c.access.Redact(text) }
