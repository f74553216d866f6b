package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// updatesRequest is the body of a list of updates.
type updatesRequest struct {
	BeginExclusive ledger.Offset  `json:"beginExclusive"`        // 0: the beginning of the ledger
	EndInclusive   *ledger.Offset `json:"endInclusive,omitzero"` // nil: without end
	UpdateFormat   jsontext.Value `json:"updateFormat"`
}

// updatesPageRequest is the body of /v2/updates/get-updates-page.
type updatesPageRequest struct {
	Begin        ledger.Offset  `json:"beginOffsetExclusive"`
	End          ledger.Offset  `json:"endOffsetInclusive"`
	MaxPageSize  int            `json:"maxPageSize"`
	UpdateFormat jsontext.Value `json:"updateFormat"`
}

// ReadUpdates reads updates from after, exclusive, to to, inclusive; to must not be above the ledger end (interface.md,
// endpoint 2). The page is complete for (after, page.To], and after < page.To <= to. If page.To is less than to, call
// again from page.To.
//
// Pages too are requested by offsets, not by page token: a token would force one sequence and one server on all reads
// of a range.
//
// After a new connection, or the end of one with a request on it, the participant's id is checked. If another
// participant answered, the page is dropped and the error is a *ledger.Problem.
//
// Errors: a *ledger.Problem where the updates are pruned, after is above the ledger end, a right or a name is missing,
// or one update is larger than what can be read; a *ledger.DecodeError where the answer can't be understood; a
// *ledger.Bug where the server takes the request for malformed; an *Error, which may be tried again, for the rest.
func (c *Client) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return c.readUpdates(ctx, after, to, c.maxBody)
}

// ReadUpdatesWithin is ReadUpdates with a limit on the answer, in bytes of JSON. The error is ledger.ErrByteLimit if
// the answer is larger.
func (c *Client) ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, maxBytes int64) (ledger.Page, error) {
	return c.readUpdates(ctx, after, to, min(maxBytes, c.maxBody))
}

func (c *Client) readUpdates(ctx context.Context, after, to ledger.Offset, maxBytes int64) (ledger.Page, error) {
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
		page, err := read(ctx, s.UpdatesPath, after, to, asked, maxBytes)
		if err == nil {
			sizes.Worked()
			if err := c.checkIdentity(ctx); err != nil {
				return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to, err)
			}
			return page, nil
		}
		if errors.Is(err, jsonhttp.ErrTooLarge) && maxBytes < c.maxBody {
			return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w: %w", after, to, ledger.ErrByteLimit,
				err)
		}
		if shrinkAfter(sizes, asked, err) {
			c.log.DebugContext(ctx, "reducing updates page size", "asked", asked, "now", sizes.Ask(), "error", err)
			continue
		}
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to,
			c.explainUpdates(ctx, err, s, after))
	}
}

// readList does a bounded read of a list path (interface.md, endpoint 2 and "Limits"). It sends no idle timeout, which
// could silently cut even a bounded read.
func (c *Client) readList(
	ctx context.Context, path string, after, to ledger.Offset, limit int, maxBytes int64,
) (ledger.Page, error) {
	const operation = "updates"
	began := c.served.begin()
	a, err := c.do(ctx, jsonhttp.Request{
		Operation: operation, Path: path, MaxBytes: maxBytes,
		Query: url.Values{"limit": {strconv.Itoa(limit)}},
		Body:  updatesRequest{BeginExclusive: after, EndInclusive: &to, UpdateFormat: c.format.Update},
	})
	if err != nil {
		return ledger.Page{}, err
	}
	defer jsonhttp.Release(a.Body)
	list, err := ledger.DecodeUpdateList(a.Body, after)
	c.http.Decoded(ctx, a)
	if err != nil {
		return ledger.Page{}, c.decodeError(operation, a, err)
	}
	if list.Last > to {
		return ledger.Page{}, contradiction(operation, "offset %d is above the requested range", list.Last)
	}
	page := ledger.Page{From: after, To: to, Updates: list.Updates, Checkpoints: list.Checkpoints,
		Bytes: int64(len(a.Body))}
	// If the list may have been cut, the page ends with its last element.
	if !c.served.complete(began, list.Elements, limit) {
		page.To = list.Last
	}
	c.served.observe(began, list.Elements)
	if page.To <= after {
		return ledger.Page{}, contradiction(operation,
			"the answer is only a checkpoint at offset %d, where the read begins, and the server may have cut off what follows",
			page.To)
	}
	return page, nil
}

