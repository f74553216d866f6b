package scan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// How the updates of a network are read.
const (
	pathUpdates = "/v2/updates"
	// The most updates that a poll, or a request for the newest update, asks for.
	newsPage = 200
)

// Updates reads the updates of a network, as the party that operates it (the DSO) sees them (interface.md, "Updates of
// a network"). Offsets are those of [ledger.NetworkOffset]. The service has no request with an upper bound, and does
// not say how far it has come. So a page is complete up to its last update, or, if the service sent an update at or
// beyond the bound, up to the bound. It is safe for concurrent use.
type Updates struct {
	client    *Client
	size      *jsonhttp.Size // of pages of updates
	snapshots *jsonhttp.Size // of pages of snapshots
	empties   jsonhttp.Empties
	creations creations
	// lookUp reads the updates that created a snapshot's contracts; nil: UpdateOfScope. Where several services have to
	// agree, it asks them.
	lookUp func(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error)

	mu       sync.Mutex
	party    string        // that operates the network (the DSO); empty: not asked for yet
	verified int64         // the client's changes when party was last asked for
	expected ledger.Offset // an update at or above this offset was served before
	newest   ledger.Offset // the highest offset of an update that was served
	quiet    ledger.Offset // there were no updates after this offset when the newest one was last looked for; 0: not known
	each     int64         // bytes of JSON per update; 0: not known
	gap      gap
	firsts   firsts
	polls    polls
}

// gap is a range without updates. It holds as long as the client's count of changes is the same.
type gap struct {
	ledger.Range
	changes int64
}

// NewUpdates returns a reader; it sends nothing. Closing the client ends it.
func NewUpdates(client *Client) *Updates {
	return &Updates{client: client, size: jsonhttp.NewSize(MaxPage), snapshots: jsonhttp.NewSize(MaxPage)}
}

// Version returns the release of the service; see [Client.Version].
func (u *Updates) Version(ctx context.Context) (string, error) { return u.client.Version(ctx) }

// Close closes the service's client.
func (u *Updates) Close() { u.client.Close() }

// url returns where the service is, without user and password.
func (u *Updates) url() string { return u.client.http.URL().String() }

// SetMinimum says that an update at or above an offset was served before, perhaps by another node behind the same
// address. A service that has none yet lags behind: LedgerEnd then fails with an *Error, which passes.
func (u *Updates) SetMinimum(offset ledger.Offset) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expected = max(u.expected, offset)
}

// Changes counts the events after which another server may answer. It grows before the first answer of the other server
// is returned.
func (u *Updates) Changes() int64 { return u.client.changes.Load() }

// PrunedOffset returns ledger.ErrNotOffered: a Scan service keeps the history from its beginning.
func (u *Updates) PrunedOffset(context.Context) (ledger.Offset, error) {
	return 0, ledger.ErrNotOffered
}

// Party returns the party that operates the network, whose view the updates are. It is asked for again after each
// change of the connection.
//
// Errors: a *ledger.Problem where another network's service answers now, or the service does not say of which network
// it is; and those of [Client.Describe].
func (u *Updates) Party(ctx context.Context) (string, error) {
	changes := u.Changes() // before the request: a change during it needs another check
	u.mu.Lock()
	party, verified := u.party, u.verified
	u.mu.Unlock()
	if party != "" && verified == changes {
		return party, nil
	}
	now, err := member[string](ctx, u.client, jsonhttp.Request{Operation: "dso-party-id", Path: pathNetwork},
		"dso_party_id")
	var unanswered *Error
	switch {
	// a proxy that finds no service behind it
	case errors.Is(err, ledger.ErrNotOffered) && party != "" && errors.As(err, &unanswered):
		return "", fmt.Errorf("ask for the network's party, which the service returned before: %w", unanswered)
	case errors.Is(err, ledger.ErrNotOffered):
		return "", &ledger.Problem{What: "the Scan service does not say of which network it is (GET " + pathNetwork + ")",
			Do: "check --scan-url, mostly https://HOST/api/scan; of a Scan before Splice 0.4.2 `indexer run " +
				"--scan-history=transactions` reads the transaction history", Err: err}
	case err != nil:
		return "", fmt.Errorf("ask for the network's party: %w", err)
	case party != "" && now != party:
		return "", &ledger.Problem{
			What: fmt.Sprintf("the network behind %s changed from the one that %s operates to the one that %s operates",
				u.client.http.URL(), party, now),
			Do: "check --scan-url; the history of another network needs a database, or a pair of schemas, of its own",
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.party, u.verified = now, changes
	return now, nil
}

// ReadUpdates reads updates from after, exclusive, to to, inclusive, which must not be above the newest update that was
// served. The page is complete for (after, page.To], and after < page.To <= to.
//
// Errors: ledger.ErrNotOffered where the service has no such updates; a *ledger.Problem where the request is refused,
// another network's service answers, or one update is larger than what can be read; a *ledger.DecodeError where the
// answer can't be understood; an *Error, which may be tried again, for the rest.
func (u *Updates) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return u.readUpdates(ctx, after, to, u.client.maxBody)
}

// ReadUpdatesWithin is ReadUpdates with a limit on the answer, in bytes of JSON. The error is ledger.ErrByteLimit where
// even one update is larger.
func (u *Updates) ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, maxBytes int64) (ledger.Page, error) {
	return u.readUpdates(ctx, after, to, min(maxBytes, u.client.maxBody))
}

