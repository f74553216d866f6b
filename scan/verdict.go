package scan

import (
	"errors"
	"fmt"
	"net/http"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

// This file is the one place where it is decided what an error means: whether trying again may help, an operator must
// act, or the server can't do what was asked.

// asked says what a request was for, as far as it decides what its failure means.
type asked struct {
	method, path string
	cursor       string // the event id to read on after; empty: none was sent
	record       string // how the history calls a single one of what was asked for; empty: it was not the history
}

// explain says what an error means and what to do about it. An error that is none of ours is returned as it is.
func (c *Client) explain(err error, q asked) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	var strange *jsonhttp.NotJSONError
	act := func(what, do string) error { return &ledger.Problem{What: what, Do: do, Err: err} }
	switch {
	case e.Status == 0:
		return c.explainConnection(err)
	case errors.As(e, &strange):
		if !strange.Stays { // no service says such a thing
			return err
		}
		return act(fmt.Sprintf("what answers %s is no JSON, and for %v it was the same bytes at every try", strange.Asked, jsonhttp.SameBytes),
			"see what stands between here and --scan-url, and that it is the base of a Scan service")
	case e.Status == http.StatusUnauthorized:
		what, do := c.access.Refusal("the Scan service", e.token)
		if do == "" {
			return fmt.Errorf("%s: %w", what, err)
		}
		return act(what, do+"; a Scan service itself wants neither, so a proxy before it does")
	case e.Status == http.StatusForbidden:
		const what = "the server refuses access, which a Scan service does to nobody: a proxy before it does"
		const do = "ask who runs the service to let this machine in (most go by its address), or see what its token must be allowed"
		if c.met.Load() { // such as for too many requests, which passes
			return fmt.Errorf("%s; it let requests through before, so it is asked again. If it goes on, %s: %w", what, do, err)
		}
		return act(what, do)
	case e.PathMissing():
		return c.explainMissing(e, err, q)
	case q.record != "" && errors.Is(e, jsonhttp.ErrTooLarge):
		return act(q.record+" is larger than what is read of an answer",
			"see what the service answers: no real record is as large")
	case q.record != "" && e.Status == http.StatusRequestEntityTooLarge:
		return act("the server says that the request or its answer is too large, even for a single record",
			"raise the limit of the Scan service, or of a proxy before it")
	case q.cursor != "" && e.Status == http.StatusInternalServerError:
		return fmt.Errorf("%w: %w", ledger.ErrCursorRefused, err)
	case e.Status == http.StatusBadRequest && e.Message != "":
		return act("the Scan service refuses the request as invalid",
			"see that --scan-url is a Scan service of Splice 0.6 or earlier; if it is, report what it says")
	}
	return err
}

// explainConnection is about a server that did not answer. Certificates and authorities that don't fit are a matter of
// configuration as long as nothing has been heard of the server. Once it has answered, its certificate or ours is being
// replaced, and that passes.
func (c *Client) explainConnection(err error) error {
	var refused *access.TLSError
	if !errors.As(err, &refused) {
		return err
	}
	if refused.Configured && !c.http.Answered() {
		return &ledger.Problem{What: refused.What, Do: refused.Do, Err: err}
	}
	return fmt.Errorf("%s; %s: %w", refused.What, refused.Do, err)
}

// explainMissing is about a server that does not have the path. A Scan service says so in its own words. What does not is
// a proxy that finds nothing behind it: for a while, where the history was there before, or because the URL is wrong.
func (c *Client) explainMissing(e *Error, err error, q asked) error {
	at := q.method + " " + c.http.URL().JoinPath(q.path).String()
	switch {
	case e.Message != "":
		return fmt.Errorf("%w: %s: %w", ledger.ErrNotOffered, at, err)
	case q.record != "" && c.served.Load():
		return fmt.Errorf("%s was there before, and what answers now is no Scan service: %w", at, err)
	}
	return fmt.Errorf("%w: %s, and what answers does not speak as a Scan service; is --scan-url the base of one, such as "+
		"https://scan.example.com/api/scan? %w", ledger.ErrNotOffered, at, err)
}
