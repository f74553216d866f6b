package scan

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
)

// Error is a request without a usable answer. verdict.go decides what it means and whether trying again may help, and
// wraps it in a *ledger.Problem where it can't.
type Error struct {
	jsonhttp.Failure
	Message string // the server's sentence, from its {"error": "…"}; may be empty

	foreign bool   // the answer is the error object of another kind of service
	token   string // a description of the refused token; empty where none was refused
}

func (e *Error) Error() string { return e.Text(e.Message, "--scan-url to the service itself") }

// newError reads an answer that is not usable. redact removes secrets before anything is cut: half a token could not be
// found.
func newError(operation string, a jsonhttp.Answer, err error, redact func(string) string) *Error {
	clean := func(s string) string { return access.Excerpt(redact(s)) }
	e := &Error{Failure: jsonhttp.Failed(operation, a, err)}
	var answer struct {
		Error string `json:"error"`
	}
	// This only reads text for people, so a malformed error object is better than none.
	unread := json.Unmarshal(a.Body, &answer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if a.Status != http.StatusOK && unread == nil && answer.Error != "" {
		e.Message = clean(answer.Error)
	} else {
		e.Body = clean(string(a.Body))
		e.foreign = unread == nil && answer.Error == "" && jsontext.Value(a.Body).Kind() == '{'
	}
	return e
}

// notOffered reports whether the server does not know the operation: it says so, or it refuses the request as another
// kind of service does, such as a participant, which has another operation at the path of updates.
func (e *Error) notOffered() bool {
	return e.PathMissing() || e.Status == http.StatusBadRequest && e.foreign
}

// aboutPageSize reports whether the server refused page_size.
func (e *Error) aboutPageSize() bool {
	text := strings.ToLower(e.Message + e.Body)
	return e.Status == http.StatusBadRequest && (strings.Contains(text, "limit") || strings.Contains(text, "page_size"))
}

// strained reports whether the server, or a proxy before it, gave up on the request or in the middle of the answer, as
// they do when a page takes too long.
func (e *Error) strained() bool {
	switch e.Status {
	case http.StatusGatewayTimeout:
		return true
	case http.StatusServiceUnavailable:
		return strings.Contains(e.Message, "too long") || strings.Contains(e.Body, "timely response")
	}
	return errors.Is(e, jsonhttp.ErrSilent) || errors.Is(e, jsonhttp.ErrSlow) || errors.Is(e, jsonhttp.ErrCutOff)
}