func (u *Updates) readUpdates(ctx context.Context, after, to ledger.Offset, maxBytes int64) (ledger.Page, error) {
	if after < 0 || to <= after {
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: there is nothing between", after, to)
	}
	if u.isEmpty(after, to) {
		return ledger.Page{From: after, To: to}, nil
	}
	// There are no more updates than offsets.
	got, err := u.page(ctx, "updates", after, int(min(MaxPage, to-after)), maxBytes)
	if err != nil {
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to, err)
	}
	page := ledger.Page{From: after, To: to, Updates: got.updates, Bytes: got.bytes}
	for i := range got.updates {
		if beyond := got.updates[i].Offset; beyond > to {
			page.Updates = got.updates[:i:i]
			// what is dropped says nothing about how much lies in a window
			page.Bytes = got.bytes * int64(i) / int64(len(got.updates))
			u.noteGap(ledger.Range{From: lastOffset(page.Updates, after), To: beyond - 1}, got.changes)
			return page, nil
		}
	}
	if page.To = lastOffset(got.updates, after); page.To == after {
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to, lagging("updates", to))
	}
	return page, nil
}

// lastOffset returns the offset of the last update, or another offset if there is none.
func lastOffset(updates []ledger.Update, otherwise ledger.Offset) ledger.Offset {
	if len(updates) == 0 {
		return otherwise
	}
	return updates[len(updates)-1].Offset
}

// lagging is the error of a service that has no update yet at or above an offset, where one was served before.
func lagging(operation string, to ledger.Offset) error {
	migrationID, recordTime := to.NetworkPosition()
	return &Error{Failure: jsonhttp.Unusable(operation, fmt.Errorf("the service sends no update up to migration %d, %s, "+
		"where one was known: it lags behind, as one of several behind an address may", migrationID,
		recordTime.Format(time.RFC3339Nano)))}
}

// isEmpty reports whether a range is known to have no updates. So reading over the gap between two migrations takes few
// requests.
func (u *Updates) isEmpty(after, to ledger.Offset) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gap.changes == u.Changes() && after >= u.gap.From && to <= u.gap.To
}

// noteGap remembers a gap, if it is wider than the one that is remembered.
func (u *Updates) noteGap(r ledger.Range, changes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.gap.changes == changes && u.gap.To == r.To:
		u.gap.From = min(u.gap.From, r.From)
	case u.gap.changes != changes, r.To-r.From > u.gap.To-u.gap.From, r.From > u.gap.To:
		u.gap = gap{r, changes}
	}
}

// TailUpdates waits for updates after an offset until some come, or none came for the time idle. It polls the service:
// several times a second while updates come, and about once a second while none do. It returns all that a poll brings,
// whatever the limit. The page ends with its last update, or at after if nothing came. Full reports that more may be
// available at once. A service that lags behind brings nothing.
//
// The errors are those of ReadUpdates.
func (u *Updates) TailUpdates(ctx context.Context, after ledger.Offset, _ int,
	idle time.Duration) (page ledger.Page, full bool, err error) {
	return u.polls.until(ctx, after, idle, u.news)
}

// news asks once for updates after an offset.
func (u *Updates) news(ctx context.Context, after ledger.Offset) (page ledger.Page, full bool, err error) {
	got, err := u.page(ctx, "updates-tail", after, newsPage, u.client.maxBody)
	if err != nil {
		return ledger.Page{}, false, fmt.Errorf("read updates after offset %d: %w", after, err)
	}
	return ledger.Page{From: after, To: lastOffset(got.updates, after), Updates: got.updates, Bytes: got.bytes}, got.full,
		nil
}

const (
	// Requests other than those for pages of updates are repeated this often. The waits are at most longestPause, even if
	// the service asks for more: after that the loop that reads the pages waits, and begins with its page again.
	briefTries   = 3
	longestPause = 15 * time.Second
)

// retryBriefly calls fn until it succeeds, its error is permanent, or it has failed too often.
func retryBriefly(ctx context.Context, fn func() error) error {
	for try := 0; ; try++ {
		err := fn()
		var temporary *Error
		if !errors.As(err, &temporary) || permanent(err) || try == briefTries {
			return err
		}
		if err := jsonhttp.Wait(ctx, max(time.Second<<try, min(temporary.RetryAfter, longestPause))); err != nil {
			return err
		}
	}
}

// UpdateOfScope reads an update by its id, and returns it with the answer as the service sent it.
//
// Errors: ledger.ErrNotFound where the service does not know the id; the others are those of ReadUpdates.
func (u *Updates) UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error) {
	const operation = "update"
	party, err := u.Party(ctx)
	if err != nil {
		return ledger.Update{}, nil, err
	}
	path := pathUpdates + "/" + url.PathEscape(updateID)
	q := purpose{method: http.MethodGet, path: path, record: "update " + ledger.Quoted(updateID), id: updateID}
	a, err := u.client.do(ctx, jsonhttp.Request{Operation: operation, Path: path, MaxBytes: u.client.maxBody})
	if err != nil {
		u.client.otherMayAnswer()
		return ledger.Update{}, nil, fmt.Errorf("look up update %s: %w", ledger.Quoted(updateID), u.client.explain(err, q))
	}
	update, err := ledger.DecodeNetworkUpdate(a.Body, party)
	switch {
	case err != nil:
		err = u.client.misread(operation, a, fmt.Errorf("%s: %w", operation, err))
	case update.ID != updateID:
		err = &Error{Failure: jsonhttp.Unusable(operation, fmt.Errorf("the answer is of another update, %s",
			ledger.Quoted(update.ID)))}
	default:
		_, err = u.Party(ctx)
	}
	if err != nil {
		return ledger.Update{}, nil, fmt.Errorf("look up update %s: %w", ledger.Quoted(updateID), u.client.explain(err, q))
	}
	u.note(update.Offset)
	return update, a.Body, nil
}

func (u *Updates) note(offset ledger.Offset) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.newest = max(u.newest, offset)
}
