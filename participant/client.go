package participant

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

const (
	// DefaultLimit is what a server serves in one list call unless it is configured otherwise.
	DefaultLimit = 200
	// updatesPageSize is the most that servers serve in a page of updates.
	updatesPageSize = 2000
	// snapshotPageSize keeps a page of a snapshot to some megabytes; servers allow more.
	snapshotPageSize = 2000

	// maxBody is the largest page or list that is read, in bytes of JSON: to decode it takes several times its size in
	// memory. A larger one is asked for again in smaller pieces, so what it bounds for good is one update: those of the
	// network, whose messages have 10 MB, come to some 50 MB of JSON.
	maxBody = 128 << 20
	// wholeBody is the largest snapshot that is read in one answer, as servers without continuation tokens serve it: it
	// can't be asked for in pieces. `backfill` needs several times as much memory for it.
	wholeBody = 1 << 30
	// smallBody is the largest answer that is read about a single thing, or about vetted packages. Nothing real comes
	// near it.
	smallBody = 64 << 20
	// tinyBody is the largest answer that is read about the server itself and who we are to it: most are one line, and
	// the rights of a user with thousands of parties are about one MB.
	tinyBody = 4 << 20
)

// Config says how to reach the participant.
type Config struct {
	// URL is the base of the participant's JSON API, http or https; a path prefix is allowed. A user and password
	// in it are sent as basic authentication, for a proxy in front of a participant that wants no token.
	URL string
	// Access says who we are, and whom we trust.
	Access access.Config
	// MaxRequests bounds the requests in flight, and MaxRate those that begin in a second; 0: nothing does. Long polls
	// (TailUpdates) do not count as requests in flight.
	MaxRequests int
	MaxRate     float64
	// Limit is the number of elements asked for in one list call, 1 or more; 0 means DefaultLimit.
	Limit int
	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
	// Observe, if set, is told of every request: a short fixed name of the operation, the HTTP status (0: no
	// answer), how long it took and how many bytes of JSON came. It must be safe for concurrent use.
	Observe func(operation string, status int, d time.Duration, bytes int64)
	// NotJSON, if set, is told the operation of every answer of success that is no JSON. It must be safe for concurrent use.
	NotJSON func(operation string)
}

// Client reads from one participant for one scope. It is safe for concurrent use.
type Client struct {
	cfg    Config
	scope  ledger.Scope
	access *access.Access
	log    *slog.Logger
	http   *jsonhttp.Client
	format formats

	maxBody   int64
	wholeBody int64
	silence   time.Duration
	longest   time.Duration

	finding chan struct{}          // one slot, taken while something is found out about the server
	logged  Server                 // what the log says; guarded by finding
	first   string                 // participant id that was found first, empty: none yet; guarded by finding
	found   atomic.Pointer[Server] // nil: not known (yet, or no longer)
	met     atomic.Bool            // an update stream was found once: who says now that there is none, or refuses it, may be a proxy

	answered sync.Map // the operations that were answered once, by name

	changes  atomic.Int64 // how often another server may have come since the beginning
	verified atomic.Int64 // up to which of the changes the participant is known to be the first one, or never

	served       proof // of list calls
	updatesList  *jsonhttp.Size
	updatesPage  *jsonhttp.Size
	snapshotList *jsonhttp.Size
	snapshotPage *jsonhttp.Size
}

// New checks the configuration and makes a client; it sends nothing. The files of Access must exist and be usable.
func New(cfg Config, scope ledger.Scope) (*Client, error) {
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
	c := &Client{
		cfg: cfg, scope: scope, log: cfg.Logger, format: format,
		maxBody: maxBody, wholeBody: wholeBody, silence: jsonhttp.Silence, longest: jsonhttp.Longest,
		finding:     make(chan struct{}, 1),
		updatesList: jsonhttp.NewSize(cfg.Limit), updatesPage: jsonhttp.NewSize(updatesPageSize),
		snapshotList: jsonhttp.NewSize(cfg.Limit), snapshotPage: jsonhttp.NewSize(snapshotPageSize),
	}
	c.http, err = jsonhttp.New(jsonhttp.Config{
		Access: cfg.Access, Logger: cfg.Logger,
		Observe: cfg.Observe, NotJSON: cfg.NotJSON,
		Pace: jsonhttp.NewPace(cfg.MaxRequests, cfg.MaxRate),
		// Noted when the connection is there and not used yet: who looks at an answer that came over it sees the note,
		// and who looked before it was there has not looked at who is behind it.
		Connected: c.anew,
		Refused:   func(a jsonhttp.Answer) bool { return newError("", a, nil, c.redact).unauthenticated() },
	})
	if err != nil {
		return nil, err
	}
	c.access = c.http.Access()
	return c, nil
}

// Access is who the client is to the participant, for people who look for what is wrong.
func (c *Client) Access() *access.Access { return c.access }

// Close closes the connections that are idle, and gives up a token that is being fetched.
func (c *Client) Close() { c.http.Close() }

// redact takes secrets out of a text from outside.
func (c *Client) redact(text string) string { return c.access.Redact(text) }
