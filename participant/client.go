package participant

import (
	"context"
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
	// DefaultLimit is the number of elements that servers return in one list call by default.
	DefaultLimit = 200
	// updatesPageSize is the largest page of updates that servers return.
	updatesPageSize = 2000
	// snapshotPageSize keeps a page of a snapshot to some megabytes; servers allow more.
	snapshotPageSize = 2000

	// maxBody is the largest page or list that is read, in bytes of JSON. Decoding takes several times as much memory.
	// A larger answer is requested again in smaller pieces, so only a single larger update is refused. The network's
	// messages have at most 10 MB, which is about 50 MB of JSON.
	maxBody = 128 << 20
	// wholeBody is the largest snapshot that is read in one answer, in bytes. Servers without continuation tokens can't
	// return it in pieces. `backfill` needs several times as much memory for it.
	wholeBody = 1 << 30
	// smallBody is the largest answer that is read about a single contract or update, or about vetted packages, in
	// bytes. No real answer comes near it.
	smallBody = 64 << 20
	// tinyBody is the largest answer that is read about the server and the user, in bytes. Most are one line; the rights
	// of a user with thousands of parties are about one MB.
	tinyBody = 4 << 20
)

// Config says how to reach the participant.
type Config struct {
	// URL is the base of the participant's JSON API, http or https; a path prefix is allowed. A user and password
	// in it are sent as basic authentication, for a proxy in front of a participant that wants no token.
	URL string
	// Access holds the credentials and the trusted authorities.
	Access access.Config
	// MaxRequests limits the requests in flight, MaxRate the requests per second; 0 means no limit. Long polls
	// (TailUpdates) do not count as requests in flight.
	MaxRequests int
	MaxRate     float64
	// Limit is the number of elements asked for in one list call, 1 or more; 0 means DefaultLimit.
	Limit int
	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
	// Observe, if set, is called after every request with a short fixed name of the operation, the HTTP status (0: no
	// answer), the duration and the bytes of JSON received. It must be safe for concurrent use.
	Observe func(ctx context.Context, operation string, status int, d time.Duration, bytes int64)
	// Decoded, if set, is called with how long it took to decode the updates of an answer, or its records. It must be safe for
	// concurrent use.
	Decoded func(ctx context.Context, operation string, d time.Duration)
	// NotJSON, if set, is called for every answer with status 200 that is not JSON. It must be safe for concurrent use.
	NotJSON func(operation string)
}

// Client reads from one participant for one scope. It is safe for concurrent use.
type Client struct {
	cfg    Config
	scope  ledger.Scope
	access *access.Access
	log    *slog.Logger
	http   *jsonhttp.Client
	pace   *jsonhttp.Pace
	format formats

	maxBody   int64
	wholeBody int64
	silence   time.Duration
	longest   time.Duration

	discovery chan struct{}          // a lock, held during discovery; a context can interrupt waiting for it
	logged    Server                 // as last logged; guarded by discovery
	firstID   string                 // the first participant id found, empty: none yet; guarded by discovery
	found     atomic.Pointer[Server] // nil: not known (yet, or no longer)
	// reached: an update stream was found once. A later refusal or missing path may come from a proxy.
	reached atomic.Bool

	answered sync.Map // the names of the operations that have been answered

	changes  atomic.Int64 // counts the events after which another server may answer
	verified atomic.Int64 // the value of changes at the last check of the participant's id, or never

	served       longestList // of list calls
	updatesList  *jsonhttp.Size
	updatesPage  *jsonhttp.Size
	snapshotList *jsonhttp.Size
	snapshotPage *jsonhttp.Size
}

// New checks the configuration and returns a client; it sends nothing. The files of Access must exist and be usable.
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
		cfg: cfg, scope: scope, log: cfg.Logger, format: format, pace: jsonhttp.NewPace(cfg.MaxRequests, cfg.MaxRate),
		maxBody: maxBody, wholeBody: wholeBody, silence: jsonhttp.SilenceTimeout, longest: jsonhttp.AnswerTimeout,
		discovery:   make(chan struct{}, 1),
		updatesList: jsonhttp.NewSize(cfg.Limit), updatesPage: jsonhttp.NewSize(updatesPageSize),
		snapshotList: jsonhttp.NewSize(cfg.Limit), snapshotPage: jsonhttp.NewSize(snapshotPageSize),
	}
	c.http, err = jsonhttp.New(jsonhttp.Config{
		Access: cfg.Access, Logger: cfg.Logger,
		Observe: cfg.Observe, Decoded: cfg.Decoded, NotJSON: cfg.NotJSON,
		Pace: c.pace,
		// Counted before the connection is used, so that the receiver of an answer over it sees the change.
		Connected: c.connectionChanged,
		Refused:   func(a jsonhttp.Answer) bool { return newError("", a, nil, c.redact).unauthenticated() },
	})
	if err != nil {
		return nil, err
	}
	c.access = c.http.Access()
	return c, nil
}

// LimitRate sets the maximum number of requests per second; 0 means no limit.
func (c *Client) LimitRate(perSecond float64) { c.pace.Limit(perSecond) }

// Access returns the client's credentials, for diagnosis.
func (c *Client) Access() *access.Access { return c.access }

// Close closes idle connections and cancels a token request in flight.
func (c *Client) Close() { c.http.Close() }

// redact removes secrets from a text received from outside.
func (c *Client) redact(text string) string { return c.access.Redact(text) }
