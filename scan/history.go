package scan

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// pathTransactions is the path of the transaction history.
const pathTransactions = "/v0/transactions"

// transactionsRequest is the body of POST /v0/transactions (interface.md, endpoint 6).
type transactionsRequest struct {
	PageSize       int    `json:"page_size"`
	PageEndEventID string `json:"page_end_event_id,omitzero"` // the page begins after it; empty: at the beginning
	SortOrder      string `json:"sort_order"`
}

// TransactionsAfter reads the page of records after the one with an event id, in the service's own order (interface.md,
// endpoint 6). It has at most MaxPage records, or fewer if the server or the size of its answers requires it. The empty
// id reads from the beginning. The number of records does not say whether more follow, even if it is 0: the service
// also returns an empty page for an id that it does not know.
//
// Errors: ledger.ErrCursorRefused where the service fails for this id; ledger.ErrNotOffered where it has no such
// history; a *ledger.DecodeError where a record can't be understood; a *ledger.Problem where the request is refused, or
// one record is larger than what can be read; an *Error, which may be tried again, for the rest.
func (c *Client) TransactionsAfter(ctx context.Context, eventID string) ([]ledger.Record, error) {
	from, record := "from the beginning", "the first record of the transaction history"
	if eventID != "" {
		from = "after event id " + ledger.Quoted(eventID)
		record = "the record of the transaction history " + from
	}
	r := transactionsRequest{PageSize: MaxPage, PageEndEventID: eventID, SortOrder: "asc"}
	records, err := c.transactions(ctx, "transactions", r, c.page, record)
	if err != nil {
		return nil, fmt.Errorf("read transactions %s: %w", from, err)
	}
	return records, nil
}

// NewestTransactions returns the last n records of the history, 1 to MaxPage, the newest first. There may be fewer, if
// the history is shorter or the server returns smaller pages.
//
// Errors: those of TransactionsAfter, except for ledger.ErrCursorRefused.
func (c *Client) NewestTransactions(ctx context.Context, n int) ([]ledger.Record, error) {
	if n < 1 || n > MaxPage {
		return nil, fmt.Errorf("a page of the transaction history has 1 to %d records, not %d", MaxPage, n)
	}
	records, err := c.transactions(ctx, "transactions-newest", transactionsRequest{PageSize: n, SortOrder: "desc"},
		c.newest,
		"the newest record of the transaction history")
	if err != nil {
		return nil, fmt.Errorf("read the newest transactions: %w", err)
	}
	return records[:min(n, len(records))], nil
}

// transactions requests a page, and smaller ones if that helps, down to one record. record names that one in errors.
func (c *Client) transactions(
	ctx context.Context, operation string, r transactionsRequest, size *jsonhttp.Size, record string,
) ([]ledger.Record, error) {
	for most := r.PageSize; ; {
		r.PageSize = min(most, size.Ask())
		records, err := c.read(ctx, operation, r)
		switch {
		case err == nil:
			size.Worked()
			c.HistorySeen()
			return records, nil
		case shrinkAfter(size, r.PageSize, err):
			c.log.DebugContext(ctx, "reducing transactions page size", "asked", r.PageSize, "now", size.Ask(), "error", err)
		default:
			return nil, c.explain(err, purpose{method: http.MethodPost, path: pathTransactions, cursor: r.PageEndEventID,
				record: record})
		}
	}
}

func (c *Client) read(ctx context.Context, operation string, r transactionsRequest) ([]ledger.Record, error) {
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathTransactions, Body: r, MaxBytes: c.maxBody})
	if err != nil {
		return nil, err
	}
	defer jsonhttp.Release(a.Body)
	records, err := ledger.DecodeTransactions(a.Body)
	c.http.Decoded(ctx, a)
	if err != nil {
		return nil, c.misread(operation, a, fmt.Errorf("%s: %w", operation, err))
	}
	return records, nil
}

func shrinkAfter(size *jsonhttp.Size, asked int, err error) (again bool) {
	e, ok := errors.AsType[*Error](err)
	return ok && size.ShrinkAfter(e, asked, e.Status == http.StatusRequestEntityTooLarge || e.aboutPageSize(),
		e.strained())
}
