package participant

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

// MaxIdle keeps an open-ended read well below the 20 s after which servers give up on a request.
const MaxIdle = 15 * time.Second

// UpdatesRequest asks for updates (interface.md, endpoint 2). Either UpdateFormat or Filter must be set.
//
// By interface.md an absent UpdateFormat means: transactions and reassignments that match Filter, with Verbose, the
// transactions in the shape ACS delta, and topology events of the parties that Filter names. Servers of 3.4 to 3.6
// leave the topology events out: who wants them must send an UpdateFormat.
type UpdatesRequest struct {
	BeginExclusive  ledger.Offset  `json:"beginExclusive"`           // 0: the beginning of the ledger
	EndInclusive    *ledger.Offset `json:"endInclusive,omitzero"`    // not below BeginExclusive; nil: without end
	UpdateFormat    *UpdateFormat  `json:"updateFormat,omitzero"`    // nil where Filter or Verbose is set
	DescendingOrder bool           `json:"descendingOrder,omitzero"` // needs EndInclusive, and a server from 3.5 on

	// Deprecated: the form before UpdateFormat.
	Filter  *TransactionFilter `json:"filter,omitzero"`
	Verbose *bool              `json:"verbose,omitzero"`

	// Trees asks for transactions as trees, which servers up to 3.5 have. It needs a Filter without template filters, and
	// their shape is that of ledger effects.
	Trees bool `json:"-"`
}

func (r UpdatesRequest) check() error {
	must := rules{section: sectionUpdates}
	must.offset("beginExclusive", r.BeginExclusive)
	if end := r.EndInclusive; end != nil {
		must.offset("endInclusive", *end)
		must.must(*end >= r.BeginExclusive, "endInclusive", "must not lie below beginExclusive, which is %d, and is %d",
			r.BeginExclusive, *end)
	}
	must.must(!r.DescendingOrder || r.EndInclusive != nil, "descendingOrder",
		"must not be selected without endInclusive")
	if r.Trees {
		must.must(r.UpdateFormat == nil, "updateFormat", "must be unset for the update-tree variant")
		must.must(r.Filter != nil, "filter", "must be set for the update-tree variant")
		must.must(r.Filter == nil || !r.Filter.hasTemplates(), "filter",
			"must have no template filters for the update-tree variant")
	}
	must.formats("updateFormat", r.UpdateFormat != nil, r.Filter, r.Verbose)
	if r.UpdateFormat != nil {
		must.updateFormat("updateFormat", r.UpdateFormat)
	}
	return must.err
}

// needs is the right that the request needs.
func (r UpdatesRequest) needs() right {
	if r.UpdateFormat != nil {
		return r.UpdateFormat.needs()
	}
	return needs(r.Filter.FiltersByParty, r.Filter.FiltersForAnyParty)
}

// updatesPageRequest is the body of /v2/updates/get-updates-page.
type updatesPageRequest struct {
	Begin        ledger.Offset `json:"beginOffsetExclusive"`
	End          ledger.Offset `json:"endOffsetInclusive"`
	MaxPageSize  int           `json:"maxPageSize"`
	UpdateFormat *UpdateFormat `json:"updateFormat"`
}

// ReadUpdates reads on from after up to to, which must not lie above the ledger end (interface.md, endpoint 2). The page
// is complete for (after, page.To], and after < page.To <= to: where page.To is less than to, call again from page.To.
//
// Every call is a request of its own with explicit bounds, on pages too: their token would bind all reads of a
// range to one sequence and one server, and says nothing that the offsets do not say.
//
// Where another participant than the one found first may have answered (the connection is a new one), its id is
// asked for: the page is dropped and a *ledger.Problem returned where it is another.
//
// Errors: a *ledger.Problem where the updates are pruned, after is above the ledger end, a right or a name is missing, or
// one update is larger than what can be read; a *ledger.DecodeError where the answer can't be understood; a *ledger.Bug
// where the server finds no sense in the request; an *Error, which may be tried again, for the rest.
func (c *Client) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return c.readUpdates(ctx, after, to, c.maxBody)
}

