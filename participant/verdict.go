package participant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Only this file and codes.go decide what an error of a participant means; jsonhttp.Client.Explain has what means the
// same of every server.

// verdict is what an error means for the caller.
type verdict int

const (
	again     verdict = iota // the error may be temporary: the caller gets the *Error and may try again
	act                      // an operator must act: a *ledger.Problem
	bug                      // the request should never have been sent: a *ledger.Bug
	absent                   // the requested item does not exist: ledger.ErrNotFound
	unoffered                // the server does not have the operation: ledger.ErrNotOffered
)

// ruling is a verdict with its explanation. With verdict again, what may be empty: the server's message is enough.
type ruling struct {
	verdict verdict
	what    string // what happened, to what
	do      string // what the operator is to do; of act only
}

// subject is what a request was about.
type subject int

const (
	aboutServer   subject = iota // the server itself
	aboutPaths                   // the paths that it has
	aboutUpdates                 // updates after an offset
	aboutSnapshot                // the snapshot at an offset
	aboutContract                // one contract
	aboutUpdate                  // one update
	aboutVetting                 // vetted packages
	aboutPackage                 // the content of one package
	aboutUser                    // the token's user
	aboutRequest                 // a request as its caller wrote it
)

// purpose is what a request was for. It decides what a failure means, because servers use one code for several causes.
type purpose struct {
	about  subject
	need   right         // what the token's user must be allowed to do
	server *Server       // has the path, and is discovered again if the path is gone; nil: not a discovered path
	offset ledger.Offset // of updates and snapshots
	token  ledger.Token  // from which a snapshot was continued
}

// explain adds meaning and cure to an *Error. It returns other errors, and those explained before, unchanged.
func (c *Client) explain(ctx context.Context, err error, q purpose) error {
	var e *Error
	if !errors.As(err, &e) || explained(err) {
		return err
	}
	if e.Status == http.StatusForbidden && q.about != aboutRequest {
		return c.judgeRefusal(ctx, err, q)
	}
	if e.pathMissing() && q.server != nil {
		return c.pathGone(q.server, err)
	}
	return c.judge(e, q).of(err)
}

func explained(err error) bool {
	var (
		problem *ledger.Problem
		bugged  *ledger.Bug
		passing *hint
	)
	return errors.As(err, &problem) || errors.As(err, &bugged) || errors.As(err, &passing) ||
		errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrNotOffered)
}

// hint is an error with verdict again, with an explanation.
type hint struct {
	what string
	err  error
}

func (h *hint) Error() string { return h.what + ": " + h.err.Error() }
func (h *hint) Unwrap() error { return h.err }

// of wraps an error, which may be nil, as its verdict requires.
func (r ruling) of(err error) error {
	switch {
	case r.verdict == act:
		return &ledger.Problem{What: r.what, Do: r.do, Err: err}
	case r.verdict == bug:
		return &ledger.Bug{What: r.what, Err: err}
	case r.verdict == absent:
		return fmt.Errorf("%w: %w", ledger.ErrNotFound, err)
	case r.verdict == unoffered:
		return fmt.Errorf("%w: %w", ledger.ErrNotOffered, err)
	case r.what != "":
		return &hint{r.what, err}
	}
	return err
}

// judge rules on an error, by the most specific evidence first: connection, subject of the request, code, status, and
// last the server's error category.
func (c *Client) judge(e *Error, q purpose) ruling {
	if what, do, ok := c.http.Explain(&e.Failure); ok {
		if do == "" {
			return ruling{what: what}
		}
		return ruling{act, what, do}
	}
	switch q.about {
	case aboutUpdates:
		if r, ok := c.judgeUpdates(e, q.offset); ok {
			return r
		}
	case aboutSnapshot:
		if r, ok := c.judgeSnapshot(e, q.offset, q.token); ok {
			return r
		}
	case aboutPackage:
		if e.Status == http.StatusNotFound && !e.pathMissing() {
			return ruling{verdict: absent}
		}
	case aboutUser:
		if e.Status == http.StatusBadRequest {
			return ruling{verdict: unoffered} // a participant without authentication does not know which user asks
		}
	case aboutRequest:
		return c.judgeRequest(e)
	}
	if r, ok := rulings[e.Code]; ok {
		return r
	}
	switch {
	case e.unauthenticated():
		return c.judgeToken(e)
	case e.Status == http.StatusRequestEntityTooLarge:
		return tooLarge
	case errors.Is(e, jsonhttp.ErrTooLarge):
		return tooMuch(q.about)
	case e.pathMissing():
		return ruling{verdict: unoffered}
	case e.invalid():
		return invalid(q.about)
	}
	return tryAgain
}

