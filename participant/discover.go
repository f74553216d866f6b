package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// The paths of the API that are used. The flats path of interface.md exists up to release 3.5, pages from 3.5 on.
const (
	pathVersion       = "/v2/version"
	pathParticipantID = "/v2/parties/participant-id"
	pathLedgerEnd     = "/v2/state/ledger-end"
	pathPrunedOffsets = "/v2/state/latest-pruned-offsets"
	pathUpdates       = "/v2/updates"
	pathUpdatesFlats  = "/v2/updates/flats"
	pathUpdatesPage   = "/v2/updates/get-updates-page"
	pathSnapshot      = "/v2/state/active-contracts"
	pathSnapshotPage  = "/v2/state/active-contracts-page"

	pathAuthenticatedUser = "/v2/authenticated-user"
	pathUsers             = "/v2/users"
)

// Server is what Discover found.
type Server struct {
	Version       string // empty: the server does not return it
	ParticipantID string // empty: not returned, or not to this user (older servers return it to administrators only)
	UpdatesPath   string // of bounded reads, such as /v2/updates/get-updates-page
	TailPath      string // of open-ended reads
	SnapshotPath  string // empty: there is no snapshot; begins with the method where pages come by GET
	LedgerEnd     bool   // it returns its ledger end
}

// Discover finds the server's paths by requests for at most one element each, and logs them. Call it first. Without it,
// or when a path has gone since (the server was upgraded), the next read discovers.
//
// The server needs only the operations of interface.md: ledger end and id may be missing.
// Errors: a *ledger.Problem where there is no update stream at the URL, where the rights are missing, or where
// another participant answers than the one that was found first.
func (c *Client) Discover(ctx context.Context) (Server, error) {
	if err := c.lockDiscovery(ctx); err != nil {
		return Server{}, err
	}
	defer c.discovery.Release(1)
	return c.discover(ctx)
}

// server returns what Discover found, and discovers first if necessary.
func (c *Client) server(ctx context.Context) (*Server, error) {
	if s := c.found.Load(); s != nil {
		return s, nil
	}
	if err := c.lockDiscovery(ctx); err != nil {
		return nil, err
	}
	defer c.discovery.Release(1)
	if s := c.found.Load(); s != nil {
		return s, nil // another goroutine was faster
	}
	if _, err := c.discover(ctx); err != nil {
		return nil, err
	}
	return c.found.Load(), nil
}

func (c *Client) discover(ctx context.Context) (Server, error) {
	s, err := c.probe(ctx)
	if err != nil {
		return Server{}, fmt.Errorf("discover what the participant offers: %w",
			c.explain(ctx, err, purpose{about: aboutPaths, need: c.scopeRight()}))
	}
	if s.UpdatesPath == "" {
		err := fmt.Errorf("there is no update stream at %s", c.http.URL())
		if c.reached.Load() {
			return Server{}, fmt.Errorf("%w any more", err) // may come from a proxy while the server is down
		}
		return Server{}, &ledger.Problem{
			What: err.Error(),
			Do: "check --ledger-url: it must be the base of the participant's JSON API, with its path prefix where it has " +
				"one, such as /json-api (participant: http-ledger-api.path-prefix), and without /v2",
		}
	}
	if strings.HasPrefix(s.Version, "3.3.") && c.scope.Shape == ledger.ShapeLedgerEffects {
		return Server{}, &ledger.Problem{
			What: fmt.Sprintf("the participant has version %s, which does not say which of the contracts it shows with "+
				"--shape %s are active", s.Version, ledger.ShapeLedgerEffects),
			Do: fmt.Sprintf("use --shape %s, or a participant of 3.4 or later", ledger.ShapeACSDelta),
		}
	}
	if c.firstID == "" {
		c.firstID = s.ParticipantID
	}
	c.found.Store(&s)
	c.reached.Store(true)
	if s != c.logged {
		c.log.InfoContext(ctx, "participant discovered", "version", c.redact(s.Version),
			"participant_id", c.redact(s.ParticipantID),
			"updates_path", s.UpdatesPath, "tail_path", s.TailPath, "snapshot_path", s.SnapshotPath, "ledger_end", s.LedgerEnd)
		c.logged = s
	}
	return s, nil
}

