package scan

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/access"
)

// Error is a request that brought no usable answer.
type Error struct {
	Operation  string
	Status     int           // HTTP status; 0: no answer. 200: an answer that could not be used, see Err
	Message    string        // the server's sentence, from its {"error": "…"}; may be empty
	Body       string        // beginning of an answer that is not of that form
	RetryAfter time.Duration // how long the server asks to wait; 0: it does not say
	Err        error         // what went wrong where there was no answer, or where it could not be used; else nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Operation)
	if e.Status != 0 && e.Status != http.StatusOK {
		fmt.Fprintf(&b, ": HTTP status %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Body != "" {
		fmt.Fprintf(&b, "; the answer begins %q", e.Body)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Wait is how long the server asks to wait before the next try; 0: it does not say.
func (e *Error) Wait() time.Duration { return e.RetryAfter }

// pathMissing says that the server does not have the operation. None of ours has another reason to answer so.
func (e *Error) pathMissing() bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// newError reads an answer that is not success. clean takes secrets out, before anything is cut: half a token could
// not be found.
func newError(resp *http.Response, text []byte, clean func(string) string) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: access.RetryAfter(resp.Header.Get("Retry-After"), time.Now())}
	var told struct {
		Error string `json:"error"`
	}
	// Only words for people are read here, so a sloppy error object is better than none.
	err := json.Unmarshal(text, &told, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err == nil && told.Error != "" {
		e.Message = access.Excerpt(clean(told.Error))
	} else {
		e.Body = access.Excerpt(clean(string(text)))
	}
	return e
}
