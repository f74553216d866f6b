package scan

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Only this file decides what an error of a Scan service means: trying again may help, an operator must act, or the
// server can't do what was asked. jsonhttp.Client.Explain has what means the same of every server.

// purpose is what a request was for. It decides what a failure means.
type purpose struct {
	method, path string
	cursor       string // the event id after which the page begins; empty: none was sent
	record       string // names the first requested record or update in errors; empty: the request was not for the history
	id           string // of the update that is looked up; empty: none is
}

// explain gives an error its meaning and cure. It returns an error unchanged that is not an *Error.
func (c *Client) explain(err error, q purpose) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	act := func(what, do string) error { return &ledger.Problem{What: what, Do: do, Err: err} }
	switch what, do, common := c.http.Explain(&e.Failure); {
	case do != "":
		return act(what, do)
	case what != "":
		return fmt.Errorf("%s: %w", what, err)
	case common:
		return err
	}
	switch {
	case e.Status == http.StatusUnauthorized:
		what, do := c.access.Refusal("the Scan service", e.token)
		if do == "" {
			return fmt.Errorf("%s: %w", what, err)
		}
		return act(what, do+"; a Scan service itself wants neither, so a proxy before it does")
	case e.Status == http.StatusForbidden:
		const what = "the server refuses access, which a Scan service does to nobody: a proxy before it does"
		const do = "ask who runs the service to let this machine in (most go by its address), or see what its token must " +
			"be allowed"
		if c.reached.Load() { // the reason may be too many requests, which passes
			return fmt.Errorf("%s; it let requests through before, so it is asked again. If it continues, %s: %w", what, do, err)
		}
		return act(what, do)
	case q.id != "" && e.Status == http.StatusNotFound && strings.Contains(e.Message, q.id):
		return fmt.Errorf("%w: %w", ledger.ErrNotFound, err)
	case e.notOffered():
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
		do := "report what it says"
		if !strings.HasPrefix(q.path, pathUpdates) {
			do = "see that --scan-url is a Scan service of Splice 0.6 or earlier; if it is, " + do
		}
		return act("the Scan service refuses the request as invalid", do)
	}
	return err
}

// explainMissing explains an operation that is not there. A Scan service sends its error object. Anything else is a
// proxy that finds nothing behind it: for a while, if the history was there before, or because the URL is wrong.
func (c *Client) explainMissing(e *Error, err error, q purpose) error {
	at := q.method + " " + c.http.URL().JoinPath(q.path).String()
	switch {
	case e.Message != "":
		return fmt.Errorf("%w: %s: %w", ledger.ErrNotOffered, at, err)
	case q.record != "" && c.served.Load():
		return fmt.Errorf("%s was there before, and what answers now is not a Scan service: %w", at, err)
	}
	return fmt.Errorf("%w: %s, and what answers does not speak as a Scan service; is --scan-url the base of one, such as "+
		"https://scan.example.com/api/scan? %w", ledger.ErrNotOffered, at, err)
}
