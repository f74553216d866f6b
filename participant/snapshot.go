package participant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ledger"
)

// snapshotRequest is the body of /v2/state/active-contracts (interface.md, endpoint 1).
type snapshotRequest struct {
	ActiveAt    ledger.Offset  `json:"activeAtOffset"`
	EventFormat jsontext.Value `json:"eventFormat"`
	Token       string         `json:"streamContinuationToken,omitzero"`
}

// snapshotPageRequest is the body of /v2/state/active-contracts-page.
type snapshotPageRequest struct {
	ActiveAt    ledger.Offset  `json:"activeAtOffset"`
	EventFormat jsontext.Value `json:"eventFormat"`
	MaxPageSize int            `json:"maxPageSize"`
	Token       string         `json:"pageToken,omitzero"`
}

// ReadSnapshot reads one piece of the snapshot at an offset, after token; the zero token starts at the beginning.
// A token is read with the endpoint it is of, even where the server has a better one by now.
//
// A server that gives no tokens (3.4) is asked for everything at once. At offset 0 the snapshot is empty, and the
// server is not asked. Another participant is noticed as in ReadUpdates.
//
// Errors: a *ledger.Problem, which wraps ledger.ErrNotOffered, where the server has no snapshots.
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
	switch token.Kind {
	case ledger.TokenList:
		path = pathSnapshot
	case ledger.TokenPage:
		path = pathSnapshotPage
	}
	if path == "" {
		return ledger.SnapshotPage{}, &ledger.Problem{
			What: fmt.Sprintf("the participant at %s has no snapshots", c.base),
			Do: "check --ledger-url and the rights of the token's user; or do without a snapshot: " +
				"`indexer run --start genesis` where the participant is not pruned",
			Err: ledger.ErrNotOffered,
		}
	}
	page, err := c.readSnapshot(ctx, path, at, token)
	switch {
	case err == nil:
		if err = c.same(ctx); err == nil {
			return page, nil
		}
	case missing(err) && path == s.SnapshotPath:
		err = c.lost(s, err)
	case missing(err):
		err = &ledger.Problem{
			What: fmt.Sprintf("the snapshot was begun with %s, which the server does not have", path),
			Do:   "begin the snapshot again with --restart",
			Err:  err,
		}
	default:
		err = c.snapshotError(err, at, token)
	}
	return ledger.SnapshotPage{}, fmt.Errorf("read the snapshot at offset %d: %w", at, err)
}

func (c *Client) readSnapshot(ctx context.Context, path string, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	read, sizes := c.readSnapshotList, &c.snapshotList
	if path == pathSnapshotPage {
		read, sizes = c.readSnapshotPage, &c.snapshotPage
	}
	for {
		asked := sizes.ask()
		page, err := read(ctx, at, token.Value, asked)
		if err == nil {
			sizes.worked()
			return page, nil
		}
		if !sizes.failed(asked, err) {
			return ledger.SnapshotPage{}, err
		}
		c.log.DebugContext(ctx, "smaller reads of the snapshot", "asked", asked, "now", sizes.ask(), "error", err)
	}
}

func (c *Client) readSnapshotPage(ctx context.Context, at ledger.Offset, token string, size int) (ledger.SnapshotPage, error) {
	const operation = "snapshot-page"
	body, err := c.do(ctx, request{
		operation: operation, path: pathSnapshotPage,
		body: snapshotPageRequest{ActiveAt: at, EventFormat: c.format.event, MaxPageSize: size, Token: token},
	})
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	got, err := ledger.DecodeContractPage(body)
	if err != nil {
		return ledger.SnapshotPage{}, decoded(operation, body, err)
	}
	switch {
	case got.ActiveAt != at:
		return ledger.SnapshotPage{}, misled(operation, "the page is of the snapshot at offset %d", got.ActiveAt)
	case got.Next != "" && got.Next == token:
		return ledger.SnapshotPage{}, misled(operation, "the page leads back to itself")
	}
	page := ledger.SnapshotPage{Entries: got.Entries, Last: got.Next == "", Bytes: int64(len(body))}
	if !page.Last {
		page.Next = ledger.Token{Kind: ledger.TokenPage, Value: got.Next}
	}
	return page, nil
}

// readSnapshotList reads with a limit from token. However many entries came, more may follow: only an empty
// answer is the end.
func (c *Client) readSnapshotList(ctx context.Context, at ledger.Offset, token string, limit int) (ledger.SnapshotPage, error) {
	page, err := c.snapshotEntries(ctx, at, token, url.Values{"limit": {strconv.Itoa(limit)}})
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
		return ledger.SnapshotPage{}, misled("snapshot", "the list leads back to itself")
	}
	page.Next = ledger.Token{Kind: ledger.TokenList, Value: next}
	return page, nil
}

