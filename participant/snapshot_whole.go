package participant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// wholeTries is how often a snapshot is read if connections are replaced meanwhile.
const wholeTries = 3

// wholeSnapshot asks a server without continuation tokens for everything. A snapshot that does not fit one answer is
// refused (413) or silently cut at the server's own limit. It was not cut if the same connections have returned a
// longer list.
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
			return ledger.SnapshotPage{}, fmt.Errorf("check that the server serves lists of more than %d entries: %w", n, err)
		}
		if c.served.complete(began, n, n+1) {
			return page, nil
		}
		if why != nil || began == c.served.begin() {
			break
		}
		why = errors.New("connections are replaced all the time, and another server may have answered over each")
	}
	return ledger.SnapshotPage{}, snapshotMayBeCut(at, n).of(why)
}

// tooLargeForOne explains the refusal of a whole snapshot.
func tooLargeForOne(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusRequestEntityTooLarge ||
		errors.Is(e, jsonhttp.ErrTooLarge)) {
		return snapshotTooLarge.of(err)
	}
	return err
}

// listMoreThan requests a list of more than n updates, of all that the scope's parties see, and records in c.served how
// many came. If the server can't answer the request, why says the reason.
func (c *Client) listMoreThan(ctx context.Context, n int, at ledger.Offset) (why, err error) {
	const operation = "updates"
	s, err := c.server(ctx)
	if err != nil {
		return nil, err
	}
	all, err := formatsOf(ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: c.scope.Parties, Reassignments: true,
		Topology: true})
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
	a, err := c.do(ctx, jsonhttp.Request{
		Operation: operation, Path: s.TailPath, MaxBytes: c.wholeBody,
		Query: url.Values{"limit": {strconv.Itoa(n + 1)}},
		Body:  updatesRequest{BeginExclusive: pruned, EndInclusive: &end, UpdateFormat: all.Update},
	})
	var e *Error
	switch {
	case err == nil:
	case errors.As(err, &e) && (e.Status == http.StatusRequestEntityTooLarge || e.timedOut() || e.Code == codePruned ||
		errors.Is(e, jsonhttp.ErrTooLarge) || errors.Is(e, jsonhttp.ErrSlow)):
		return err, nil
	default:
		return nil, c.explainUpdates(ctx, err, s, pruned)
	}
	defer jsonhttp.Release(a.Body)
	var elements []struct{} // only their number matters
	if err := json.Unmarshal(a.Body, &elements); err != nil {
		return nil, c.misread(operation, a, err)
	}
	c.served.observe(began, len(elements))
	return nil, nil
}
