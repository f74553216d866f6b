package jsonhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ledgerindexer/internal/base/access"
)

// Failure is a request without a usable answer. A client embeds it in its own error, which adds the server's error
// object.
type Failure struct {
	Operation  string        // as passed to Config.Observe
	Status     int           // HTTP status; 0: no answer. 200: an answer that could not be used, see Err
	Body       string        // the beginning of an answer that is not the server's error object
	RetryAfter time.Duration // how long to wait by the HTTP header; 0: not sent
	Err        error         // why there was no answer, or why it could not be used; else nil

	location string // where the server redirects to
}

// Failed returns the Failure of a request without a usable answer, before the answer's body is read.
func Failed(operation string, a Answer, err error) Failure {
	return Failure{Operation: operation, Status: a.Status, RetryAfter: a.RetryAfter, location: a.Location, Err: err}
}

// Unusable returns the Failure of an answer with status 200 that could not be used.
func Unusable(operation string, err error) Failure {
	f := Failure{Operation: operation, Status: http.StatusOK, Err: err}
	if strange, ok := errors.AsType[*NotJSONError](err); ok {
		f.Body = strange.Begin
	}
	return f
}

// Text returns the error's text: said is the server's message, and set what to change if it redirects.
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

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Wait returns how long to wait before the next try, by the server or the token endpoint; 0 if neither says.
func (f *Failure) Wait() time.Duration {
	var cause interface{ Wait() time.Duration }
	if errors.As(f.Err, &cause) {
		return max(f.RetryAfter, cause.Wait())
	}
	return f.RetryAfter
}

// TooOften reports whether the server refuses the request because too many came.
func (f *Failure) TooOften() bool { return f.Status == http.StatusTooManyRequests }

// noToken is an error of the file, or of the endpoint, that tokens come from.
type noToken struct{ error }

func (n noToken) Unwrap() error { return n.error }

// Reason returns what kind of failure it is, for metrics: token (there is none), no_answer, unusable_answer, or status_
// and the HTTP status.
func (f *Failure) Reason() string {
	switch {
	case errors.As(f.Err, &noToken{}):
		return "token"
	case f.Status == 0:
		return "no_answer"
	case f.Status == http.StatusOK:
		return "unusable_answer"
	}
	return fmt.Sprintf("status_%d", f.Status)
}

// Explain says what an error means that means the same of every server: a request without an answer, an answer that is
// not JSON, and one that is not the server's own. ok is false for other errors. do is empty if the error may pass;
// what may be empty too: then the error says enough.
//
// Until the server has answered once, a certificate that does not fit is a configuration error: retrying would only
// hide a wrong flag. Later it may pass, because one of the certificates may be being replaced, and our files are read
// again. An expired one may always pass: the server's operator renews it. No server of ours sends what is not JSON:
// before the first usable answer another one's URL is configured, and later a proxy may stand in for it for a while.
func (c *Client) Explain(f *Failure) (what, do string, ok bool) {
	if strange, is := errors.AsType[*NotJSONError](f.Err); is {
		if !strange.First {
			return "", "", true
		}
		return "the answer to " + strange.Asked + " is not JSON, and none came before that is",
			fmt.Sprintf("see what stands between here and --%s-url, and that it is the base of %s", c.server.Flags,
				c.server.Base), true
	}
	refused, is := errors.AsType[*access.ConnectionError](f.Err)
	switch {
	case f.Status == http.StatusBadRequest && c.base.Scheme == "http" && strings.Contains(f.Body, "HTTPS"):
		return "what answers speaks TLS", "write https:// in " + c.access.Flag("url"), true // the text of several servers
	case f.Status >= http.StatusBadGateway && f.Status <= http.StatusGatewayTimeout && f.Body != "":
		return "a proxy may be what answers: see whether the server behind it runs and is ready", "", true
	case f.Status != 0:
		return "", "", false
	case !is:
		return "", "", true
	case refused.Configured && !c.Answered():
		return refused.What, refused.Do, true
	}
	return refused.What + "; " + refused.Do, "", true
}

// PathMissing reports whether the status is one that servers use for an operation that they don't have.
func (f *Failure) PathMissing() bool {
	switch f.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}
