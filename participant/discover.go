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

	"ledgerindexer/ledger"
)

// The paths of the API that are used. The flats path is interface.md's and ends with 3.5, the pages begin with it.
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

// Server is what was found out about the server.
type Server struct {
	Version       string // empty: the server does not say
	ParticipantID string // empty: does not say, or not to this user (older servers tell administrators only)
	UpdatesPath   string // of bounded reads, such as /v2/updates/get-updates-page
	TailPath      string // of open-ended reads
	SnapshotPath  string // empty: there is no snapshot
	LedgerEnd     bool   // it tells the ledger end
}

// Discover finds out what the server has by asking for next to nothing, and logs it. It is to be called before
// anything else; where it was not, or where a path has gone since (a server was upgraded), the next read does it.
//
// A server that has nothing but the operations of interface.md works too: it tells no ledger end and no identity.
// Errors: a *ledger.Problem where there is no update stream at the URL, where the rights are missing, or where
// another participant answers than the one that was found first.
func (c *Client) Discover(ctx context.Context) (Server, error) {
	if err := c.take(ctx); err != nil {
		return Server{}, err
	}
	defer c.give()
	return c.discover(ctx)
}

// server is what Discover found; it discovers where nothing is known.
func (c *Client) server(ctx context.Context) (*Server, error) {
	if s := c.found.Load(); s != nil {
		return s, nil
	}
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	defer c.give()
	if s := c.found.Load(); s != nil {
		return s, nil // somebody else was faster
	}
	if _, err := c.discover(ctx); err != nil {
		return nil, err
	}
	return c.found.Load(), nil
}

func (c *Client) discover(ctx context.Context) (Server, error) {
	s, err := c.probe(ctx)
	if err != nil {
		return Server{}, fmt.Errorf("find out what the participant offers: %w", c.explain(ctx, err, asked{about: aboutPaths, need: c.ofScope()}))
	}
	if s.UpdatesPath == "" {
		err := fmt.Errorf("there is no update stream at %s", c.http.URL())
		if c.met.Load() {
			return Server{}, fmt.Errorf("%w any more", err) // a proxy may say so while the server is away
		}
		return Server{}, &ledger.Problem{
			What: err.Error(),
			Do:   "check --ledger-url: it must be the base of the participant's JSON API, with its path prefix where it has one",
		}
	}
	if strings.HasPrefix(s.Version, "3.3.") && c.scope.Shape == ledger.ShapeLedgerEffects {
		return Server{}, &ledger.Problem{
			What: fmt.Sprintf("the participant has version %s, which does not say which of the contracts it shows with "+
				"--shape %s are active", s.Version, ledger.ShapeLedgerEffects),
			Do: fmt.Sprintf("use --shape %s, or a participant of 3.4 or later", ledger.ShapeACSDelta),
		}
	}
	if c.first == "" {
		c.first = s.ParticipantID
	}
	c.found.Store(&s)
	c.met.Store(true)
	if s != c.logged {
		c.log.InfoContext(ctx, "participant found", "version", c.redact(s.Version), "participant_id", c.redact(s.ParticipantID),
			"updates_path", s.UpdatesPath, "tail_path", s.TailPath, "snapshot_path", s.SnapshotPath, "ledger_end", s.LedgerEnd)
		c.logged = s
	}
	return s, nil
}

// lost forgets the paths after a server said that it has not (any longer) the one that was used.
func (c *Client) lost(s *Server, err error) error {
	c.found.CompareAndSwap(s, nil)
	return fmt.Errorf("the server no longer has what it had; what it has is found out again with the next read: %w", err)
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
	group.Go(func() { s.LedgerEnd, end = c.tellsEnd(ctx) })
	had := c.logged
	group.Go(func() {
		s.UpdatesPath, bounded = c.firstOf(ctx, had.UpdatesPath, pathUpdatesPage, pathUpdatesFlats, pathUpdates)
	})
	group.Go(func() { s.TailPath, tail = c.firstOf(ctx, had.TailPath, pathUpdates, pathUpdatesFlats) }) // pages have an end; of the two, updates stays
	group.Go(func() { s.SnapshotPath, snapshot = c.firstOf(ctx, had.SnapshotPath, pathSnapshotPage, pathSnapshot) })
	group.Wait()
	if had.SnapshotPath == "" && refusedOnTheWay(snapshot) {
		snapshot = nil // there can be updates without
	}
	if s.TailPath == "" {
		s.UpdatesPath = ""
	}
	return s, cmp.Or(end, bounded, tail, snapshot)
}

// tellsEnd says whether the server tells its ledger end. What a gateway refuses that was never there counts as absent, as
// in firstOf.
func (c *Client) tellsEnd(ctx context.Context) (bool, error) {
	_, err := c.ledgerEnd(ctx)
	if lacksPath(err) || refusedOnTheWay(err) && !c.logged.LedgerEnd {
		return false, nil
	}
	return err == nil, err
}

