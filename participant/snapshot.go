package participant

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// snapshotRequest is the body of a list of the active contracts.
type snapshotRequest struct {
	ActiveAtOffset ledger.Offset  `json:"activeAtOffset"`
	EventFormat    jsontext.Value `json:"eventFormat"`
	// StreamContinuationToken is the token of an earlier entry: the list begins after it. Empty: from the beginning. It is
	// valid only with the same offset, format, participant and server version, 3.5 or later.
	StreamContinuationToken string `json:"streamContinuationToken,omitzero"`
}

// snapshotPageRequest is the body of /v2/state/active-contracts-page, by POST or by GET.
type snapshotPageRequest struct {
	ActiveAt    ledger.Offset  `json:"activeAtOffset"`
	EventFormat jsontext.Value `json:"eventFormat"`
	MaxPageSize int            `json:"maxPageSize"`
	Token       string         `json:"pageToken,omitzero"`
}

// SnapshotOffset returns the highest offset up to another one at which there is a snapshot: a participant that has any
// has one at every offset. The error is a *ledger.Problem, which wraps ledger.ErrNotOffered, where it has none.
func (c *Client) SnapshotOffset(ctx context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	s, err := c.server(ctx)
	if err == nil && s.SnapshotPath == "" {
		err = c.noSnapshots()
	}
	return upTo, err
}

func (c *Client) noSnapshots() error {
	return &ledger.Problem{
		What: fmt.Sprintf("the participant at %s has no snapshots", c.http.URL()),
		Do: "check --ledger-url and the rights of the token's user; or do without a snapshot: " +
			"`indexer run --start genesis` where the participant is not pruned",
		Err: ledger.ErrNotOffered,
	}
}

// ReadSnapshot reads one page of the snapshot at an offset (interface.md, endpoint 1), after token; the zero token
// starts at the beginning. A token is used with the path that it came from, even if the server now has a better one.
//
// A server without tokens (3.4) is asked for everything at once. If it has not yet returned a longer list, a longer
// list of updates is requested too (see wholeSnapshot). At offset 0 the snapshot is empty, and no request is sent.
// Another participant is detected as in ReadUpdates.
//
// Errors: a *ledger.Problem, which wraps ledger.ErrNotOffered, where the server has no snapshots; a *ledger.Problem too
// where the offset is pruned, above the ledger end or has reassignments in flight, the token is refused, the snapshot
// does not fit one answer of a server without tokens, or may have been cut to fit one, or a right or a name is missing;
// a *ledger.DecodeError where the answer can't be understood; an *Error, which may be tried again, for the rest.
func (c *Client) ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	if at < 0 {
		return ledger.SnapshotPage{}, fmt.Errorf("read the snapshot at offset %d: an offset is not negative", at)
	}
	if at == 0 {
		return ledger.SnapshotPage{Last: true}, nil
	}
	s, err := c.server(ctx)
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	path := s.SnapshotPath
	if token.Value != "" && (path != getSnapshotPage || token.Kind != ledger.TokenPage) {
		path = snapshotPath(token.Kind)
	}
	if path == "" {
		return ledger.SnapshotPage{}, c.noSnapshots()
	}
	q := purpose{about: aboutSnapshot, need: c.scopeRight(), offset: at, token: token}
	if path == s.SnapshotPath {
		q.server = s
	}
	page, err := c.readSnapshot(ctx, path, at, token)
	switch {
	case err == nil:
		err = c.checkIdentity(ctx)
	case path == getSnapshotPage && bodyDropped(err):
		err = c.pathGone(s, &unreachedError{err})
	default:
		err = c.explain(ctx, err, q)
	}
	if err != nil {
		return ledger.SnapshotPage{}, fmt.Errorf("read the snapshot at offset %d: %w", at, err)
	}
	return page, nil
}

