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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

// pathUpdatesTrees is where servers up to 3.5 have the update-tree variant.
const pathUpdatesTrees = "/v2/updates/trees"

// ListOptions limit a list (interface.md, "Limits").
type ListOptions struct {
	// Limit is the maximum number of elements of all list calls together; 0: no limit.
	Limit int
	// StreamIdleTimeout is the time without a new element after which the server ends its answer, rounded up to whole
	// milliseconds; 0: the server's default.
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
		query.Set("limit", strconv.Itoa(o.Limit))
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

// listing is a list that is read by several calls. A server cuts an answer at the limit, at its own setting, or at the
// idle timeout, and never reports it: only an empty answer is the end.
type listing struct {
	opts  ListOptions
	size  *jsonhttp.Size
	count int // elements passed to yield
	yield func(element ledger.JSON) error
}

func (c *Client) newListing(opts ListOptions, yield func(ledger.JSON) error) *listing {
	return &listing{opts: opts, size: jsonhttp.NewSize(c.listLimit), yield: yield}
}

func (l *listing) next() ListOptions {
	bounded := ListOptions{Limit: l.size.Ask(), StreamIdleTimeout: l.opts.StreamIdleTimeout}
	if l.opts.Limit > 0 {
		bounded.Limit = min(bounded.Limit, l.opts.Limit-l.count)
	}
	return bounded
}

// smaller reports whether to repeat a failed call at once with a lower limit.
func (l *listing) smaller(asked ListOptions, err error) bool {
	return shrinkAfter(l.size, asked.Limit, err) || l.size.Ask() < asked.Limit
}

// deliver passes elements on, and reports whether more may be listed.
func (l *listing) deliver(elements []ledger.JSON) (more bool, err error) {
	for _, element := range elements {
		if err := l.yield(element); err != nil {
			return false, err
		}
	}
	l.count += len(elements)
	return len(elements) > 0 && (l.opts.Limit == 0 || l.count < l.opts.Limit), nil
}

// elements splits a list into its elements, which share no memory with the answer.
func (c *Client) elements(operation string, a jsonhttp.Answer) ([]ledger.JSON, error) {
	var elements []ledger.JSON
	if err := json.Unmarshal(a.Body, &elements, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, c.misread(operation, a, err)
	}
	if elements == nil {
		return nil, contradiction(operation, "the answer is null where a list is expected")
	}
	return elements, nil
}

// Updates lists updates (interface.md, endpoint 2) with as many list calls as it takes, and calls yield with each
// element as the server sent it, checkpoints included. It checks only that their offsets are in order and within the
// requested range. Without an end the list ends when nothing has come for the idle timeout.
//
// For an end of 0 the list is empty and no request is sent: interface.md allows it, but servers refuse it.
//
// Errors: those of yield; a *RequestError where a rule is broken; ledger.ErrNotOffered where the server has no trees,
// or no descending order; a *ledger.Problem where the updates are pruned, an offset is above the ledger end, or a right
// is missing; an *Error, which may be tried again, for the rest.
func (c *Client) Updates(ctx context.Context, req UpdatesRequest, opts ListOptions,
	yield func(ledger.JSON) error) error {
	if err := cmp.Or(req.check(), opts.check()); err != nil {
		return err
	}
	if req.EndInclusive != nil && *req.EndInclusive == 0 {
		return nil
	}
	s, err := c.server(ctx)
	if err != nil {
		return fmt.Errorf("list updates: %w", err)
	}
	if req.DescendingOrder && s.before35() {
		return fmt.Errorf("list updates: %w: version %s knows no descending order", ledger.ErrNotOffered, s.Version)
	}
	l := c.newListing(opts, yield)
	for more := true; more; {
		bounds := l.next()
		elements, rest, err := c.listUpdates(ctx, s, req, bounds)
		switch {
		case err == nil:
			more, err = l.deliver(elements)
		case l.smaller(bounds, err):
			continue
		default:
			q := purpose{need: req.needs()}
			if !req.Trees {
				q.server = s
			}
			err = c.explain(ctx, err, q)
		}
		if err != nil {
			return fmt.Errorf("list updates after offset %d: %w", req.BeginExclusive, err)
		}
		if more = more && rest != nil; more {
			req = *rest
		}
	}
	return nil
}

// listUpdates does one list call. rest is the request for what follows; nil if nothing can follow.
func (c *Client) listUpdates(
	ctx context.Context, s *Server, req UpdatesRequest, bounds ListOptions,
) (elements []ledger.JSON, rest *UpdatesRequest, err error) {
	const operation = "updates-list"
	path := s.TailPath
	if req.Trees {
		path = pathUpdatesTrees
	}
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: path, Query: bounds.query(), Body: req,
		LongPoll: req.EndInclusive == nil})
	if err != nil {
		return nil, nil, err
	}
	defer jsonhttp.Release(a.Body)
	if elements, err = c.elements(operation, a); err != nil {
		return nil, nil, err
	}
	p := req.begin()
	for i, element := range elements {
		if err := p.next(element); err != nil {
			return nil, nil, contradiction(operation, "element %d: %w", i, err)
		}
	}
	return elements, p.rest(), c.checkIdentity(ctx)
}

