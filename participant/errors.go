package participant

import (
	"errors"
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
	jsonhttp.Failure

	Code           string            // the server's error code, such as PARTICIPANT_PRUNED_DATA_ACCESSED; may be empty
	Cause          string            // the server's sentence; may be empty
	Context        map[string]string // what the server adds, such as earliest_offset; may be nil
	Resources      []Resource        // what the error is about; may be nil
	Category       int               // the server's error category, 1 to 14; -1: it keeps it to itself; 0: not told
	GRPCCode       int               // the gRPC status code; 0: not told
	CorrelationID  string            // names the request in the server's log; may be empty
	TraceID        string            // of distributed tracing; may be empty
	DefiniteAnswer *bool             // whether the request was certainly not carried out; nil: not told
	RetryInfo      time.Duration     // how long the error object asks to wait; 0: it does not say

	token string // what the refused token says of itself; empty where none was refused
}

// Resource is something that an error is about, such as {UPDATE_ID, the id}.
type Resource struct{ Kind, Name string }

func (e *Error) Error() string {
	said := e.Code
	if e.Cause != "" {
		said = strings.TrimPrefix(said+": "+e.Cause, ": ")
	}
	// Where a request could not be understood, this is all that says why.
	if reason := access.Excerpt(e.Context["reason"]); reason != "" && !strings.Contains(e.Cause, reason) {
		said = strings.TrimPrefix(said+" ("+reason+")", " ")
	}
	text := e.Text(said, "--ledger-url to the participant itself")
	switch {
	case e.CorrelationID != "":
		text += " (correlation id " + e.CorrelationID + ")"
	case e.TraceID != "":
		text += " (trace id " + e.TraceID + ")"
	}
	return text
}

// Is tells a refusal of what is pruned as ledger.ErrPruned.
func (e *Error) Is(target error) bool { return target == ledger.ErrPruned && e.Code == codePruned }

// Wait is how long is asked to wait before the next try, by the header or by the error object, whichever is longer;
// 0: neither says.
func (e *Error) Wait() time.Duration { return max(e.Failure.Wait(), e.RetryInfo) }

// newError reads the answer to an operation that brought nothing usable: where it is not success the servers' error object, the one they
// have for unknown paths, or whatever text came. redact takes secrets out, before anything is cut: half a token could not
// be found.
func newError(operation string, a jsonhttp.Answer, err error, redact func(string) string) *Error {
	clean := func(s string) string { return access.Excerpt(redact(s)) }
	e := &Error{Failure: jsonhttp.Failed(operation, a, err)}
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
	return e.PathMissing() && (e.Status != http.StatusNotFound || e.Code == "")
}

// unauthenticated says whether the server wants another token: this one is no good, or is no longer.
func (e *Error) unauthenticated() bool {
	return e.Status == http.StatusUnauthorized || e.Code == "ACCESS_TOKEN_EXPIRED" || e.Code == "INVALID_TOKEN"
}