// readPage does a bounded read of the page path. Its answer contains the range that it covers.
func (c *Client) readPage(
	ctx context.Context, path string, after, to ledger.Offset, size int, maxBytes int64,
) (ledger.Page, error) {
	const operation = "updates-page"
	a, err := c.do(ctx, jsonhttp.Request{
		Operation: operation, Path: path, MaxBytes: maxBytes,
		Body: updatesPageRequest{Begin: after, End: to, MaxPageSize: size, UpdateFormat: c.format.Update},
	})
	if err != nil {
		return ledger.Page{}, err
	}
	defer jsonhttp.Release(a.Body)
	got, err := ledger.DecodeUpdatePage(a.Body, after)
	c.http.Decoded(ctx, a)
	if err != nil {
		return ledger.Page{}, c.decodeError(operation, a, err)
	}
	switch {
	case got.Lowest > after:
		// A pruned participant does not refuse a read from the ledger's beginning, but starts above what it pruned.
		return ledger.Page{}, prunedUpdates(after, got.Lowest).of(ledger.ErrPruned)
	case got.Highest <= after:
		return ledger.Page{}, contradiction(operation, "the page covers nothing: it ends at offset %d", got.Highest)
	case got.Last > to:
		return ledger.Page{}, contradiction(operation, "offset %d is above the requested range", got.Last)
	}
	return ledger.Page{From: after, To: min(got.Highest, to), Updates: got.Updates, Checkpoints: got.Checkpoints,
		Bytes: int64(len(a.Body))}, nil
}

// TailUpdates waits for updates after an offset (interface.md, endpoint 2 and "Limits"). It sends one open-ended
// request, which the server answers when it has limit elements or nothing has come for idle, at least 1 ms. The
// page ends with its last element, or at after if nothing came. Full reports that more may be available at once: limit
// elements came, or the server may have cut the list.
//
// If elements come too slowly to reach the limit before the server's request timeout, but too fast for an idle gap, the
// server gives up on the request. It is then repeated once for a single element.
//
// Another participant is detected as in ReadUpdates, and the errors are the same.
func (c *Client) TailUpdates(ctx context.Context, after ledger.Offset, limit int,
	idle time.Duration) (page ledger.Page, full bool, err error) {
	s, err := c.server(ctx)
	if err != nil {
		return ledger.Page{}, false, err
	}
	idle = max(time.Millisecond, idle)
	asked := max(1, min(limit, c.updatesList.Ask()))
	for {
		page, full, err = c.tail(ctx, s.TailPath, after, asked, idle)
		var e *Error
		switch {
		case err == nil:
			c.updatesList.Worked()
			if err := c.checkIdentity(ctx); err != nil {
				return ledger.Page{}, false, fmt.Errorf("read updates after offset %d: %w", after, err)
			}
			return page, full, nil
		case errors.As(err, &e) && e.timedOut() && asked > 1:
			asked = 1
		case shrinkAfter(c.updatesList, asked, err):
			asked = max(1, asked/2)
		default:
			return ledger.Page{}, false, fmt.Errorf("read updates after offset %d: %w", after,
				c.explainUpdates(ctx, err, s, after))
		}
	}
}

func (c *Client) tail(ctx context.Context, path string, after ledger.Offset, limit int,
	idle time.Duration) (ledger.Page, bool, error) {
	const operation = "updates-tail"
	began := c.served.begin()
	a, err := c.do(ctx, jsonhttp.Request{
		Operation: operation, Path: path, LongPoll: true,
		Query: url.Values{"limit": {strconv.Itoa(limit)}, "stream_idle_timeout_ms": {strconv.FormatInt(idle.Milliseconds(),
			10)}},
		Body: updatesRequest{BeginExclusive: after, UpdateFormat: c.format.Update},
	})
	if err != nil {
		return ledger.Page{}, false, err
	}
	defer jsonhttp.Release(a.Body)
	list, err := ledger.DecodeUpdateList(a.Body, after)
	c.http.Decoded(ctx, a)
	if err != nil {
		return ledger.Page{}, false, c.decodeError(operation, a, err)
	}
	// A checkpoint alone means an idle stream, so nothing was cut.
	full := list.Elements >= limit || len(list.Updates) > 0 && !c.served.complete(began, list.Elements, limit)
	c.served.observe(began, list.Elements)
	return ledger.Page{From: after, To: max(after, list.Last), Updates: list.Updates, Checkpoints: list.Checkpoints,
		Bytes: int64(len(a.Body))}, full, nil
}

// explainUpdates explains an error of reading updates. Before an operator is told to act, the participant is asked who
// it is: what another one has pruned, or where its ledger ends, says nothing of the one that was found first.
func (c *Client) explainUpdates(ctx context.Context, err error, s *Server, after ledger.Offset) error {
	err = c.explain(ctx, err, purpose{about: aboutUpdates, need: c.scopeRight(), server: s, offset: after})
	if _, lasting := errors.AsType[*ledger.Problem](err); lasting {
		return cmp.Or(c.checkIdentity(ctx), err)
	}
	return err
}

// contradiction returns the error of an answer that contradicts its request. The cause may be a faulty proxy, so the
// request may be tried again.
func contradiction(operation, format string, args ...any) error {
	return &Error{Failure: jsonhttp.Unusable(operation, fmt.Errorf(format, args...))}
}
