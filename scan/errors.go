package scan

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
)

// Error is a request that brought no usable answer. What it means, and whether trying again may help, is decided in
// verdict.go: a *ledger.Problem is wrapped around what stays as it is.
type Error struct {
	Operation  string        // as told to Config.Observe
	Status     int           // HTTP status; 0: no answer. 200: an answer that could not be used, see Err
	Message    string        // the server's sentence, from its {"error": "…"}; may be empty
	Body       string        // beginning of an answer that is not of that form
	RetryAfter time.Duration // how long the server asks to wait; 0: it does not say
	Err        error         // what went wrong where there was no answer, or where it could not be used; else nil

	location string // where the server redirects to
	token    string // what the refused token says of itself; empty where none was refused
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Operation)
	if e.Status != 0 && e.Status != http.StatusOK {
		b.WriteString(strings.TrimRight(fmt.Sprintf(": HTTP status %d %s", e.Status, http.StatusText(e.Status)), " "))
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.location != "" {
		b.WriteString(": it redirects to " + e.location + ", which is not followed; set --scan-url to the service itself")
	}
	if e.Body != "" {
		fmt.Fprintf(&b, "; the answer begins %q", e.Body)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Wait is how long the server, or the endpoint that gives tokens, asks to wait before the next try; 0: neither says.
func (e *Error) Wait() time.Duration {
	var cause interface{ Wait() time.Duration }
	if errors.As(e.Err, &cause) {
		return max(e.RetryAfter, cause.Wait())
	}
	return e.RetryAfter
}

// newError reads an answer that brought nothing usable. redact takes secrets out, before anything is cut: half a token
// could not be found.
func newError(a jsonhttp.Answer, redact func(string) string) *Error {
	clean := func(s string) string { return access.Excerpt(redact(s)) }
	e := &Error{Status: a.Status, RetryAfter: a.RetryAfter, location: a.Location}
	var told struct {
		Error string `json:"error"`
	}
	// Only words for people are read here, so a sloppy error object is better than none.
	err := json.Unmarshal(a.Body, &told, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if a.Status != http.StatusOK && err == nil && told.Error != "" {
		e.Message = clean(told.Error)
	} else {
		e.Body = clean(string(a.Body))
	}
	return e
}

// pathMissing says that the server does not have the operation. None of ours has another reason to answer so.
func (e *Error) pathMissing() bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// aboutPageSize says whether the server refused page_size.
func (e *Error) aboutPageSize() bool {
	text := strings.ToLower(e.Message + e.Body)
	return e.Status == http.StatusBadRequest && (strings.Contains(text, "limit") || strings.Contains(text, "page_size"))
}

// strained says whether the server, or a proxy before it, gave up on the request or in the middle of the answer, as they
// do where a page takes them too long.
func (e *Error) strained() bool {
	switch e.Status {
	case http.StatusGatewayTimeout:
		return true
	case http.StatusServiceUnavailable:
		return strings.Contains(e.Message, "too long") || strings.Contains(e.Body, "timely response")
	}
	return errors.Is(e, jsonhttp.ErrSilent) || errors.Is(e, jsonhttp.ErrSlow) || errors.Is(e, jsonhttp.ErrCutOff)
}
