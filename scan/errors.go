package scan

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
)

// Error is a request that brought no usable answer. What it means, and whether trying again may help, is decided in
// verdict.go: a *ledger.Problem is wrapped around what stays as it is.
type Error struct {
	jsonhttp.Failure
	Message string // the server's sentence, from its {"error": "…"}; may be empty

	token string // what the refused token says of itself; empty where none was refused
}

func (e *Error) Error() string { return e.Text(e.Message, "--scan-url to the service itself") }

// newError reads the answer to an operation that brought nothing usable. redact takes secrets out, before anything is cut: half a token
// could not be found.
func newError(operation string, a jsonhttp.Answer, err error, redact func(string) string) *Error {
	clean := func(s string) string { return access.Excerpt(redact(s)) }
	e := &Error{Failure: jsonhttp.Failed(operation, a, err)}
	var told struct {
		Error string `json:"error"`
	}
	// Only words for people are read here, so a sloppy error object is better than none.
	unread := json.Unmarshal(a.Body, &told, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if a.Status != http.StatusOK && unread == nil && told.Error != "" {
		e.Message = clean(told.Error)
	} else {
		e.Body = clean(string(a.Body))
	}
	return e
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
