package participant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

// This file and codes.go are the one place where it is decided what an error means: whether trying again may help,
// an operator must act, the request should never have been sent, or the error is the answer.

// verdict is what an error means for who made the request.
type verdict int

const (
	again     verdict = iota // it may pass: the *Error is the caller's, who may try again
	act                      // an operator must act: a *ledger.Problem
	bug                      // it should never have been asked: a *ledger.Bug
	absent                   // there is no such thing: ledger.ErrNotFound
	unoffered                // the server can't do this: ledger.ErrNotOffered
)

// ruling is a verdict and its reasons. For again, what may be empty: the server's words are all there is to say.
type ruling struct {
	verdict verdict
	what    string // what happened, to what
	do      string // what the operator is to do; of act only
}

// subject is what a request was about.
type subject int

const (
	aboutServer   subject = iota // what the server is and has
	aboutPaths                   // which paths it has
	aboutUpdates                 // updates after an offset
	aboutSnapshot                // the snapshot at an offset
	aboutContract                // one contract
	aboutUpdate                  // one update
	aboutVetting                 // vetted packages
	aboutUser                    // whose token it is
)

// asked says what a request was for, as far as it decides what its failure means: servers use one code for many things.
type asked struct {
	about  subject
	need   right         // what the token's user must be allowed
	server *Server       // whose path was asked, so that one that is gone is looked for again; nil: it was not discovered
	offset ledger.Offset // of updates and snapshots
	token  ledger.Token  // from which a snapshot was continued
}

// explain says what an error means and what to do about it. An error that is none of ours, or was explained before, is
// returned as it is.
func (c *Client) explain(ctx context.Context, err error, q asked) error {
	var e *Error
	if !errors.As(err, &e) || explained(err) {
		return err
	}
	if e.Status == http.StatusForbidden {
		return c.judgeRefusal(ctx, err, q)
	}
	if e.pathMissing() && q.server != nil {
		return c.lost(q.server, err)
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

// hint is an error that may pass, and what is known about it.
type hint struct {
	what string
	err  error
}

func (h *hint) Error() string { return h.what + ": " + h.err.Error() }
func (h *hint) Unwrap() error { return h.err }

// of gives an error, which may be nil, the form of its verdict.
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

// judge decides. What is said first is what is most certain: how the connection went, then what the request was about,
// then the code, the status, and at last the kind of error that the server says it is.
func (c *Client) judge(e *Error, q asked) ruling {
	if e.Status == 0 {
		return c.judgeConnection(e)
	}
	if strange := (*jsonhttp.NotJSONError)(nil); errors.As(e, &strange) {
		return judgeNotJSON(strange)
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
	case aboutUser:
		if e.Status == http.StatusBadRequest {
			return ruling{verdict: unoffered} // a participant that authenticates nobody has users, but can't say which of them asks
		}
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
	return ruling{}
}

// judgeConnection is about a server that did not answer. Certificates and authorities that don't fit are a matter of
// configuration as long as nothing has been heard of the server: trying again would hide a wrong flag in the log. Once
// it has answered, its certificate or ours is being replaced, one side before the other, and that passes: our files
// are read again. A certificate that has expired is renewed by whoever runs the server, with nothing to do here.
func (c *Client) judgeConnection(e *Error) ruling {
	var refused *access.TLSError
	if !errors.As(e, &refused) {
		return ruling{}
	}
	if refused.Configured && !c.http.Answered() {
		return ruling{act, refused.What, refused.Do}
	}
	return ruling{what: refused.What + "; " + refused.Do}
}

// judgeNotJSON is about an answer of success that is no JSON. No participant says such a thing, so it passes, unless
// something stands in the way for good.
func judgeNotJSON(e *jsonhttp.NotJSONError) ruling {
	if !e.Stays {
		return ruling{}
	}
	return ruling{act, fmt.Sprintf("what answers %s is no JSON, and for %v it was the same bytes at every try", e.Asked, jsonhttp.SameBytes),
		"see what stands between here and --ledger-url, and that it is the base of the participant's JSON API"}
}

// judgeRefusal is about a server that refuses access. A participant does so where a right is missing. What is before it has
// reasons of its own, such as too many requests: once the participant was found there, that passes. An operation that was
// neither looked for nor answered yet may as well be one that it does not let anybody have.
func (c *Client) judgeRefusal(ctx context.Context, err error, q asked) error {
	switch {
	case !refusedOnTheWay(err):
		return c.forbidden(ctx, err, q.need)
	case c.met.Load() && !c.answeredBefore(err) && q.server == nil && q.about != aboutPaths && q.about != aboutSnapshot:
		return ruling{verdict: unoffered}.of(err)
	case c.met.Load():
		return ruling{what: refusalOnTheWay.what + "; it let requests through before, so it is asked again. If it goes on, " +
			refusalOnTheWay.do}.of(err)
	}
	return refusalOnTheWay.of(err)
}

// answeredBefore says whether the operation of an error was answered once.
func (c *Client) answeredBefore(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	_, before := c.answered.Load(e.Operation)
	return before
}

// refusedOnTheWay says whether an error is a refusal that is not a participant's, which has a code.
func refusedOnTheWay(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusForbidden && e.Code == ""
}

var refusalOnTheWay = ruling{act, "the server refuses access, and not as a participant does: a proxy before it may be what refuses",
	"see what stands between here and --ledger-url, and what it wants (an address, a path, a token)"}

// judgeToken is about a server that wants another token, when a fresh one has been tried already.
func (c *Client) judgeToken(e *Error) ruling {
	what, do := c.access.Refusal("the participant", e.token)
	if do == "" {
		return ruling{what: what}
	}
	return ruling{act, what, do}
}

// judgeUpdates is about reading updates after an offset.
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
				"connect to the right one, or re-seed an empty database with `backfill`"}, true
	case errors.Is(e, jsonhttp.ErrTooLarge):
		return ruling{act,
			fmt.Sprintf("the update after offset %d is larger than what is read of an answer", after),
			"narrow what is read with --templates or --parties, or leave out --blobs"}, true
	}
	return ruling{}, false
}