// judgeRefusal rules on a refusal of access. A participant refuses if a right is missing. A proxy has other reasons,
// such as too many requests: once the participant was reached through it, the request is retried. A proxy may also
// block an operation for everybody, so one that was neither discovered nor answered yet counts as not offered.
func (c *Client) judgeRefusal(ctx context.Context, err error, q purpose) error {
	switch {
	case !refusedByProxy(err):
		return c.forbidden(ctx, err, q.need)
	case c.reached.Load() && !c.answeredBefore(err) && q.server == nil && q.about != aboutPaths &&
		q.about != aboutSnapshot:
		return ruling{verdict: unoffered}.of(err)
	case c.reached.Load():
		return ruling{what: proxyRefusal.what + "; it let requests through before, so it is asked again. If it continues, " +
			proxyRefusal.do}.of(err)
	}
	return proxyRefusal.of(err)
}

// answeredBefore reports whether the error's operation has been answered before.
func (c *Client) answeredBefore(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	_, before := c.answered.Load(e.Operation)
	return before
}

// refusedByProxy reports whether an error is a refusal by a proxy: a participant's refusal has a code.
func refusedByProxy(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusForbidden && e.Code == ""
}

var proxyRefusal = ruling{act, "the server refuses access, and not as a participant does: a proxy before it may be " +
	"what refuses",
	"see what stands between here and --ledger-url, and what it wants (an address, a path, a token)"}

// judgeToken rules on a refused token, after a fresh one was tried.
func (c *Client) judgeToken(e *Error) ruling {
	what, do := c.access.Refusal("the participant", e.token)
	if do == "" {
		return ruling{what: what}
	}
	return ruling{act, what, do}
}

// judgeRequest rules on a request as its caller wrote it. Of that the server's words say enough, if they are its own.
func (c *Client) judgeRequest(e *Error) ruling {
	switch {
	case e.unauthenticated():
		return c.judgeToken(e)
	case refusedByProxy(e):
		return proxyRefusal
	case e.Status == http.StatusForbidden:
		return ruling{act, "the participant does not let the token's user ask for this",
			"grant the user what the request needs: to read as each party that it names, or as any party where it names none"}
	case e.pathMissing():
		return ruling{act, "the server does not offer this", "see in docs/interface.md which release has which path, and " +
			"that --ledger-url is the base of the participant's JSON API, with its path prefix where it has one"}
	case e.Status == http.StatusRequestEntityTooLarge, errors.Is(e, jsonhttp.ErrTooLarge):
		return tooMuch(aboutRequest)
	case e.Status == http.StatusNotFound:
		return ruling{verdict: absent}
	case e.Status == http.StatusBadRequest:
		return ruling{act, "the participant refuses the request", "correct the path, its query or the body"}
	}
	return tryAgain
}

// judgeUpdates rules on reading updates after an offset.
func (c *Client) judgeUpdates(e *Error, after ledger.Offset) (ruling, bool) {
	switch {
	case e.Code == codePruned:
		if upTo, ok := e.earliest(); ok {
			return prunedUpdates(after, upTo), true
		}
		return ruling{act, fmt.Sprintf("the participant has pruned updates above offset %d", after), reseed}, true
	case e.Code == codeAfterLedgerEnd:
		return ruling{act,
			fmt.Sprintf("the participant's ledger ends below an offset that it had before (reading after offset %d)", after),
			"the participant was restored from an older backup, or --ledger-url is another participant: " +
				"connect to the right one; if the backup is to stay, run `indexer reanchor`"}, true
	case errors.Is(e, jsonhttp.ErrTooLarge):
		return ruling{act,
			fmt.Sprintf("the update after offset %d is larger than what is read of an answer", after),
			"narrow what is read with --templates or --parties, or leave out --blobs"}, true
	}
	return ruling{}, false
}