// pathGone forgets the paths of s, because one of them does not work any more.
func (c *Client) pathGone(s *Server, err error) error {
	c.found.CompareAndSwap(s, nil)
	return fmt.Errorf("the server's path does not work any more; the next read discovers its paths again: %w", err)
}

func (c *Client) probe(ctx context.Context) (Server, error) {
	var s Server
	var err error
	if s.Version, err = c.text(ctx, "version", pathVersion, "version"); err != nil {
		return s, err
	}
	if s.ParticipantID, err = c.identity(ctx); err != nil {
		return s, err
	}
	var end, bounded, tail, snapshot error
	var group sync.WaitGroup
	group.Go(func() { s.LedgerEnd, end = c.hasLedgerEnd(ctx) })
	had := c.logged
	group.Go(func() {
		s.UpdatesPath, bounded = c.firstPresent(ctx, had.UpdatesPath, pathUpdatesPage, pathUpdatesFlats, pathUpdates)
	})
	// Pages are always bounded. Of the other two paths later releases have only updates.
	group.Go(func() { s.TailPath, tail = c.firstPresent(ctx, had.TailPath, pathUpdates, pathUpdatesFlats) })
	group.Go(func() {
		s.SnapshotPath, snapshot = c.firstPresent(ctx, had.SnapshotPath, pathSnapshotPage, pathSnapshot)
	})
	group.Wait()
	if had.SnapshotPath == "" && refusedByProxy(snapshot) {
		snapshot = nil // updates can be read without it
	}
	if s.TailPath == "" {
		s.UpdatesPath = ""
	}
	return s, cmp.Or(end, bounded, tail, snapshot)
}

// hasLedgerEnd reports whether the server returns its ledger end. A refusal by a gateway counts as absence, as in
// firstPresent.
func (c *Client) hasLedgerEnd(ctx context.Context) (bool, error) {
	_, err := c.ledgerEnd(ctx)
	if lacksPath(err) || refusedByProxy(err) && !c.logged.LedgerEnd {
		return false, nil
	}
	return err == nil, err
}

// firstPresent returns the first of several paths that the server has, or "" if it has none. A path that a proxy
// refuses counts as absent, because some gateways answer 403 to every path that they don't know. If no path is present,
// the refusal is the error. A refusal of the path that was used before is an error too: the refusal may be temporary,
// but a change of path would be permanent.
func (c *Client) firstPresent(ctx context.Context, before string, paths ...string) (string, error) {
	var refused error
	for _, path := range paths {
		found, err := c.findPath(ctx, path, before)
		unreached, isUnreached := errors.AsType[*unreachedError](err)
		switch {
		case isUnreached:
			c.log.InfoContext(ctx, "an operation is not used", "path", getSnapshotPage, "reason", unreached)
		case refusedByProxy(err) && !strings.HasSuffix(before, path):
			refused = err
		case err != nil:
			return "", err
		case found != "":
			return found, nil
		}
	}
	return "", refused
}