// prunedUpdates: the participant does not have the updates right after an offset any more.
func prunedUpdates(after, upTo ledger.Offset) ruling {
	return ruling{act, fmt.Sprintf("the participant is pruned up to offset %d, and updates after offset %d are needed", upTo, after), reseed}
}

// judgeSnapshot is about reading the snapshot at an offset, from its beginning or on from a token.
func (c *Client) judgeSnapshot(e *Error, at ledger.Offset, token ledger.Token) (ruling, bool) {
	switch {
	case e.pathMissing() && token.Value != "":
		return ruling{act, fmt.Sprintf("the snapshot was begun with %s, which the server does not have", snapshotPath(token.Kind)),
			"begin the snapshot again with --restart"}, true
	case e.Code == codePruned:
		return prunedSnapshot(e, at, token), true
	case e.Code == codeAfterLedgerEnd:
		return ruling{act, fmt.Sprintf("offset %d is above the ledger end", at),
			"choose an --at-offset at or below the ledger end; if it was below before, --ledger-url may be another participant"}, true
	case token.Value != "" && e.aboutToken():
		return ruling{act, "the server refuses the token from which the snapshot was to be continued",
			"a token is only good with the same participant, server version, scope (--parties, --templates, --interfaces, --blobs) " +
				"and --at-offset, and while the participant is not pruned above it: restore these, or begin again with --restart"}, true
	case errors.Is(e, jsonhttp.ErrTooLarge):
		return ruling{act, "one entry of the snapshot is larger than what is read of an answer",
			"narrow what is read with --templates or --parties, or leave out --blobs"}, true
	}
	return ruling{}, false
}

// prunedSnapshot tells the two causes of one error code apart (interface.md, endpoint 1, rule 1).
func prunedSnapshot(e *Error, at ledger.Offset, token ledger.Token) ruling {
	const (
		another = "choose the ledger end or another offset with --at-offset, or wait until the reassignments are completed and try again"
		higher  = "choose the ledger end or an --at-offset at or above the offset up to which it is pruned"
	)
	restart := ""
	if token.Value != "" {
		restart = "; begin again with --restart"
	}
	upTo, known := e.earliest()
	switch {
	case known && upTo > at:
		return ruling{act, fmt.Sprintf("the participant is pruned up to offset %d, above the snapshot's offset %d", upTo, at), higher + restart}
	case known:
		return ruling{act, fmt.Sprintf("reassignments are in flight at offset %d, and the participant has pruned what is needed to show them", at),
			another + restart}
	}
	return ruling{act,
		fmt.Sprintf("the participant can't serve the snapshot at offset %d: either it is pruned above that, or reassignments are in flight at it", at),
		higher + "; or, where reassignments are in flight, wait until they are completed" + restart}
}

// aboutToken says whether a request with a continuation token was refused because of it.
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
		// A token that is not Base64 makes the whole body undecodable. The rest of it was good for the first page.
		return e.unreadable()
	}
	return false
}

// unreadable says that the server could not read the request, which it tells as text.
func (e *Error) unreadable() bool {
	return e.Status == http.StatusBadRequest && strings.HasPrefix(e.Body, "Invalid value")
}