// ReadUpdatesWithin is ReadUpdates for who has room for so many bytes of JSON. The error is ledger.ErrNoRoom where the answer
// has more, and nothing that is larger is read.
func (c *Client) ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, room int64) (ledger.Page, error) {
	return c.readUpdates(ctx, after, to, min(room, c.maxBody))
}

func (c *Client) readUpdates(ctx context.Context, after, to ledger.Offset, room int64) (ledger.Page, error) {
	if after < 0 || to <= after {
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: there is nothing between", after, to)
	}
	s, err := c.server(ctx)
	if err != nil {
		return ledger.Page{}, err
	}
	read, sizes := c.readList, c.updatesList
	if s.UpdatesPath == pathUpdatesPage {
		read, sizes = c.readPage, c.updatesPage
	}
	for {
		asked := sizes.Ask()
		page, err := read(ctx, s.UpdatesPath, after, to, asked, room)
		if err == nil {
			sizes.Worked()
			if err := c.same(ctx); err != nil {
				return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to, err)
			}
			return page, nil
		}
		if errors.Is(err, jsonhttp.ErrTooLarge) && room < c.maxBody {
			return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w: %w", after, to, ledger.ErrNoRoom, err)
		}
		if failed(sizes, asked, err) {
			c.log.DebugContext(ctx, "smaller reads of updates", "asked", asked, "now", sizes.Ask(), "error", err)
			continue
		}
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to, c.explain(ctx, err, c.ofUpdates(s, after)))
	}
}

// readList does a bounded read of a list path (interface.md, endpoint 2 and "Limits"). No idle timeout is sent: it
// could cut even a bounded read without a word.
func (c *Client) readList(ctx context.Context, path string, after, to ledger.Offset, limit int, room int64) (ledger.Page, error) {
	const operation = "updates"
	began := c.served.begin()
	a, err := c.do(ctx, request{
		operation: operation, path: path, limit: room,
		query: url.Values{"limit": {strconv.Itoa(limit)}},
		body:  UpdatesRequest{BeginExclusive: after, EndInclusive: &to, UpdateFormat: c.format.update},
	})
	if err != nil {
		return ledger.Page{}, err
	}
	defer jsonhttp.Release(a.Body)
	list, err := ledger.DecodeUpdateList(a.Body, after)
	if err != nil {
		return ledger.Page{}, c.decoded(operation, a, err)
	}
	if list.Last > to {
		return ledger.Page{}, misled(operation, "offset %d came, above what was asked for", list.Last)
	}
	page := ledger.Page{From: after, To: to, Updates: list.Updates, Checkpoints: list.Checkpoints, Bytes: int64(len(a.Body))}
	// Where it is not proven that all came, the last element is as far as the answer certainly reaches.
	if !c.served.complete(began, list.Elements, limit) {
		page.To = list.Last
	}
	c.served.saw(began, list.Elements)
	if page.To <= after {
		return ledger.Page{}, misled(operation, "nothing came but a checkpoint at offset %d, where the read begins, "+
			"and the server may have cut off what follows it", page.To)
	}
	return page, nil
}

