package scan

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Served says which histories a service has.
type Served struct {
	Updates, Transactions bool
	Scan                  bool // it has one of them, or returns its release or its network
}

// Served asks the service for the first update of its network, and, if it has no such operation, for the newest record
// of the transaction history. An operation is missing only if the service says so (404, 405 or 501), or refuses it in
// the words of another kind of service, as a participant does at the same address. A service that is overloaded, limits
// requests, backfills or does not answer in time gives an error: ask it again. The service may have been started
// between two answers, so a Scan without updates is asked once more.
//
// Errors: those of [Updates.ReadUpdates] and [Client.NewestTransactions], except for ledger.ErrNotOffered.
func (c *Client) Served(ctx context.Context) (served Served, err error) {
	if served, err = c.histories(ctx); err != nil || served.Updates {
		return served, err
	}
	if !served.Scan {
		service, err := c.Describe(ctx)
		if err != nil || service.Release == "" && service.NetworkID == "" {
			return served, err
		}
	}
	served, err = c.histories(ctx)
	served.Scan = true
	return served, err
}

// histories asks for updates and, if there are none, for the transaction history.
func (c *Client) histories(ctx context.Context) (served Served, err error) {
	if served.Updates, err = offered(c.hasUpdates(ctx)); err == nil && !served.Updates {
		_, err = c.NewestTransactions(ctx, 1)
		served.Transactions, err = offered(err)
	}
	served.Scan = served.Updates || served.Transactions
	return served, err
}

// ServedByAny asks services one after the other, until one has updates. Only the first is asked for a transaction
// history. A service that fails may have updates, so its error is returned if no other has any.
func ServedByAny(ctx context.Context, services []*Client) (served Served, err error) {
	for i, c := range services {
		now, failed := c.Served(ctx)
		if now.Updates {
			return now, nil
		}
		if i == 0 {
			served = now
		}
		if err == nil {
			err = failed
		}
	}
	return served, err
}

// hasUpdates asks for one update of the network, whatever it is.
func (c *Client) hasUpdates(ctx context.Context) error {
	const operation = "updates-probe"
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathUpdates, Body: updatesRequest{PageSize: 1},
		MaxBytes: c.maxBody})
	if err == nil {
		defer jsonhttp.Release(a.Body)
		var page struct {
			Updates []jsontext.Value `json:"transactions"`
		}
		if unread := json.Unmarshal(a.Body, &page); unread != nil || page.Updates == nil {
			err = c.misread(operation, a,
				&Error{Failure: jsonhttp.Unusable(operation, errors.New("the answer is no page of updates"))})
		}
	}
	if err != nil {
		err = c.explain(err, purpose{method: http.MethodPost, path: pathUpdates, record: "the first update of the network",
			probe: true})
		return fmt.Errorf("ask for an update of the network: %w", err)
	}
	return nil
}

// offered turns the error of a request into whether the service has the operation.
func offered(err error) (bool, error) {
	if errors.Is(err, ledger.ErrNotOffered) {
		return false, nil
	}
	return err == nil, err
}
