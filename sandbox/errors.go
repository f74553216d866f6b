package sandbox

import (
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

// categories maps an error category to the gRPC code and HTTP status.
var categories = map[int]struct{ grpc, status int }{
	2: {10, http.StatusConflict}, 6: {16, http.StatusUnauthorized}, 8: {3, http.StatusBadRequest},
	9: {9, http.StatusBadRequest}, 11: {5, http.StatusNotFound}, 12: {11, http.StatusBadRequest},
}

func refuse(category int, code, format string, args ...any) *cantonError {
	to := categories[category]
	definite := false
	return &cantonError{
		Code: code, Cause: fmt.Sprintf(format, args...),
		Context:   map[string]string{"category": strconv.Itoa(category), "definite_answer": "false", "participant": "sandbox"},
		Resources: [][2]string{}, ErrorCategory: category, GrpcCodeValue: &to.grpc, DefiniteAnswer: &definite,
		status: to.status,
	}
}

func (e *cantonError) with(key, value string) *cantonError {
	e.Context[key] = value
	return e
}

func (e *cantonError) about(kind, name string) *cantonError {
	e.Resources = append(e.Resources, [2]string{kind, name})
	return e
}

func invalidArgument(format string, args ...any) *cantonError {
	return refuse(8, "INVALID_ARGUMENT", "The submitted request has invalid arguments: "+format, args...)
}

func missingField(name string) *cantonError {
	return refuse(8, "MISSING_FIELD", "The submitted command is missing a mandatory field: %s", name).with("field_name", name)
}

func invalidField(name, format string, args ...any) *cantonError {
	return refuse(8, "INVALID_FIELD", "The submitted command has a field with invalid value: Invalid field %s: %s", name, fmt.Sprintf(format, args...)).with("field_name", name)
}

func prunedError(earliest int64, format string, args ...any) *cantonError {
	return refuse(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", format, args...).with("earliest_offset", strconv.FormatInt(earliest, 10))
}

// listOverflow is the answer to a list of more elements than the server allows: it
// has the category of contention, but an HTTP status of its own.
func listOverflow(limit int) *cantonError {
	e := refuse(2, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED",
		"The number of matching elements (%d) is greater than the node limit (%d).", limit+1, limit)
	e.status = http.StatusRequestEntityTooLarge
	retry := "1 second"
	e.RetryInfo = &retry
	return e
}

// unauthenticated is redacted, as everything about security is.
func unauthenticated() *cantonError {
	e := refuse(6, "NA", "A security-sensitive error has been received")
	e.ErrorCategory = -1
	e.Context = map[string]string{"ledger_api_error": "invalid token"}
	e.DefiniteAnswer = nil
	return e
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

// writeText answers what the participant's HTTP layer says before its ledger is asked.
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
		"errors": []string{fmt.Sprintf("HttpMethod(%s), uri: %s", r.Method, r.URL.Path)}, "status": http.StatusNotFound,
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	w.Write(body)
}