// readPage does a bounded read of the page path, where the server says itself what its page covers.
func (c *Client) readPage(ctx context.Context, path string, after, to ledger.Offset, size int, room int64) (ledger.Page, error) {
	const operation = "updates-page"
	a, err := c.do(ctx, request{
		operation: operation, path: path, limit: room,
		body: updatesPageRequest{Begin: after, End: to, MaxPageSize: size, UpdateFormat: c.format.update},
	})
	if err != nil {
		return ledger.Page{}, err
	}
	defer jsonhttp.Release(a.Body)
	got, err := ledger.DecodeUpdatePage(a.Body, after)
	if err != nil {
		return ledger.Page{}, c.decoded(operation, a, err)
	}
	switch {
	case got.Lowest > after:
		// Asked for the ledger's beginning, a pruned participant starts where it can instead of refusing.
		return ledger.Page{}, prunedUpdates(after, got.Lowest).of(ledger.ErrPruned)
	case got.Highest <= after:
		return ledger.Page{}, misled(operation, "a page came that covers nothing: it ends at offset %d", got.Highest)
	case got.Last > to:
		return ledger.Page{}, misled(operation, "offset %d came, above what was asked for", got.Last)
	}
	return ledger.Page{From: after, To: min(got.Highest, to), Updates: got.Updates, Checkpoints: got.Checkpoints,
		Bytes: int64(len(a.Body))}, nil
}

// TailUpdates waits for updates after after: one open-ended request that is answered when limit elements are there
// or nothing has come for idle, from 1 ms to 15 s (interface.md, endpoint 2 and "Limits"). The page reaches to its last element, or to after where nothing
// came. Full says that there may be more at once: limit elements came, or it is not proven that the server serves
// as many in one answer.
//
// Where elements trickle so slowly that the limit is not reached within the server's request timeout and so fast
// that no idle gap occurs, the server gives up on the request; it is then repeated once for a single element.
//
// Another participant is noticed as in ReadUpdates, and the errors are the same.
func (c *Client) TailUpdates(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (page ledger.Page, full bool, err error) {
	s, err := c.server(ctx)
	if err != nil {
		return ledger.Page{}, false, err
	}
	idle = max(time.Millisecond, min(idle, MaxIdle))
	asked := max(1, min(limit, c.updatesList.Ask()))
	for {
		page, full, err = c.tail(ctx, s.TailPath, after, asked, idle)
		var e *Error
		switch {
		case err == nil:
			if err := c.same(ctx); err != nil {
				return ledger.Page{}, false, fmt.Errorf("read updates after offset %d: %w", after, err)
			}
			return page, full, nil
		case errors.As(err, &e) && e.timedOut() && asked > 1:
			asked = 1
		case failed(c.updatesList, asked, err):
			asked = max(1, asked/2)
		default:
			return ledger.Page{}, false, fmt.Errorf("read updates after offset %d: %w", after, c.explain(ctx, err, c.ofUpdates(s, after)))
		}
	}
}

func (c *Client) tail(ctx context.Context, path string, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
	const operation = "updates-tail"
	began := c.served.begin()
	a, err := c.do(ctx, request{
		operation: operation, path: path, longPoll: true,
		query: url.Values{"limit": {strconv.Itoa(limit)}, "stream_idle_timeout_ms": {strconv.FormatInt(idle.Milliseconds(), 10)}},
		body:  UpdatesRequest{BeginExclusive: after, UpdateFormat: c.format.update},
	})
	if err != nil {
		return ledger.Page{}, false, err
	}
	defer jsonhttp.Release(a.Body)
	list, err := ledger.DecodeUpdateList(a.Body, after)
	if err != nil {
		return ledger.Page{}, false, c.decoded(operation, a, err)
	}
	// A checkpoint alone comes of an idle stream, whatever the server's setting.
	full := list.Elements >= limit || len(list.Updates) > 0 && !c.served.complete(began, list.Elements, limit)
	c.served.saw(began, list.Elements)
	return ledger.Page{From: after, To: max(after, list.Last), Updates: list.Updates, Checkpoints: list.Checkpoints,
		Bytes: int64(len(a.Body))}, full, nil
}

func (c *Client) ofUpdates(s *Server, after ledger.Offset) asked {
	return asked{about: aboutUpdates, need: c.ofScope(), server: s, offset: after}
}

// misled is an answer that contradicts what was asked. It may come of a proxy that mixes things up, so it may be
// asked for again.
func misled(operation, format string, args ...any) error {
	return &Error{Failure: jsonhttp.Unusable(operation, fmt.Errorf(format, args...))}
}
