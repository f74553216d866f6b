package participant

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Error is a request without a usable answer. verdict.go decides what it means. If a retry can't help, it is wrapped in
// a *ledger.Problem or *ledger.Bug. It wraps jsonhttp.ErrCutOff where the answer is cut off, and jsonhttp.ErrNotJSON
// where it is not JSON.
type Error struct {
	jsonhttp.Failure

	Code          string            // the server's error code, such as PARTICIPANT_PRUNED_DATA_ACCESSED; may be empty
	Cause         string            // the server's message; may be empty
	Context       map[string]string // details from the server, such as earliest_offset; may be nil
	Category      int               // the server's error category, 1 to 14; -1: withheld; 0: not sent
	GRPCCode      int               // the gRPC status code; 0: not sent
	CorrelationID string            // identifies the request in the server's log; may be empty
	TraceID       string            // of distributed tracing; may be empty
	RetryInfo     time.Duration     // the wait that the error object asks for; 0: not sent

	token string // describes the refused token; empty: none was refused
}

func (e *Error) Error() string {
	said := e.Code
	if e.Cause != "" {
		said = strings.TrimPrefix(said+": "+e.Cause, ": ")
	}
	// If the server could not parse the request, only this member says why.
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

// Is makes a refusal because of pruning match ledger.ErrPruned.
func (e *Error) Is(target error) bool { return target == ledger.ErrPruned && e.Code == codePruned }

// Wait returns the longer of the waits that header and error object ask for; 0 if neither does.
func (e *Error) Wait() time.Duration { return max(e.Failure.Wait(), e.RetryInfo) }

// newError reads an unusable answer. Without success its body is the servers' error object, their object for unknown
// paths, or any text. redact is applied before texts are shortened: half a token would not be found.
func newError(operation string, a jsonhttp.Answer, err error, redact func(string) string) *Error {
	clean := func(s string) string { return access.Excerpt(redact(s)) }
	e := &Error{Failure: jsonhttp.Failed(operation, a, err)}
	// Even a malformed error object helps the operator: each member is read by itself, and one of an unexpected type
	// counts as absent.
	var answer map[string]jsontext.Value
	if a.Status != http.StatusOK && json.Unmarshal(a.Body, &answer, sloppy...) == nil {
		e.Code, e.Cause = clean(member[string](answer, "code")), clean(member[string](answer, "cause"))
		if e.Code == "" && e.Cause == "" {
			e.Cause = clean(strings.Join(member[[]string](answer, "errors"), "; "))
		}
	}
	if e.Code == "" && e.Cause == "" {
		e.Body = clean(string(a.Body))
		return e
	}
	e.CorrelationID, e.TraceID = clean(member[string](answer, "correlationId")), clean(member[string](answer, "traceId"))
	e.Category, e.GRPCCode = member[int](answer, "errorCategory"), member[int](answer, "grpcCodeValue")
	e.RetryInfo = retryInfo(member[string](answer, "retryInfo"))
	for key, value := range member[map[string]any](answer, "context") {
		if s, ok := value.(string); ok {
			if e.Context == nil {
				e.Context = map[string]string{}
			}
			e.Context[clean(key)] = redact(s)
		}
	}
	return e
}

var sloppy = []json.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// member returns a member of an object, or the zero value if it is missing or of another type.
func member[T any](object map[string]jsontext.Value, name string) (value T) {
	if raw, ok := object[name]; ok && json.Unmarshal(raw, &value, sloppy...) != nil {
		var none T
		return none
	}
	return value
}

// lacksPath reports whether the error is that the server does not have the operation.
func lacksPath(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.pathMissing()
}

// pathMissing reports whether the server does not have the operation. If only the requested item is missing, the server
// sends its error object instead.
func (e *Error) pathMissing() bool {
	return e.PathMissing() && (e.Status != http.StatusNotFound || e.Code == "")
}

// unauthenticated reports whether the server wants another token: this one is invalid or has expired.
func (e *Error) unauthenticated() bool {
	return e.Status == http.StatusUnauthorized || e.Code == "ACCESS_TOKEN_EXPIRED" || e.Code == "INVALID_TOKEN"
}