// firstOf is the first of several paths that the server has; empty: it has none. Some gateways answer 403 to every path
// that they don't know, so what is refused on the way counts as absent; where nothing else is there either, the refusal is
// the error. A path that was there before is still there: to do without it would last longer than the refusal may.
func (c *Client) firstOf(ctx context.Context, before string, paths ...string) (string, error) {
	var refused error
	for _, path := range paths {
		switch has, err := c.has(ctx, path); {
		case refusedOnTheWay(err) && path != before:
			refused = err
		case err != nil:
			return "", err
		case has:
			return path, nil
		}
	}
	return "", refused
}

// has asks for at most one element between the offsets 0 and 1, or of the empty snapshot at 0. Whatever the server
// finds wrong with that: it has the path.
func (c *Client) has(ctx context.Context, path string) (bool, error) {
	r := request{operation: "discover", path: path}
	one := url.Values{"limit": {"1"}}
	end := ledger.Offset(1)
	switch path {
	case pathUpdatesPage:
		r.body = updatesPageRequest{Begin: 0, End: end, MaxPageSize: 1, UpdateFormat: c.format.update}
	case pathSnapshotPage:
		r.body = snapshotPageRequest{ActiveAt: 0, MaxPageSize: 1, EventFormat: c.format.event}
	case pathSnapshot:
		r.query, r.body = one, SnapshotRequest{ActiveAtOffset: 0, EventFormat: c.format.event}
	default:
		r.query, r.body = one, UpdatesRequest{BeginExclusive: 0, EndInclusive: &end, UpdateFormat: c.format.update}
	}
	_, err := c.do(ctx, r)
	return present(err)
}

// present says whether the server has the operation that was asked for next to nothing, by the error that came.
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
	case e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout && e.Status != http.StatusTooManyRequests:
		return true, nil
	}
	return false, err
}

// text reads one member of an object; empty where the server does not have the path or keeps it to itself.
func (c *Client) text(ctx context.Context, operation, path, member string) (string, error) {
	a, err := c.do(ctx, request{operation: operation, path: path, limit: tinyBody})
	var e *Error
	switch {
	case refusedOnTheWay(err) && c.answeredBefore(err): // it passes, and says nothing of who is there
		return "", err
	case errors.As(err, &e) && (e.pathMissing() || e.Status == http.StatusNotFound || e.Status == http.StatusForbidden):
		return "", nil
	case err != nil:
		return "", err
	}
	var told map[string]any
	if err := json.Unmarshal(a.Body, &told); err != nil {
		return "", c.misread(operation, a, err)
	}
	value, _ := told[member].(string)
	if c.access.Repeats(value) {
		return "", misled(operation, "the answer's %s holds a secret that was sent", member)
	}
	return value, nil // not redacted: it is data, and a password may be part of it by chance
}

// LedgerEnd is the offset of the last update that the participant has; 0 where it has none. It returns
// ledger.ErrNotOffered where the server does not tell.
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
		return 0, c.explain(ctx, err, asked{server: s})
	}
	return end, nil
}

func (c *Client) ledgerEnd(ctx context.Context) (ledger.Offset, error) {
	const operation = "ledger-end"
	a, err := c.do(ctx, request{operation: operation, path: pathLedgerEnd, limit: tinyBody})
	if err != nil {
		return 0, err
	}
	var told struct {
		Offset *ledger.Offset `json:"offset"`
	}
	if err := json.Unmarshal(a.Body, &told); err != nil {
		return 0, c.misread(operation, a, err)
	}
	if told.Offset == nil || *told.Offset < 0 {
		return 0, fmt.Errorf("%s: the answer holds no offset: %q", operation, c.clean(string(a.Body)))
	}
	return *told.Offset, nil
}

// PrunedOffset is the offset up to which (inclusive) the participant has pruned its ledger; 0: it has not. It
// returns ledger.ErrNotOffered where the server does not tell, a *ledger.Problem where the user is not let in, and
// an *Error, which may be tried again, for the rest. LedgerEnd does the same.
func (c *Client) PrunedOffset(ctx context.Context) (ledger.Offset, error) {
	const operation = "pruned-offsets"
	a, err := c.do(ctx, request{operation: operation, path: pathPrunedOffsets, limit: tinyBody})
	if err != nil {
		return 0, c.explain(ctx, err, asked{})
	}
	var told struct {
		Offset ledger.Offset `json:"participantPrunedUpToInclusive"` // absent: not pruned
	}
	if err := json.Unmarshal(a.Body, &told); err != nil {
		return 0, c.misread(operation, a, err)
	}
	return told.Offset, nil
}