// position is how far a list of updates has been read.
type position struct {
	req        UpdatesRequest
	last       ledger.Offset // of the previous element, or the bound where the list begins
	lastUpdate ledger.Offset // of the previous update; 0: none
}

func (r UpdatesRequest) begin() *position {
	p := &position{req: r, last: r.BeginExclusive}
	if r.DescendingOrder {
		p.last = *r.EndInclusive
	}
	return p
}

// next checks the offset of an element. Offsets of updates must rise, or fall in descending order, and lie within the
// requested range. A checkpoint may repeat the offset of the previous element, or the offset where the list begins.
func (p *position) next(element ledger.JSON) error {
	offset, checkpoint, err := offsetOf(element)
	if err != nil {
		return err
	}
	ahead := offset - p.last
	if p.req.DescendingOrder {
		ahead = -ahead
	}
	switch {
	case p.req.EndInclusive != nil && offset > *p.req.EndInclusive:
		return fmt.Errorf("offset %d is above the requested range", offset)
	case offset < p.req.BeginExclusive, offset == p.req.BeginExclusive && !checkpoint:
		return fmt.Errorf("offset %d is below the requested range", offset)
	case ahead < 0, ahead == 0 && !checkpoint && (!p.req.DescendingOrder || offset == p.lastUpdate):
		return fmt.Errorf("offset %d follows %d, which is not the requested order", offset, p.last)
	}
	p.last = offset
	if !checkpoint {
		p.lastUpdate = offset
	}
	return nil
}

// rest returns the request for what follows; nil if nothing can follow.
func (p *position) rest() *UpdatesRequest {
	rest, end := p.req, p.req.EndInclusive
	switch {
	case !rest.DescendingOrder && p.last > rest.BeginExclusive && (end == nil || p.last < *end):
		rest.BeginExclusive = p.last
	case rest.DescendingOrder && p.lastUpdate > rest.BeginExclusive+1:
		rest.EndInclusive = new(p.lastUpdate - 1)
	default:
		return nil
	}
	return &rest
}

// offsetOf returns the offset of an element of a list of updates, of any kind.
func offsetOf(element ledger.JSON) (offset ledger.Offset, checkpoint bool, err error) {
	var e struct {
		Update map[string]struct {
			Value struct {
				Offset *ledger.Offset `json:"offset"`
			} `json:"value"`
		} `json:"update"`
	}
	if err := json.Unmarshal(element, &e, jsontext.AllowDuplicateNames(true)); err != nil {
		return 0, false, err
	}
	for kind, variant := range e.Update {
		if variant.Value.Offset != nil {
			return *variant.Value.Offset, kind == "OffsetCheckpoint", nil
		}
	}
	return 0, false, errors.New("it has no offset")
}

