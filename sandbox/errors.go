package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// cantonError is the error body of the participant.
type cantonError struct {
	Code           string            `json:"code"`
	Cause          string            `json:"cause"`
	CorrelationID  *string           `json:"correlationId"`
	TraceID        *string           `json:"traceId"`
	Context        map[string]string `json:"context"`
	Resources      [][2]string       `json:"resources"`
	ErrorCategory  int               `json:"errorCategory"`
	GrpcCodeValue  *int              `json:"grpcCodeValue"`
	RetryInfo      *string           `json:"retryInfo"`
	DefiniteAnswer *bool             `json:"definiteAnswer"`

	status int
}

func (e *cantonError) Error() string { return e.Code + ": " + e.Cause }

// categories maps an error category to the gRPC code and HTTP status. What is redacted
// says nothing but that; what may be retried says after how long.
var categories = map[int]struct {
	grpc, status    int
	redacted, retry bool
}{
	1:  {grpc: 14, status: http.StatusServiceUnavailable, retry: true},
	2:  {grpc: 10, status: http.StatusConflict, retry: true},
	3:  {grpc: 4, status: http.StatusGatewayTimeout, retry: true},
	4:  {grpc: 13, status: http.StatusInternalServerError, redacted: true},
	5:  {grpc: 3, status: http.StatusBadRequest},
	6:  {grpc: 16, status: http.StatusUnauthorized, redacted: true},
	7:  {grpc: 7, status: http.StatusForbidden, redacted: true},
	8:  {grpc: 3, status: http.StatusBadRequest},
	9:  {grpc: 9, status: http.StatusBadRequest},
	10: {grpc: 6, status: http.StatusConflict},
	11: {grpc: 5, status: http.StatusNotFound},
	12: {grpc: 11, status: http.StatusBadRequest, retry: true},
	14: {grpc: 12, status: http.StatusNotImplemented},
}

func refuse(category int, code, format string, args ...any) *cantonError {
	to, ok := categories[category]
	if !ok {
		panic(fmt.Sprintf("sandbox: no error is served with category %d", category))
	}
	if to.redacted {
		return &cantonError{
			Code: "NA", Cause: "A security-sensitive error has been received",
			Context: map[string]string{}, Resources: [][2]string{}, ErrorCategory: -1, GrpcCodeValue: &to.grpc,
			status: to.status,
		}
	}
	cause := fmt.Sprintf(format, args...)
	trace := traceOf(code, cause)
	e := &cantonError{
		Code: code, Cause: cause, TraceID: &trace,
		Context: map[string]string{
			"category": strconv.Itoa(category), "definite_answer": "false", "participant": "sandbox", "tid": trace,
		},
		Resources: [][2]string{}, ErrorCategory: category, GrpcCodeValue: &to.grpc,
		status: to.status,
	}
	e.advise(to.retry)
	return e
}

// traceOf is the trace id of an error: the same for the same error, so that nothing depends on what was asked before.
func traceOf(code, cause string) string {
	sum := sha256.Sum256([]byte(code + cause))
	return hex.EncodeToString(sum[:16])
}

// refuseEarly is refuse for what the participant's JSON layer refuses, and not its ledger.
func refuseEarly(category int, code, format string, args ...any) *cantonError {
	to, cause, definite := categories[category], fmt.Sprintf(format, args...), false
	trace := traceOf(code, cause)
	e := &cantonError{
		Code: code, Cause: cause, CorrelationID: &trace, TraceID: &trace, Context: map[string]string{},
		Resources:     [][2]string{},
		ErrorCategory: category, GrpcCodeValue: &to.grpc, DefiniteAnswer: &definite, status: to.status,
	}
	e.advise(to.retry)
	return e
}

// advise says after how long a request may be tried again.
func (e *cantonError) advise(retry bool) {
	if after := "1 second"; retry {
		e.RetryInfo = &after
	}
}

func (e *cantonError) with(key, value string) *cantonError {
	e.Context[key] = value
	return e
}

func (e *cantonError) about(kind, name string) *cantonError {
	e.Resources = append(e.Resources, [2]string{"ErrorResource(" + kind + ")", name})
	return e
}

func invalidArgument(format string, args ...any) *cantonError {
	return refuse(8, "INVALID_ARGUMENT", "The submitted request has invalid arguments: "+format, args...)
}

func missingField(name string) *cantonError {
	return refuse(8, "MISSING_FIELD", "The submitted command is missing a mandatory field: %s", name).with("field_name",
		name)
}

func invalidField(name, format string, args ...any) *cantonError {
	return refuse(8, "INVALID_FIELD", "The submitted command has a field with invalid value: Invalid field %s: %s", name,
		fmt.Sprintf(format, args...))
}

func negativeOffset(field string, offset int64) *cantonError {
	e := refuse(8, "NEGATIVE_OFFSET",
		"Offset %d in %s is a negative integer: the offset in %s field has to be a non-negative integer (>=0)", offset, field,
		field)
	delete(e.Context, "definite_answer")
	return e
}

func prunedError(earliest int64, format string, args ...any) *cantonError {
	return refuse(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", format, args...).with("earliest_offset",
		strconv.FormatInt(earliest, 10))
}

// listOverflow returns the answer to a list of more elements than the server allows: it
// has the category of contention, but an HTTP status of its own.
func listOverflow(limit int) *cantonError {
	e := refuseEarly(2, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED",
		"The number of matching elements (%d) is greater than the node limit (%d).", limit+1, limit)
	e.status = http.StatusRequestEntityTooLarge
	return e
}

func unauthenticated() *cantonError {
	return refuse(6, "UNAUTHENTICATED", "The command is missing a (valid) JWT token")
}

// goingDown is what a server answers while it goes down.
func goingDown() *cantonError {
	return refuseEarly(4, "LEDGER_API_INTERNAL_ERROR", "The server is shutting down")
}

func permissionDenied() *cantonError {
	return refuse(7, "PERMISSION_DENIED",
		"The provided authorization token is not sufficient to authorize the intended command")
}

func writeError(w http.ResponseWriter, e *cantonError) {
	body, err := json.Marshal(e)
	if err != nil {
		panic(err) // of strings and numbers: can not happen
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	w.Write(body)
}

// writeText answers in the form of the participant's HTTP layer, which answers before its ledger.
func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.WriteHeader(status)
	fmt.Fprint(w, text)
}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	body, _ := json.Marshal(map[string]any{
		"errors": []string{fmt.Sprintf("HttpMethod(%s), uri: http://%s%s", r.Method, r.Host, r.RequestURI)},
		"status": http.StatusNotFound, "ledgerApiError": nil,
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	w.Write(body)
}