// findPath returns path if the server has it, with the method before it where that is not the usual one, and "" if it
// does not. It requests at most one element between the offsets 0 and 1, or of the empty snapshot at 0. A server that
// finds the request invalid has the path. before is as in firstPresent.
func (c *Client) findPath(ctx context.Context, path, before string) (string, error) {
	r := jsonhttp.Request{Operation: "discover", Path: path}
	one := url.Values{"limit": {"1"}}
	end := ledger.Offset(1)
	switch path {
	case pathUpdatesPage:
		r.Body = updatesPageRequest{Begin: 0, End: end, MaxPageSize: 1, UpdateFormat: c.format.Update}
	case pathSnapshotPage:
		r.Body = c.firstSnapshotPage()
	case pathSnapshot:
		r.Query, r.Body = one, snapshotRequest{ActiveAtOffset: 0, EventFormat: c.format.Event}
	default:
		r.Query, r.Body = one, updatesRequest{BeginExclusive: 0, EndInclusive: &end, UpdateFormat: c.format.Update}
	}
	_, err := c.do(ctx, r)
	has, failed := present(err)
	if e, ok := errors.AsType[*Error](err); ok && path == pathSnapshotPage && e.Status == http.StatusMethodNotAllowed {
		path = getSnapshotPage
		has, failed = c.hasGetSnapshotPage(ctx, before)
	}
	if !has {
		return "", failed
	}
	return path, nil
}

// present reports whether the server has an operation, by the error of a probe.
func present(err error) (bool, error) {
	var e *Error
	if err == nil || !errors.As(err, &e) {
		return err == nil, err
	}
	switch {
	case e.pathMissing():
		return false, nil
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return false, err
	case e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout &&
		e.Status != http.StatusTooManyRequests:
		return true, nil
	}
	return false, err
}

// text returns one member of an object, or "" if the server does not have the path or does not return the member.
func (c *Client) text(ctx context.Context, operation, path, member string) (string, error) {
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: path, MaxBytes: tinyBody})
	var e *Error
	switch {
	case refusedByProxy(err) && c.answeredBefore(err): // temporary
		return "", err
	case errors.As(err, &e) && (e.pathMissing() || e.Status == http.StatusNotFound || e.Status == http.StatusForbidden):
		return "", nil
	case err != nil:
		return "", err
	}
	var answer map[string]any
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return "", c.misread(operation, a, err)
	}
	value, _ := answer[member].(string)
	if c.access.Repeats(value) {
		return "", contradiction(operation, "the answer's %s holds a secret that was sent", member)
	}
	return value, nil // not redacted: data may contain a short password by chance
}

// LedgerEnd returns the offset of the last update that the participant has; 0 where it has none. The error is
// ledger.ErrNotOffered where the server does not return it.
func (c *Client) LedgerEnd(ctx context.Context) (ledger.Offset, error) {
	s, err := c.server(ctx)
	if err != nil {
		return 0, err
	}
	if !s.LedgerEnd {
		return 0, ledger.ErrNotOffered
	}
	end, err := c.ledgerEnd(ctx)
	if err != nil {
		return 0, c.explain(ctx, err, purpose{server: s})
	}
	return end, nil
}

func (c *Client) ledgerEnd(ctx context.Context) (ledger.Offset, error) {
	const operation = "ledger-end"
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathLedgerEnd, MaxBytes: tinyBody})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Offset *ledger.Offset `json:"offset"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return 0, c.misread(operation, a, err)
	}
	if answer.Offset == nil || *answer.Offset < 0 {
		return 0, fmt.Errorf("%s: the answer holds no offset: %q", operation, c.clean(string(a.Body)))
	}
	return *answer.Offset, nil
}

// PrunedOffset returns the offset up to which (inclusive) the participant has pruned its ledger; 0: it has not. The
// error is ledger.ErrNotOffered where the server does not return it, a *ledger.Problem where the user is refused, and
// an *Error, which may be tried again, for the rest. LedgerEnd returns the same errors.
func (c *Client) PrunedOffset(ctx context.Context) (ledger.Offset, error) {
	const operation = "pruned-offsets"
	a, err := c.do(ctx, jsonhttp.Request{Operation: operation, Path: pathPrunedOffsets, MaxBytes: tinyBody})
	if err != nil {
		return 0, c.explain(ctx, err, purpose{})
	}
	var answer struct {
		Offset ledger.Offset `json:"participantPrunedUpToInclusive"` // absent: not pruned
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return 0, c.misread(operation, a, err)
	}
	return answer.Offset, nil
}