func (c *Client) readSnapshot(ctx context.Context, path string, at ledger.Offset,
	token ledger.Token) (ledger.SnapshotPage, error) {
	read, sizes := c.readSnapshotList, c.snapshotList
	if path != pathSnapshot {
		sizes = c.snapshotPage
		read = func(ctx context.Context, at ledger.Offset, token string, size int) (ledger.SnapshotPage, error) {
			return c.readSnapshotPage(ctx, path, at, token, size)
		}
	}
	for {
		asked := sizes.Ask()
		page, err := read(ctx, at, token.Value, asked)
		if err == nil {
			sizes.Worked()
			return page, nil
		}
		if !shrinkAfter(sizes, asked, err) {
			return ledger.SnapshotPage{}, err
		}
		c.log.DebugContext(ctx, "reducing snapshot page size", "asked", asked, "now", sizes.Ask(), "error", err)
	}
}

func (c *Client) readSnapshotPage(
	ctx context.Context, path string, at ledger.Offset, token string, size int,
) (ledger.SnapshotPage, error) {
	const operation = "snapshot-page"
	a, err := c.do(ctx, snapshotPage(operation, path,
		snapshotPageRequest{ActiveAt: at, EventFormat: c.format.Event, MaxPageSize: size, Token: token}))
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	defer jsonhttp.Release(a.Body)
	got, err := ledger.DecodeContractPage(a.Body)
	if err != nil {
		return ledger.SnapshotPage{}, c.decodeError(operation, a, err)
	}
	switch {
	case got.ActiveAt != at:
		return ledger.SnapshotPage{}, contradiction(operation, "the page is of the snapshot at offset %d", got.ActiveAt)
	case got.Next != "" && got.Next == token:
		return ledger.SnapshotPage{}, contradiction(operation, "the page leads back to itself")
	}
	if err := c.empties.Came(len(got.Entries), got.Next == ""); err != nil {
		return ledger.SnapshotPage{}, err
	}
	page := ledger.SnapshotPage{Entries: got.Entries, Last: got.Next == "", Bytes: int64(len(a.Body))}
	if !page.Last {
		page.Next = ledger.Token{Kind: ledger.TokenPage, Value: got.Next}
	}
	return page, nil
}

// readSnapshotList reads a list with a limit after token. Only an empty answer is the end.
func (c *Client) readSnapshotList(ctx context.Context, at ledger.Offset, token string,
	limit int) (ledger.SnapshotPage, error) {
	page, err := c.snapshotEntries(ctx, at, token, url.Values{"limit": {strconv.Itoa(limit)}}, c.maxBody)
	if err != nil || len(page.Entries) == 0 {
		page.Last = true
		return page, err
	}
	next := page.Entries[len(page.Entries)-1].Token
	switch {
	case next == "" && token != "":
		return ledger.SnapshotPage{}, &ledger.Problem{
			What: "the server gave continuation tokens before and gives none any more",
			Do:   "begin the snapshot again with --restart",
		}
	case next == "":
		return c.wholeSnapshot(ctx, at)
	case next == token:
		return ledger.SnapshotPage{}, contradiction("snapshot", "the list leads back to itself")
	}
	page.Next = ledger.Token{Kind: ledger.TokenList, Value: next}
	return page, nil
}

func (c *Client) snapshotEntries(
	ctx context.Context, at ledger.Offset, token string, query url.Values, maxBytes int64,
) (ledger.SnapshotPage, error) {
	const operation = "snapshot"
	a, err := c.do(ctx, jsonhttp.Request{
		Operation: operation, Path: pathSnapshot, Query: query, MaxBytes: maxBytes,
		Body: snapshotRequest{ActiveAtOffset: at, EventFormat: c.format.Event, StreamContinuationToken: token},
	})
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	defer jsonhttp.Release(a.Body)
	entries, err := ledger.DecodeContractEntries(a.Body)
	if err != nil {
		return ledger.SnapshotPage{}, c.decodeError(operation, a, err)
	}
	return ledger.SnapshotPage{Entries: entries, Bytes: int64(len(a.Body))}, nil
}

func snapshotPath(kind ledger.TokenKind) string {
	if kind == ledger.TokenPage {
		return pathSnapshotPage
	}
	return pathSnapshot
}
