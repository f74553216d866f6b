package jsonhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Failure is a request that brought no usable answer. A client embeds it in its own error, which adds what its servers say.
type Failure struct {
	Operation  string        // as told to Config.Observe
	Status     int           // HTTP status; 0: no answer. 200: an answer that could not be used, see Err
	Body       string        // beginning of an answer that is not of the server's error form
	RetryAfter time.Duration // how long the HTTP header asks to wait; 0: it does not say
	Err        error         // what went wrong where there was no answer, or where it could not be used; else nil

	location string // where the server redirects to
}

// Failed is what is known of a request that brought no usable answer, before anybody reads what it says.
func Failed(operation string, a Answer, err error) Failure {
	return Failure{Operation: operation, Status: a.Status, RetryAfter: a.RetryAfter, location: a.Location, Err: err}
}

// Unusable is what is known of an answer of success that could not be used.
func Unusable(operation string, err error) Failure {
	f := Failure{Operation: operation, Status: http.StatusOK, Err: err}
	var strange *NotJSONError
	if errors.As(err, &strange) {
		f.Body = strange.Begin
	}
	return f
}

// Text is what the error says: said are the server's own words, and set what to set instead where it redirects.
func (f *Failure) Text(said, set string) string {
	var b strings.Builder
	b.WriteString(f.Operation)
	if f.Status != 0 && f.Status != http.StatusOK {
		b.WriteString(strings.TrimRight(fmt.Sprintf(": HTTP status %d %s", f.Status, http.StatusText(f.Status)), " "))
	}
	if said != "" {
		b.WriteString(": " + said)
	}
	if f.Err != nil {
		b.WriteString(": " + f.Err.Error())
	}
	if f.location != "" {
		b.WriteString(": it redirects to " + f.location + ", which is not followed; set " + set)
	}
	if f.Body != "" {
		fmt.Fprintf(&b, "; the answer begins %q", f.Body)
	}
	return b.String()
}

// Unwrap makes Err known to errors.Is and errors.As.
func (f *Failure) Unwrap() error { return f.Err }

// Wait is how long the server, or the endpoint that gives tokens, asks to wait before the next try; 0: neither says.
func (f *Failure) Wait() time.Duration {
	var cause interface{ Wait() time.Duration }
	if errors.As(f.Err, &cause) {
		return max(f.RetryAfter, cause.Wait())
	}
	return f.RetryAfter
}

// PathMissing says that a status is one of those by which servers say that they don't have an operation.
func (f *Failure) PathMissing() bool {
	switch f.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}