// ActiveContracts lists the contracts that are active at an offset (interface.md, endpoint 1), and calls yield with
// each entry as the server sent it. It follows the continuation tokens of the entries. A server without tokens (3.4) is
// asked for everything in one list call, and a warning is logged where that list may be cut.
//
// Errors: those of yield; ledger.ErrNotOffered where the server has no snapshots, or no continuation tokens and one was
// given; a *ledger.Problem also where (un)assignments in flight keep the server from showing the offset (rule 1), or
// where the server has no tokens and the list is longer than it serves; and the others of Updates.
func (c *Client) ActiveContracts(ctx context.Context, req SnapshotRequest, opts ListOptions,
	yield func(ledger.JSON) error) error {
	if err := cmp.Or(req.check(), opts.check()); err != nil {
		return err
	}
	if err := c.listSnapshot(ctx, req, c.newListing(opts, yield)); err != nil {
		return fmt.Errorf("list the contracts active at offset %d: %w", req.ActiveAtOffset, err)
	}
	return nil
}

func (c *Client) listSnapshot(ctx context.Context, req SnapshotRequest, l *listing) error {
	if req.StreamContinuationToken != "" {
		s, err := c.server(ctx)
		if err != nil {
			return err
		}
		if s.before35() {
			return fmt.Errorf("%w: version %s knows no continuation tokens", ledger.ErrNotOffered, s.Version)
		}
	}
	for more := true; more; {
		bounds := l.next()
		entries, token, err := c.listContracts(ctx, req, bounds)
		if err == nil && len(entries) > 0 && token == "" {
			entries, err = c.listAtOnce(ctx, req, l.opts)
		}
		switch {
		case err == nil:
			more, err = l.deliver(entries)
			more = more && token != ""
			req.StreamContinuationToken = token
		case l.smaller(bounds, err):
			continue
		}
		if err != nil {
			return c.explainList(ctx, err, req)
		}
	}
	return nil
}

// listContracts does one list call. It returns the token of the last entry, which is empty where the server gives none.
func (c *Client) listContracts(
	ctx context.Context, req SnapshotRequest, bounds ListOptions,
) (entries []ledger.JSON, token string, err error) {
	const operation = "snapshot-list"
	r := jsonhttp.Request{Operation: operation, Path: pathSnapshot, Query: bounds.query(), Body: req}
	if bounds.Limit == 0 {
		r.MaxBytes = c.wholeBody
	}
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, "", err
	}
	defer jsonhttp.Release(a.Body)
	if entries, err = c.elements(operation, a); err != nil {
		return nil, "", err
	}
	for i, entry := range entries {
		var e struct {
			Token string `json:"streamContinuationToken"`
		}
		if err := json.Unmarshal(entry, &e, jsontext.AllowDuplicateNames(true)); err != nil {
			return nil, "", contradiction(operation, "entry %d: %w", i, err)
		}
		token = e.Token
	}
	if token != "" && token == req.StreamContinuationToken {
		return nil, "", contradiction(operation, "the list leads back to itself")
	}
	return entries, token, c.checkIdentity(ctx)
}

// listAtOnce lists everything in one call, for a server without continuation tokens.
func (c *Client) listAtOnce(ctx context.Context, req SnapshotRequest, opts ListOptions) ([]ledger.JSON, error) {
	if req.StreamContinuationToken != "" {
		return nil, &ledger.Problem{What: "the server gave continuation tokens before and gives none any more",
			Do: "begin again"}
	}
	entries, _, err := c.listContracts(ctx, req, opts)
	var e *Error
	switch {
	case errors.As(err, &e) && e.Status == http.StatusRequestEntityTooLarge:
		return nil, listTooLong.of(err)
	case err == nil && (opts.Limit == 0 || len(entries) < opts.Limit):
		c.log.WarnContext(ctx, "the server gives no continuation tokens, so it may have cut the list at its own limit",
			"entries", len(entries))
	}
	return entries, err
}

func (c *Client) explainList(ctx context.Context, err error, req SnapshotRequest) error {
	if e, ok := errors.AsType[*Error](err); ok && req.StreamContinuationToken != "" && e.aboutToken() {
		return badToken.of(err)
	}
	return c.explain(ctx, err, purpose{about: aboutSnapshot, need: req.needs(), offset: req.ActiveAtOffset})
}

// before35 reports whether the server is older than release 3.5. Such a server silently ignores the members that 3.5
// added to requests, so its answer would be wrong.
func (s *Server) before35() bool {
	return strings.HasPrefix(s.Version, "3.3.") || strings.HasPrefix(s.Version, "3.4.")
}