// wholeSnapshot asks a server without continuation tokens for everything: it refuses (413) what it can't serve in
// one answer.
func (c *Client) wholeSnapshot(ctx context.Context, at ledger.Offset) (ledger.SnapshotPage, error) {
	page, err := c.snapshotEntries(ctx, at, "", nil)
	page.Last = true
	var e *Error
	if errors.As(err, &e) && (e.Status == http.StatusRequestEntityTooLarge || errors.Is(e, errTooLarge)) {
		return ledger.SnapshotPage{}, &ledger.Problem{
			What: "the snapshot has more entries than the server serves in one answer, and the server has no continuation tokens",
			Do: "raise http-list-max-elements-limit on the participant, or narrow what is read with --templates (it becomes the " +
				"scope of the database), or do without a snapshot: `indexer run --start genesis` where the participant is not pruned",
			Err: err,
		}
	}
	return page, err
}

func (c *Client) snapshotEntries(ctx context.Context, at ledger.Offset, token string, query url.Values) (ledger.SnapshotPage, error) {
	const operation = "snapshot"
	body, err := c.do(ctx, request{
		operation: operation, path: pathSnapshot, query: query,
		body: snapshotRequest{ActiveAt: at, EventFormat: c.format.event, Token: token},
	})
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	entries, err := ledger.DecodeContractEntries(body)
	if err != nil {
		return ledger.SnapshotPage{}, decoded(operation, body, err)
	}
	return ledger.SnapshotPage{Entries: entries, Bytes: int64(len(body))}, nil
}

// snapshotError says what a failed read of a snapshot means.
func (c *Client) snapshotError(err error, at ledger.Offset, token ledger.Token) error {
	var e *Error
	var p *ledger.Problem
	if !errors.As(err, &e) || errors.As(err, &p) {
		return err
	}
	switch {
	case e.Code == codePruned:
		return snapshotPruned(e, at, token)
	case e.Code == codeAfterLedgerEnd:
		return &ledger.Problem{
			What: fmt.Sprintf("offset %d is above the ledger end", at),
			Do:   "choose an --at-offset at or below the ledger end; if it was below before, --ledger-url may be another participant",
			Err:  err,
		}
	case token.Value != "" && e.tokenRefused():
		return &ledger.Problem{
			What: "the server refuses the token from which the snapshot was to be continued",
			Do: "a token is only good with the same participant, server version, scope (--parties, --templates, --interfaces, --blobs) " +
				"and --at-offset, and while the participant is not pruned above it: restore these, or begin again with --restart",
			Err: err,
		}
	case errors.Is(e, errTooLarge):
		return &ledger.Problem{
			What: fmt.Sprintf("one entry of the snapshot is larger than the %d bytes that are read of an answer", c.maxBody),
			Do:   "narrow what is read with --templates or --parties, or leave out --blobs",
			Err:  err,
		}
	case e.Status == http.StatusRequestEntityTooLarge:
		return tooLarge(err)
	}
	return c.explain(err)
}

// snapshotPruned tells the two causes of one error code apart (interface.md, endpoint 1, rule 1).
func snapshotPruned(e *Error, at ledger.Offset, token ledger.Token) error {
	const (
		another = "choose the ledger end or another offset with --at-offset, or wait until the reassignments are completed and try again"
		higher  = "choose the ledger end or an --at-offset at or above the offset up to which it is pruned"
	)
	again := ""
	if token.Value != "" {
		again = "; begin again with --restart"
	}
	earliest, known := e.earliest()
	switch {
	case known && earliest > at:
		return &ledger.Problem{
			What: fmt.Sprintf("the participant is pruned up to offset %d, above the snapshot's offset %d", earliest, at),
			Do:   higher + again,
			Err:  e,
		}
	case known:
		return &ledger.Problem{
			What: fmt.Sprintf("reassignments are in flight at offset %d, and the participant has pruned what is needed to show them", at),
			Do:   another + again,
			Err:  e,
		}
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the participant can't serve the snapshot at offset %d: either it is pruned above that, or reassignments are in flight at it", at),
		Do:   higher + "; or, where reassignments are in flight, wait until they are completed" + again,
		Err:  e,
	}
}

// tokenRefused says whether a request with a continuation token was refused because of it.
func (e *Error) tokenRefused() bool {
	if e.Status != http.StatusBadRequest {
		return false
	}
	switch e.Code {
	case "INVALID_CONTINUATION_TOKEN", "INVALID_ACS_PAGE_TOKEN":
		return true
	case "INVALID_FIELD", "INVALID_ARGUMENT":
		return strings.Contains(strings.ToLower(e.Cause), "token")
	case "":
		// A token that is not Base64 makes the whole body undecodable. The rest of it was good for the first page.
		return strings.HasPrefix(e.Body, "Invalid value")
	}
	return false
}
