package participant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

// wholeTries is how often a snapshot is read again because connections were made anew meanwhile.
const wholeTries = 3

// wholeSnapshot asks a server without continuation tokens for everything. What the server can't serve in one answer it
// refuses (413), or cuts at its own limit without a word: then no list is longer. So it is whole where a longer one is
// known to be served over the same connections.
func (c *Client) wholeSnapshot(ctx context.Context, at ledger.Offset) (ledger.SnapshotPage, error) {
	var n int
	var why error
	for range wholeTries {
		began := c.served.begin()
		page, err := c.snapshotEntries(ctx, at, "", nil, c.wholeBody)
		if err != nil {
			return ledger.SnapshotPage{}, tooLargeForOne(err)
		}
		page.Last = true
		n = len(page.Entries)
		if c.served.complete(began, n, n+1) {
			return page, nil
		}
		if why, err = c.listMoreThan(ctx, n, at); err != nil {
			return ledger.SnapshotPage{}, fmt.Errorf("see whether the server serves more than the %d entries that came: %w", n, err)
		}
		if c.served.complete(began, n, n+1) {
			return page, nil
		}
		if why != nil || began == c.served.begin() {
			break
		}
		why = errors.New("connections are made anew all the time, and another server may have answered over each")
	}
	return ledger.SnapshotPage{}, snapshotMayBeCut(at, n).of(why)
}

// tooLargeForOne tells what it means that a whole snapshot was refused.
func tooLargeForOne(err error) error {
	var e *Error
	if errors.As(err, &e) && (e.Status == http.StatusRequestEntityTooLarge || errors.Is(e, jsonhttp.ErrTooLarge)) {
		return snapshotTooLarge.of(err)
	}
	return err
}

// listMoreThan asks for a list of more than n updates, of all that the scope's parties see, and notes how many came. Where the
// request can't be answered as it is, why says so.
func (c *Client) listMoreThan(ctx context.Context, n int, at ledger.Offset) (why, err error) {
	const operation = "updates"
	s, err := c.server(ctx)
	if err != nil {
		return nil, err
	}
	all, err := newFormats(ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: c.scope.Parties, Reassignments: true, Topology: true})
	if err != nil {
		return nil, err
	}
	end, err := c.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		end, err = at, nil
	}
	if err != nil {
		return nil, err
	}
	pruned, err := c.PrunedOffset(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) || pruned >= end {
		return nil, err
	}
	began := c.served.begin()
	a, err := c.do(ctx, request{
		operation: operation, path: s.TailPath, limit: c.wholeBody,
		query: url.Values{"limit": {strconv.Itoa(n + 1)}},
		body:  UpdatesRequest{BeginExclusive: pruned, EndInclusive: &end, UpdateFormat: all.update},
	})
	var e *Error
	switch {
	case err == nil:
	case errors.As(err, &e) && (e.Status == http.StatusRequestEntityTooLarge || e.timedOut() || e.Code == codePruned ||
		errors.Is(e, jsonhttp.ErrTooLarge) || errors.Is(e, jsonhttp.ErrSlow)):
		return err, nil
	default:
		return nil, c.explain(ctx, err, c.ofUpdates(s, pruned))
	}
	defer jsonhttp.Release(a.Body)
	var elements []struct{} // all that counts is how many there are
	if err := json.Unmarshal(a.Body, &elements); err != nil {
		return nil, c.misread(operation, a, err)
	}
	c.served.saw(began, len(elements))
	return nil, nil
}
