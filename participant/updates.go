package participant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ledger"
)

// maxIdle keeps an open-ended read well below the 20 s after which servers give up on a request.
const maxIdle = 15 * time.Second

// updatesRequest is the body of /v2/updates and /v2/updates/flats (interface.md, endpoint 2). The end is left out
// of open-ended reads.
type updatesRequest struct {
	Begin        ledger.Offset  `json:"beginExclusive"`
	End          *ledger.Offset `json:"endInclusive,omitzero"`
	UpdateFormat jsontext.Value `json:"updateFormat"`
}

// updatesPageRequest is the body of /v2/updates/get-updates-page.
type updatesPageRequest struct {
	Begin        ledger.Offset  `json:"beginOffsetExclusive"`
	End          ledger.Offset  `json:"endOffsetInclusive"`
	MaxPageSize  int            `json:"maxPageSize"`
	UpdateFormat jsontext.Value `json:"updateFormat"`
}

// ReadUpdates reads on from after up to to, which must not lie above the ledger end. The page is complete for
// (after, page.To], and after < page.To <= to: where page.To is less than to, call again from page.To.
//
// Every call is a request of its own with explicit bounds, on pages too: their token would bind all reads of a
// range to one sequence and one server, and says nothing that the offsets do not say.
//
// Where another participant than the one found first may have answered (the connection is a new one), its id is
// asked for: the page is dropped and a *ledger.Problem returned where it is another.
func (c *Client) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	if after < 0 || to <= after {
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: there is nothing between", after, to)
	}
	s, err := c.server(ctx)
	if err != nil {
		return ledger.Page{}, err
	}
	read, sizes := c.readList, &c.updatesList
	if s.UpdatesPath == pathUpdatesPage {
		read, sizes = c.readPage, &c.updatesPage
	}
	for {
		asked := sizes.ask()
		page, err := read(ctx, s.UpdatesPath, after, to, asked)
		if err == nil {
			sizes.worked()
			if err := c.same(ctx); err != nil {
				return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to, err)
			}
			return page, nil
		}
		if sizes.failed(asked, err) {
			c.log.DebugContext(ctx, "smaller reads of updates", "asked", asked, "now", sizes.ask(), "error", err)
			continue
		}
		return ledger.Page{}, fmt.Errorf("read updates after offset %d up to %d: %w", after, to, c.updatesError(s, err, after))
	}
}

// readList does a bounded read of a list path (interface.md, endpoint 2 and "Limits"). No idle timeout is sent: it
// could cut even a bounded read without a word.
func (c *Client) readList(ctx context.Context, path string, after, to ledger.Offset, limit int) (ledger.Page, error) {
	const operation = "updates"
	body, err := c.do(ctx, request{
		operation: operation, path: path,
		query: url.Values{"limit": {strconv.Itoa(limit)}},
		body:  updatesRequest{Begin: after, End: &to, UpdateFormat: c.format.update},
	})
	if err != nil {
		return ledger.Page{}, err
	}
	list, err := ledger.DecodeUpdateList(body, after)
	if err != nil {
		return ledger.Page{}, decoded(operation, body, err)
	}
	if list.Last > to {
		return ledger.Page{}, misled(operation, "offset %d came, above what was asked for", list.Last)
	}
	page := ledger.Page{From: after, To: to, Updates: list.Updates, Checkpoints: list.Checkpoints, Bytes: int64(len(body))}
	// Where it is not proven that all came, the last element is as far as the answer certainly reaches.
	if !c.served.complete(list.Elements, limit) {
		page.To = list.Last
	}
	c.served.saw(list.Elements)
	if page.To <= after {
		return ledger.Page{}, misled(operation, "nothing came but a checkpoint at offset %d, where the read begins, "+
			"and the server may have cut off what follows it", page.To)
	}
	return page, nil
}

// readPage does a bounded read of the page path, where the server says itself what its page covers.
func (c *Client) readPage(ctx context.Context, path string, after, to ledger.Offset, size int) (ledger.Page, error) {
	const operation = "updates-page"
	body, err := c.do(ctx, request{
		operation: operation, path: path,
		body: updatesPageRequest{Begin: after, End: to, MaxPageSize: size, UpdateFormat: c.format.update},
	})
	if err != nil {
		return ledger.Page{}, err
	}
	got, err := ledger.DecodeUpdatePage(body, after)
	if err != nil {
		return ledger.Page{}, decoded(operation, body, err)
	}
	switch {
	case got.Lowest > after:
		// Asked for the ledger's beginning, a pruned participant starts where it can instead of refusing.
		return ledger.Page{}, pruned(after, got.Lowest, nil)
	case got.Highest <= after:
		return ledger.Page{}, misled(operation, "a page came that covers nothing: it ends at offset %d", got.Highest)
	case got.Last > to:
		return ledger.Page{}, misled(operation, "offset %d came, above what was asked for", got.Last)
	}
	return ledger.Page{From: after, To: min(got.Highest, to), Updates: got.Updates, Checkpoints: got.Checkpoints,
		Bytes: int64(len(body))}, nil
}

