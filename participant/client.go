package participant

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Sizes of what the client asks for, and reads at most.
const (
	// listLimit is how many elements are asked for in one list call: as many as servers return by default.
	listLimit = 200
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
	// vettedBodies is the largest list of vetted packages that is read, in bytes of all its pages: it is held whole. An
	// entry with hundreds of packages has some 50 kB.
	vettedBodies = 64 << 20
	// smallBody is the largest answer that is read about a single contract or update, or about vetted packages, in
	// bytes. No real answer comes near it.
	smallBody = 64 << 20
	// tinyBody is the largest answer that is read about the server and the user, in bytes. Most are one line; the rights
	// of a user with thousands of parties are about one MB.
	tinyBody = 4 << 20
)

// Config says how to reach the participant's JSON API. A user and password in the URL are for a proxy in front of a
// participant that wants no token.
type Config = jsonhttp.Config

// Client reads from one participant for one scope. It is safe for concurrent use.
type Client struct {
	scope  ledger.Scope
	access *access.Access
	log    *slog.Logger
	http   *jsonhttp.Client
	format *formats // of the scope

	maxBody      int64
	wholeBody    int64
	vettedBodies int64
	silence      time.Duration
	longest      time.Duration

	discovery *semaphore.Weighted    // of one, held during discovery
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
	empties      jsonhttp.Empties // of pages of snapshots
}

// New checks the configuration and returns a client; it sends nothing. The files of Access must exist and be usable.
func New(cfg Config, scope ledger.Scope) (*Client, error) {
	format, err := formatsOf(scope)
	if err != nil {
		return nil, err
	}
	c := &Client{
		scope: scope, format: format,
		maxBody: maxBody, wholeBody: wholeBody, vettedBodies: vettedBodies,
		silence: jsonhttp.SilenceTimeout, longest: jsonhttp.AnswerTimeout,
		discovery:   semaphore.NewWeighted(1),
		updatesList: jsonhttp.NewSize(listLimit), updatesPage: jsonhttp.NewSize(updatesPageSize),
		snapshotList: jsonhttp.NewSize(listLimit), snapshotPage: jsonhttp.NewSize(snapshotPageSize),
	}
	c.http, err = jsonhttp.New(cfg, jsonhttp.Dialect{
		Flags: "ledger", Base: "the participant's JSON API",
		// Counted before the next answer is returned, so that its receiver sees the change.
		OtherMayAnswer: c.connectionChanged,
		Refused:        func(a jsonhttp.Answer) bool { return newError("", a, nil, c.redact).unauthenticated() },
	})
	if err != nil {
		return nil, err
	}
	c.access, c.log = c.http.Access(), c.http.Logger()
	return c, nil
}

// Access returns the client's credentials, for diagnosis.
func (c *Client) Access() *access.Access { return c.access }

// Close closes idle connections and cancels a token request in flight.
func (c *Client) Close() { c.http.Close() }

// redact removes secrets from a text received from outside.
func (c *Client) redact(text string) string { return c.access.Redact(text) }
