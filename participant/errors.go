package participant

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
	"ledgerindexer/ledger"
)

// Error is a request that brought no usable answer. What it means, and whether trying again may help, is decided in
// verdict.go: a *ledger.Problem or *ledger.Bug is wrapped around what stays as it is.
type Error struct {
	Operation string // as told to Config.Observe
	Status    int    // HTTP status; 0: no answer. 200: an answer that could not be used, see Err

	Code           string            // the server's error code, such as PARTICIPANT_PRUNED_DATA_ACCESSED; may be empty
	Cause          string            // the server's sentence; may be empty
	Context        map[string]string // what the server adds, such as earliest_offset; may be nil
	Resources      []Resource        // what the error is about; may be nil
	Category       int               // the server's error category, 1 to 14; -1: it keeps it to itself; 0: not told
	GRPCCode       int               // the gRPC status code; 0: not told
	CorrelationID  string            // names the request in the server's log; may be empty
	TraceID        string            // of distributed tracing; may be empty
	DefiniteAnswer *bool             // whether the request was certainly not carried out; nil: not told

	Body       string        // beginning of an answer that is not of the server's error form
	RetryAfter time.Duration // how long the HTTP header asks to wait; 0: it does not say
	RetryInfo  time.Duration // how long the error object asks to wait; 0: it does not say
	Err        error         // what went wrong where there was no answer, or where it could not be used; else nil

	location string // where the server redirects to
	token    string // what the refused token says of itself; empty where none was refused
}

// Resource is something that an error is about, such as {UPDATE_ID, the id}.
type Resource struct{ Kind, Name string }

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Operation)
	if e.Status != 0 && e.Status != http.StatusOK {
		b.WriteString(strings.TrimRight(fmt.Sprintf(": HTTP status %d %s", e.Status, http.StatusText(e.Status)), " "))
	}
	for _, part := range []string{e.Code, e.Cause} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	// Where a request could not be understood, this is all that says why.
	if reason := access.Excerpt(e.Context["reason"]); reason != "" && !strings.Contains(e.Cause, reason) {
		b.WriteString(" (" + reason + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.location != "" {
		b.WriteString(": it redirects to " + e.location + ", which is not followed; set --ledger-url to the participant itself")
	}
	if e.Body != "" {
		fmt.Fprintf(&b, "; the answer begins %q", e.Body)
	}
	switch {
	case e.CorrelationID != "":
		b.WriteString(" (correlation id " + e.CorrelationID + ")")
	case e.TraceID != "":
		b.WriteString(" (trace id " + e.TraceID + ")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is tells a refusal of what is pruned as ledger.ErrPruned.
func (e *Error) Is(target error) bool { return target == ledger.ErrPruned && e.Code == codePruned }

// Wait is how long is asked to wait before the next try, by the header or by the error object, whichever is longer;
// 0: neither says.
func (e *Error) Wait() time.Duration {
	wait := max(e.RetryAfter, e.RetryInfo)
	var cause interface{ Wait() time.Duration } // a token endpoint may ask for patience too
	if errors.As(e.Err, &cause) {
		wait = max(wait, cause.Wait())
	}
	return wait
}

// newError reads an answer that brought nothing usable: where it is not success the servers' error object, the one they
// have for unknown paths, or whatever text came. redact takes secrets out, before anything is cut: half a token could not
// be found.
func newError(a jsonhttp.Answer, redact func(string) string) *Error {
	clean := func(s string) string { return access.Excerpt(redact(s)) }
	e := &Error{Status: a.Status, RetryAfter: a.RetryAfter, location: a.Location}
	// Only words for the operator are read here, so a sloppy error object is better than none: each member counts by
	// itself, and one of another type than expected is as good as absent.
	var told map[string]jsontext.Value
	if a.Status != http.StatusOK && json.Unmarshal(a.Body, &told, sloppy...) == nil {
		e.Code, e.Cause = clean(member[string](told, "code")), clean(member[string](told, "cause"))
		if e.Code == "" && e.Cause == "" {
			e.Cause = clean(strings.Join(member[[]string](told, "errors"), "; "))
		}
	}
	if e.Code == "" && e.Cause == "" {
		e.Body = clean(string(a.Body))
		return e
	}
	e.CorrelationID, e.TraceID = clean(member[string](told, "correlationId")), clean(member[string](told, "traceId"))
	e.Category, e.GRPCCode = member[int](told, "errorCategory"), member[int](told, "grpcCodeValue")
	e.DefiniteAnswer = member[*bool](told, "definiteAnswer")
	e.RetryInfo = retryInfo(member[string](told, "retryInfo"))
	for key, value := range member[map[string]any](told, "context") {
		if s, ok := value.(string); ok {
			if e.Context == nil {
				e.Context = map[string]string{}
			}
			e.Context[clean(key)] = redact(s)
		}
	}
	for _, pair := range member[[][]string](told, "resources") {
		if len(pair) == 2 {
			e.Resources = append(e.Resources, Resource{Kind: clean(pair[0]), Name: clean(pair[1])})
		}
	}
	return e
}

var sloppy = []json.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// member reads a member of an object; the zero value where there is none of that type.
func member[T any](object map[string]jsontext.Value, name string) (value T) {
	if raw, ok := object[name]; ok && json.Unmarshal(raw, &value, sloppy...) != nil {
		var none T
		return none
	}
	return value
}

// Errors that an *Error wraps whose answer says nothing about what was asked: it has no end, or is no JSON.
var (
	ErrCutOff  = jsonhttp.ErrCutOff
	ErrNotJSON = jsonhttp.ErrNotJSON
)

// lacksPath says whether the error is that the server does not have the operation.
func lacksPath(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.pathMissing()
}

// pathMissing says that the server does not have the operation, as opposed to not having what was asked of it:
// then it sends its error object.
func (e *Error) pathMissing() bool {
	switch e.Status {
	case http.StatusNotFound:
		return e.Code == ""
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// unauthenticated says whether the server wants another token: this one is no good, or is no longer.
func (e *Error) unauthenticated() bool {
	return e.Status == http.StatusUnauthorized || e.Code == "ACCESS_TOKEN_EXPIRED" || e.Code == "INVALID_TOKEN"
}