// TailUpdates waits for updates after after: one open-ended request that is answered when limit elements are there
// or nothing has come for idle (at most 15 s). The page reaches to its last element, or to after where nothing
// came. Full says that there may be more at once: limit elements came, or it is not proven that the server serves
// as many in one answer.
//
// Where elements trickle so slowly that the limit is not reached within the server's request timeout and so fast
// that no idle gap occurs, the server gives up on the request; it is then repeated once for a single element.
//
// Another participant is noticed as in ReadUpdates.
func (c *Client) TailUpdates(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (page ledger.Page, full bool, err error) {
	s, err := c.server(ctx)
	if err != nil {
		return ledger.Page{}, false, err
	}
	idle = max(time.Millisecond, min(idle, maxIdle))
	asked := max(1, min(limit, c.updatesList.ask()))
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
		case c.updatesList.failed(asked, err):
			asked = max(1, asked/2)
		default:
			return ledger.Page{}, false, fmt.Errorf("read updates after offset %d: %w", after, c.updatesError(s, err, after))
		}
	}
}

func (c *Client) tail(ctx context.Context, path string, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
	const operation = "updates-tail"
	body, err := c.do(ctx, request{
		operation: operation, path: path,
		query: url.Values{"limit": {strconv.Itoa(limit)}, "stream_idle_timeout_ms": {strconv.FormatInt(idle.Milliseconds(), 10)}},
		body:  updatesRequest{Begin: after, UpdateFormat: c.format.update},
	})
	if err != nil {
		return ledger.Page{}, false, err
	}
	list, err := ledger.DecodeUpdateList(body, after)
	if err != nil {
		return ledger.Page{}, false, decoded(operation, body, err)
	}
	// A checkpoint alone comes of an idle stream, whatever the server's setting.
	full := list.Elements >= limit || len(list.Updates) > 0 && !c.served.complete(list.Elements, limit)
	c.served.saw(list.Elements)
	return ledger.Page{From: after, To: max(after, list.Last), Updates: list.Updates, Checkpoints: list.Checkpoints,
		Bytes: int64(len(body))}, full, nil
}

// updatesError says what a failed read of updates means.
func (c *Client) updatesError(s *Server, err error, after ledger.Offset) error {
	var e *Error
	var p *ledger.Problem
	if !errors.As(err, &e) || errors.As(err, &p) {
		return err
	}
	switch {
	case e.pathMissing():
		return c.lost(s, err)
	case e.Code == codePruned:
		if earliest, ok := e.earliest(); ok {
			return pruned(after, earliest, err)
		}
		return &ledger.Problem{
			What: fmt.Sprintf("the participant has pruned updates above offset %d", after),
			Do:   reseed,
			Err:  err,
		}
	case e.Code == codeAfterLedgerEnd:
		return &ledger.Problem{
			What: fmt.Sprintf("the participant's ledger ends below an offset that it had before (reading after offset %d)", after),
			Do: "the participant was restored from an older backup, or --ledger-url is another participant: " +
				"connect to the right one, or re-seed an empty database with `backfill`",
			Err: err,
		}
	case errors.Is(e, errTooLarge):
		return &ledger.Problem{
			What: fmt.Sprintf("the update after offset %d is larger than the %d bytes that are read of an answer", after, c.maxBody),
			Do:   "narrow what is read with --templates or --parties, or leave out --blobs",
			Err:  err,
		}
	case e.Status == http.StatusRequestEntityTooLarge:
		return tooLarge(err)
	}
	return c.explain(err)
}

const reseed = "what is missing can't be had from this participant any more: re-seed an empty database with `backfill`, " +
	"or read from a participant that still has it"

// pruned is the Problem of a participant that does not have the updates right after an offset any more.
func pruned(after, upTo ledger.Offset, err error) error {
	return &ledger.Problem{
		What: fmt.Sprintf("the participant is pruned up to offset %d, and updates after offset %d are needed", upTo, after),
		Do:   reseed,
		Err:  err,
	}
}

// tooLarge is the Problem of a server that answers 413 even where one element was asked for.
func tooLarge(err error) error {
	return &ledger.Problem{
		What: "the server says that the request or its answer is too large, even with a limit of 1",
		Do: "raise http-list-max-elements-limit on the participant; or, where it means the request, name fewer --parties, " +
			"--templates or --interfaces",
		Err: err,
	}
}

// misled is an answer that contradicts what was asked. It may come of a proxy that mixes things up, so it may be
// asked for again.
func misled(operation, format string, args ...any) error {
	return &Error{Operation: operation, Status: http.StatusOK, Err: fmt.Errorf(format, args...)}
}
