package scan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/access"
	"ledgerindexer/ledger"
)

const (
	pathVersion      = "/version"
	pathTransactions = "/v0/transactions"
)

// Record is a transaction history record, as far as it is looked at here.
type Record struct {
	EventID        string
	Date           time.Time
	Transfer       bool // it is a transfer
	BalanceChanges int  // how many the transfer tells; servers since January 2026 tell none
}

// transactionsRequest is the body of POST /v0/transactions (interface.md, endpoint 6).
type transactionsRequest struct {
	PageSize  int    `json:"page_size"`
	SortOrder string `json:"sort_order"`
}

type wireRecord struct {
	EventID  string    `json:"event_id"`
	Date     time.Time `json:"date"`
	Transfer *struct {
		BalanceChanges []jsontext.Value `json:"balance_changes"`
	} `json:"transfer"`
}

// Newest gives the last records of the history, the newest first: n of them, 1 to MaxPage, or fewer where there are
// not as many. It returns ledger.ErrNotOffered where the server has no such history (interface.md, endpoint 6). Other
// errors are *Error.
func (c *Client) Newest(ctx context.Context, n int) ([]Record, error) {
	if n < 1 || n > MaxPage {
		return nil, fmt.Errorf("a page of the transaction history has 1 to %d records, not %d", MaxPage, n)
	}
	r := request{operation: "transactions", path: pathTransactions, body: transactionsRequest{PageSize: n, SortOrder: "desc"}}
	body, err := c.do(ctx, r)
	if err != nil {
		return nil, offered(err)
	}
	var told struct {
		Transactions *[]wireRecord `json:"transactions"`
	}
	if err := c.decode(r, body, &told); err != nil {
		return nil, err
	}
	if told.Transactions == nil {
		return nil, &Error{Operation: r.operation, Status: http.StatusOK, Body: access.Excerpt(c.access.Redact(string(body))), Err: errors.New("the answer holds no transactions")}
	}
	records := make([]Record, 0, len(*told.Transactions))
	for _, w := range *told.Transactions {
		record := Record{EventID: w.EventID, Date: w.Date, Transfer: w.Transfer != nil}
		if w.Transfer != nil {
			record.BalanceChanges = len(w.Transfer.BalanceChanges)
		}
		records = append(records, record)
	}
	return records, nil
}

// Version is the release of the service. It returns ledger.ErrNotOffered where the server does not tell. Other errors
// are *Error.
func (c *Client) Version(ctx context.Context) (string, error) {
	r := request{operation: "version", path: pathVersion}
	body, err := c.do(ctx, r)
	if err != nil {
		return "", offered(err)
	}
	var told struct {
		Version string `json:"version"`
	}
	if err := c.decode(r, body, &told); err != nil {
		return "", err
	}
	if told.Version == "" {
		return "", &Error{Operation: r.operation, Status: http.StatusOK, Body: access.Excerpt(c.access.Redact(string(body))), Err: errors.New("the answer holds no version")}
	}
	return told.Version, nil
}

// offered makes ErrNotOffered of an error which says that the server does not have the path.
func offered(err error) error {
	var e *Error
	if errors.As(err, &e) && e.pathMissing() {
		return fmt.Errorf("%w (%w)", ledger.ErrNotOffered, err)
	}
	return err
}