// prunedUpdates returns the ruling where the participant no longer has the updates right after an offset.
func prunedUpdates(after, upTo ledger.Offset) ruling {
	return ruling{act, fmt.Sprintf("the participant is pruned up to offset %d, and updates after offset %d are needed",
		upTo, after), reseed}
}

// judgeSnapshot rules on reading the snapshot at an offset, from its beginning or from a token.
func (c *Client) judgeSnapshot(e *Error, at ledger.Offset, token ledger.Token) (ruling, bool) {
	switch {
	case e.Status == http.StatusMethodNotAllowed && token.Kind == ledger.TokenPage:
		return ruling{act, fmt.Sprintf("the snapshot was begun with %s, and a GET's body does not come through to the "+
			"server any more",
			getSnapshotPage), "see what stands between here and --ledger-url, or begin the snapshot again with --restart"}, true
	case e.pathMissing() && token.Value != "":
		return ruling{act, fmt.Sprintf("the snapshot was begun with %s, which the server does not have",
			snapshotPath(token.Kind)),
			"begin the snapshot again with --restart"}, true
	case e.Code == codePruned:
		return prunedSnapshot(e, at, token), true
	case e.Code == codeAfterLedgerEnd:
		return ruling{act, fmt.Sprintf("offset %d is above the ledger end", at),
				"choose an --at-offset at or below the ledger end; if it was below before, --ledger-url may be another " +
					"participant"},
			true
	case token.Value != "" && e.aboutToken():
		return ruling{act, "the server refuses the token from which the snapshot was to be continued",
				"a token is only good with the same participant, server version, scope (--parties, --templates, --interfaces, " +
					"--blobs) and --at-offset, and while the participant is not pruned above it: restore these, or begin again with " +
					"--restart"},
			true
	case errors.Is(e, jsonhttp.ErrTooLarge):
		return ruling{act, "one entry of the snapshot is larger than what is read of an answer",
			"narrow what is read with --templates or --parties, or leave out --blobs"}, true
	}
	return ruling{}, false
}

// prunedSnapshot distinguishes the two causes of one error code (interface.md, endpoint 1, rule 1).
func prunedSnapshot(e *Error, at ledger.Offset, token ledger.Token) ruling {
	const (
		another = "choose the ledger end or another offset with --at-offset, or wait until the reassignments are completed " +
			"and try again"
		higher = "choose the ledger end or an --at-offset at or above the offset up to which it is pruned"
	)
	restart := ""
	if token.Value != "" {
		restart = "; begin again with --restart"
	}
	upTo, known := e.earliest()
	switch {
	case known && upTo > at:
		return ruling{act, fmt.Sprintf("the participant is pruned up to offset %d, above the snapshot's offset %d", upTo, at),
			higher + restart}
	case known:
		return ruling{act, fmt.Sprintf("reassignments are in flight at offset %d, and the participant has pruned what is "+
			"needed to show them", at),
			another + restart}
	}
	return ruling{act,
		fmt.Sprintf("the participant can't serve the snapshot at offset %d: either it is pruned above that, or "+
			"reassignments are in flight at it", at),
		higher + "; or, where reassignments are in flight, wait until they are completed" + restart}
}

// aboutToken reports whether a request with a continuation token was refused because of it.
func (e *Error) aboutToken() bool {
	if e.Status != http.StatusBadRequest {
		return false
	}
	switch e.Code {
	case "INVALID_CONTINUATION_TOKEN", "INVALID_ACS_PAGE_TOKEN":
		return true
	case "INVALID_FIELD", "INVALID_ARGUMENT":
		return strings.Contains(strings.ToLower(e.Cause), "token")
	case "":
		// A token that is not Base64 makes the whole body undecodable. The server accepted the rest with the first page.
		return e.unreadable()
	}
	return false
}

// unreadable reports whether the server could not parse the request: then it answers in plain text.
func (e *Error) unreadable() bool {
	return e.Status == http.StatusBadRequest && strings.HasPrefix(e.Body, "Invalid value")
}
