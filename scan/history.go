package scan

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

const pathTransactions = "/v0/transactions"

// transactionsRequest is the body of POST /v0/transactions (interface.md, endpoint 6).
type transactionsRequest struct {
	PageSize       int    `json:"page_size"`
	PageEndEventID string `json:"page_end_event_id,omitzero"` // skipped, and what follows it is served; empty: none
	SortOrder      string `json:"sort_order"`
}

// TransactionsAfter reads on after an event id, in the service's own order (interface.md, endpoint 6): one page of at most
// MaxPage records, of fewer where the server or the size of its answers wants it. The empty id reads from the beginning.
// How many records come says nothing about whether more follow, and no records say as little: the service answers so too
// where it does not know the id.
//
// Errors: ledger.ErrCursorRefused where the service fails for this id; ledger.ErrNotOffered where it has no such history; a
// *ledger.DecodeError where a record can't be understood; a *ledger.Problem where the request is refused, or one record is
// larger than what can be read; an *Error, which may be tried again, for the rest.
func (c *Client) TransactionsAfter(ctx context.Context, eventID string) ([]ledger.Transaction, error) {
	from, record := "from the beginning", "the first record of the transaction history"
	if eventID != "" {
		from, record = fmt.Sprintf("after event id %q", eventID), fmt.Sprintf("the record of the transaction history after event id %q", eventID)
	}
	records, err := c.transactions(ctx, "transactions", transactionsRequest{PageSize: MaxPage, PageEndEventID: eventID, SortOrder: "asc"}, c.page, record)
	if err != nil {
		return nil, fmt.Errorf("read transactions %s: %w", from, err)
	}
	return records, nil
}

// NewestTransactions gives the last records of the history, the newest first: n of them, 1 to MaxPage, or fewer where there
// are not as many, or where the server does not serve as many at once.
//
// Errors: those of TransactionsAfter, but for ledger.ErrCursorRefused.
func (c *Client) NewestTransactions(ctx context.Context, n int) ([]ledger.Transaction, error) {
	if n < 1 || n > MaxPage {
		return nil, fmt.Errorf("a page of the transaction history has 1 to %d records, not %d", MaxPage, n)
	}
	records, err := c.transactions(ctx, "transactions-newest", transactionsRequest{PageSize: n, SortOrder: "desc"}, c.newest,
		"the newest record of the transaction history")
	if err != nil {
		return nil, fmt.Errorf("read the newest transactions: %w", err)
	}
	return records[:min(n, len(records))], nil
}

// transactions asks for a page, and for smaller ones where that helps, down to one record, which is called as record says.
func (c *Client) transactions(ctx context.Context, operation string, r transactionsRequest, size *jsonhttp.Size, record string) ([]ledger.Transaction, error) {
	for most := r.PageSize; ; {
		r.PageSize = min(most, size.Ask())
		records, err := c.read(ctx, operation, r)
		switch {
		case err == nil:
			size.Worked()
			c.WasThere()
			return records, nil
		case failed(size, r.PageSize, err):
			c.log.DebugContext(ctx, "smaller pages of the transaction history", "asked", r.PageSize, "now", size.Ask(), "error", err)
		default:
			return nil, c.explain(err, asked{method: http.MethodPost, path: pathTransactions, cursor: r.PageEndEventID, record: record})
		}
	}
}

func (c *Client) read(ctx context.Context, operation string, r transactionsRequest) ([]ledger.Transaction, error) {
	a, err := c.do(ctx, request{operation: operation, path: pathTransactions, body: r, most: c.maxBody})
	if err != nil {
		return nil, err
	}
	defer jsonhttp.Release(a.Body)
	records, err := ledger.DecodeTransactions(a.Body)
	if err != nil {
		return nil, c.misread(operation, a, fmt.Errorf("%s: %w", operation, err))
	}
	return records, nil
}

// failed looks at why a request for asked records failed and halves the size where that helps. It says whether to ask
// again at once; where not, the error is the caller's.
func failed(size *jsonhttp.Size, asked int, err error) (again bool) {
	var e *Error
	if asked <= 1 || !errors.As(err, &e) {
		return false
	}
	switch {
	case e.Status == http.StatusRequestEntityTooLarge, e.aboutPageSize():
		size.Halve(asked, true)
		return true
	case errors.Is(e, jsonhttp.ErrTooLarge):
		size.Halve(asked, false)
		return true
	case e.strained():
		// A smaller page, but when the caller's patience says so.
		size.Halve(asked, false)
	}
	return false
}
