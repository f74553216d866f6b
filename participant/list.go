package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ledgerindexer/ledger"
)

// pathUpdatesTrees is where servers up to 3.5 have the update-tree variant.
const pathUpdatesTrees = "/v2/updates/trees"

// ListOptions bound the answer to a list call (interface.md, "Limits").
type ListOptions struct {
	// Limit is the most elements that are wanted. The server cuts the list there without saying so; where the limit is
	// above the server's own (200 unless it is configured otherwise), or 0, which is not sent, the server refuses a list
	// that is longer than its own limit (413), or cuts it there.
	Limit int64
	// StreamIdleTimeout is after how long without a new element the answer is sent, in whole milliseconds, rounded up;
	// 0 is not sent. It may cut a bounded read too, without saying so.
	StreamIdleTimeout time.Duration
}

func (o ListOptions) check() error {
	must := rules{section: sectionLimits}
	must.must(o.Limit >= 0, "limit", "must not be negative, and is %d", o.Limit)
	must.must(o.StreamIdleTimeout >= 0, "stream_idle_timeout_ms", "must not be negative, and is %v", o.StreamIdleTimeout)
	return must.err
}

func (o ListOptions) query() url.Values {
	query := url.Values{}
	if o.Limit > 0 {
		query.Set("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.StreamIdleTimeout > 0 {
		ms := o.StreamIdleTimeout.Milliseconds()
		if o.StreamIdleTimeout%time.Millisecond > 0 {
			ms++
		}
		query.Set("stream_idle_timeout_ms", strconv.FormatInt(ms, 10))
	}
	return query
}

// Updates does one list call of updates (interface.md, endpoint 2), descending where that is asked for: then
// UpdateList.Last is the lowest offset. A list that is cut looks like one that is complete, see ListOptions;
// ReadUpdates says how far an answer reaches. Of the update-tree variant, reassignments and checkpoints are decoded; a
// transaction is kept as it came, as an update of the unknown kind TransactionTree with its offset, id, synchronizer and
// record time.
//
// An end of 0 is legal by interface.md, and servers refuse it: there is nothing up to the beginning, so the list is
// empty and the server is not asked.
//
// Errors: a *RequestError where a rule is broken, or where the list is longer than the server allows;
// ledger.ErrNotOffered where the server has no trees, or no descending order; a *ledger.Problem where the updates are
// pruned, an offset is above the ledger end, or a right is missing; a *ledger.DecodeError where the answer can't be
// understood; an *Error, which may be tried again, for the rest.
func (c *Client) Updates(ctx context.Context, req UpdatesRequest, opts ListOptions) (ledger.UpdateList, error) {
	if err := cmp.Or(req.check(), opts.check()); err != nil {
		return ledger.UpdateList{}, err
	}
	if req.EndInclusive != nil && *req.EndInclusive == 0 {
		return ledger.UpdateList{}, nil
	}
	list, err := c.listUpdates(ctx, req, opts)
	if err == nil {
		err = c.same(ctx)
	}
	if err != nil {
		return ledger.UpdateList{}, fmt.Errorf("list updates after offset %d: %w", req.BeginExclusive, err)
	}
	return list, nil
}

func (c *Client) listUpdates(ctx context.Context, req UpdatesRequest, opts ListOptions) (ledger.UpdateList, error) {
	const operation = "updates-list"
	s, err := c.server(ctx)
	if err != nil {
		return ledger.UpdateList{}, err
	}
	if req.DescendingOrder && s.before35() {
		return ledger.UpdateList{}, fmt.Errorf("%w: version %s knows no descending order", ledger.ErrNotOffered, s.Version)
	}
	path := s.TailPath
	if req.Trees {
		path = pathUpdatesTrees
	}
	body, err := c.do(ctx, request{operation: operation, path: path, query: opts.query(), body: req})
	if err != nil {
		q := asked{need: req.needs()}
		if !req.Trees {
			q.server = s
		}
		return ledger.UpdateList{}, c.tooLong(ctx, err, q)
	}
	return decodeUpdates(operation, body, req)
}

// decodeUpdates decodes a list and checks that it lies within what was asked for.
func decodeUpdates(operation string, body []byte, req UpdatesRequest) (ledger.UpdateList, error) {
	if req.DescendingOrder {
		list, err := ledger.DecodeUpdateListDescending(body, *req.EndInclusive)
		switch {
		case err != nil:
			return list, decoded(operation, body, err)
		case list.Elements > 0 && list.Last <= req.BeginExclusive:
			return list, misled(operation, "offset %d came, at or below where the list was to begin", list.Last)
		}
		return list, nil
	}
	list, err := ledger.DecodeUpdateList(body, req.BeginExclusive)
	switch {
	case err != nil:
		return list, decoded(operation, body, err)
	case req.EndInclusive != nil && list.Last > *req.EndInclusive:
		return list, misled(operation, "offset %d came, above what was asked for", list.Last)
	}
	return list, nil
}

// ActiveContracts does one list call of the snapshot at an offset (interface.md, endpoint 1), in the server's order. A
// list that is cut looks like one that is complete, see ListOptions; ReadSnapshot reads on to the end.
//
// Errors: ledger.ErrNotOffered where the server has no snapshots, or no continuation tokens and one was given; a
// *ledger.Problem also where (un)assignments in flight keep the server from showing the offset (rule 1); and the others
// of Updates.
func (c *Client) ActiveContracts(ctx context.Context, req SnapshotRequest, opts ListOptions) ([]ledger.ContractEntry, error) {
	if err := cmp.Or(req.check(), opts.check()); err != nil {
		return nil, err
	}
	entries, err := c.listContracts(ctx, req, opts)
	if err == nil {
		err = c.same(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("list the contracts active at offset %d: %w", req.ActiveAtOffset, err)
	}
	return entries, nil
}

func (c *Client) listContracts(ctx context.Context, req SnapshotRequest, opts ListOptions) ([]ledger.ContractEntry, error) {
	const operation = "snapshot-list"
	if req.StreamContinuationToken != "" {
		s, err := c.server(ctx)
		if err != nil {
			return nil, err
		}
		if s.before35() {
			return nil, fmt.Errorf("%w: version %s knows no continuation tokens", ledger.ErrNotOffered, s.Version)
		}
	}
	body, err := c.do(ctx, request{operation: operation, path: pathSnapshot, query: opts.query(), body: req})
	if err != nil {
		return nil, c.tooLong(ctx, err, asked{about: aboutSnapshot, need: req.needs(), offset: req.ActiveAtOffset,
			token: ledger.Token{Kind: ledger.TokenList, Value: req.StreamContinuationToken}})
	}
	entries, err := ledger.DecodeContractEntries(body)
	if err != nil {
		return nil, decoded(operation, body, err)
	}
	return entries, nil
}

// before35 says that the server ignores without a word what release 3.5 added to the requests: it would answer another
// question than was asked.
func (s *Server) before35() bool {
	return strings.HasPrefix(s.Version, "3.3.") || strings.HasPrefix(s.Version, "3.4.")
}

// tooLong explains the error of a list call, which may be that the list is longer than the server allows. Where the
// request itself is too large, the server says so with the same status and no code.
func (c *Client) tooLong(ctx context.Context, err error, q asked) error {
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusRequestEntityTooLarge && e.Code != "" {
		return &RequestError{Field: "limit", Section: sectionLimits, Err: err,
			Rule: "must be given, and be no larger than the server's own, where more matches than the server allows"}
	}
	return c.explain(ctx, err, q)
}
