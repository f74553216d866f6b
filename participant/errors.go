package participant

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ledger"
)

// Error is a request that brought no usable answer. It may be tried again, unless a *ledger.Problem is wrapped
// around it.
type Error struct {
	Operation     string
	Status        int               // HTTP status; 0: no answer. 200: an answer that could not be used, see Err
	Code          string            // the server's error code, such as PARTICIPANT_PRUNED_DATA_ACCESSED; may be empty
	Cause         string            // the server's sentence; may be empty
	Context       map[string]string // what the server adds, such as earliest_offset; may be nil
	CorrelationID string            // names the request in the server's log; may be empty
	Body          string            // beginning of an answer that is not of the server's error form
	RetryAfter    time.Duration     // how long the server asks to wait; 0: it does not say
	Err           error             // what went wrong where there was no answer, or where it could not be used; else nil

	category int    // the server's error category, 0: not told
	location string // where the server redirects to
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Operation)
	if e.Status != 0 && e.Status != http.StatusOK {
		fmt.Fprintf(&b, ": HTTP status %d %s", e.Status, http.StatusText(e.Status))
	}
	for _, part := range []string{e.Code, e.Cause} {
		if part != "" {
			b.WriteString(": " + part)
		}
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
	if e.CorrelationID != "" {
		b.WriteString(" (correlation id " + e.CorrelationID + ")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Wait is how long the server asks to wait before the next try; 0: it does not say.
func (e *Error) Wait() time.Duration { return e.RetryAfter }

// newError reads an answer that is not success: the servers' error object, or whatever text came.
func newError(resp *http.Response, text []byte) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	if to, err := resp.Location(); err == nil {
		e.location = to.Scheme + "://" + to.Host + to.Path // a query may hold secrets
	}
	var told struct {
		Code          string         `json:"code"`
		Cause         string         `json:"cause"`
		CorrelationID string         `json:"correlationId"`
		Context       map[string]any `json:"context"`
		Category      int            `json:"errorCategory"`
	}
	// Only words for the operator are read here, so a sloppy error object is better than none.
	err := json.Unmarshal(text, &told, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || told.Code == "" {
		e.Body = short(text)
		return e
	}
	e.Code, e.Cause, e.CorrelationID, e.category = short([]byte(told.Code)), short([]byte(told.Cause)), short([]byte(told.CorrelationID)), told.Category
	for key, value := range told.Context {
		if s, ok := value.(string); ok {
			if e.Context == nil {
				e.Context = map[string]string{}
			}
			e.Context[key] = s
		}
	}
	return e
}

// redact takes the token out of what a server (or a talkative proxy) sent back.
func (e *Error) redact(token string) {
	if token == "" {
		return
	}
	clean := func(s string) string { return strings.ReplaceAll(s, token, "[token]") }
	e.Code, e.Cause, e.Body, e.CorrelationID, e.location =
		clean(e.Code), clean(e.Cause), clean(e.Body), clean(e.CorrelationID), clean(e.location)
	for key, value := range e.Context {
		e.Context[key] = clean(value)
	}
	if e.Err != nil && strings.Contains(e.Err.Error(), token) {
		e.Err = errors.New(clean(e.Err.Error()))
	}
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

// The server's error codes that are told apart.
const (
	codePruned         = "PARTICIPANT_PRUNED_DATA_ACCESSED"
	codeAfterLedgerEnd = "OFFSET_AFTER_LEDGER_END"
)

// earliest is the offset up to which the participant is pruned, as the error tells it.
func (e *Error) earliest() (ledger.Offset, bool) {
	text, ok := e.Context["earliest_offset"]
	if !ok {
		found := prunedUpTo.FindStringSubmatch(e.Cause)
		if found == nil {
			return 0, false
		}
		text = found[1]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return ledger.Offset(n), err == nil
}

var prunedUpTo = regexp.MustCompile(`precedes pruned offset (\d+)`)

// explain wraps a Problem around what retrying can't cure, and says what is known about the rest.
func (c *Client) explain(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	var p *ledger.Problem
	if errors.As(err, &p) {
		return err
	}
	switch {
	case e.Status == http.StatusUnauthorized && c.cfg.TokenFile == "":
		return &ledger.Problem{
			What: "the participant wants a token and none is configured",
			Do:   "give the file that holds it with --ledger-token-file",
			Err:  err,
		}
	case e.Status == http.StatusUnauthorized:
		return fmt.Errorf("the participant refused the token of %s (expired, or meant for another participant); the file is read again for each request: %w",
			c.cfg.TokenFile, err)
	case e.Status == http.StatusForbidden:
		return &ledger.Problem{
			What: "the participant does not let the token's user read " + c.whose(),
			Do:   c.neededRight(),
			Err:  err,
		}
	case e.Status == http.StatusNotFound && unknownName(e.Code):
		return &ledger.Problem{
			What: "the participant does not know a package, template or interface that it was asked for",
			Do:   "check --templates and --interfaces (#package-name:Module:Entity), or upload the package to the participant first",
			Err:  err,
		}
	case e.Status == http.StatusBadRequest && e.invalid():
		return &ledger.Problem{
			What: "the participant refuses the request as invalid",
			Do: "check --parties, --templates and --interfaces; templates and interfaces are written #package-name:Module:Entity, " +
				"and servers from 3.5 on refuse package ids in place of the name",
			Err: err,
		}
	}
	return err
}

// invalid says that the request is wrong whatever the state of the server.
func (e *Error) invalid() bool {
	const invalidIndependentOfState = 8
	switch e.Code {
	case "INVALID_ARGUMENT", "INVALID_FIELD", "MISSING_FIELD":
		return true
	case "":
		return strings.HasPrefix(e.Body, "Invalid value")
	}
	return e.category == invalidIndependentOfState
}

func unknownName(code string) bool {
	switch code {
	case "PACKAGE_NAMES_NOT_FOUND", "TEMPLATES_OR_INTERFACES_NOT_FOUND":
		return true
	}
	return strings.HasPrefix(code, "NO_TEMPLATES_FOR_") || strings.HasPrefix(code, "NO_INTERFACE_FOR_")
}

// whose names the parties of the scope, and neededRight the right to read as them.
func (c *Client) whose() string {
	parties := set(c.scope.Parties)
	const shown = 3
	switch {
	case len(parties) == 0:
		return "as any party"
	case len(parties) > shown:
		return fmt.Sprintf("as %s and %d more parties", strings.Join(parties[:shown], ", "), len(parties)-shown)
	}
	return "as " + strings.Join(parties, ", ")
}

func (c *Client) neededRight() string {
	if len(c.scope.Parties) == 0 {
		return "grant the user CanReadAsAnyParty, or name the parties it may read as with --parties"
	}
	return "grant the user CanReadAs (or CanActAs) for each party of --parties"
}
