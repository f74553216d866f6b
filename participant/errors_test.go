package participant

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

var alice = ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: []string{"alice::1", "bob::1", "carol::1", "dave::1"}}

// Everything that the servers' error object can say is read.
func TestErrorObject(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"code":"PARTICIPANT_BACKPRESSURE","cause":"The participant is\noverloaded","correlationId":"corr-1","traceId":"trace-1",
			"context":{"participant":"p","limit":"7"},"resources":[["PARTY","alice::1"],["TEMPLATE_ID","#a:M:T"]],"errorCategory":2,
			"grpcCodeValue":8,"retryInfo":"2 seconds","definiteAnswer":false,"unknown":[1]}`)
	}})
	_, err := newClient(t, f, with35, anyParty).ReadUpdates(t.Context(), 4, 12)
	e := retryable(t, err)
	require.Equal(t, &Error{
		Failure: jsonhttp.Failure{Operation: "updates-page", Status: 429, RetryAfter: time.Second},
		Code:    "PARTICIPANT_BACKPRESSURE", Cause: "The participant is overloaded",
		Context:  map[string]string{"participant": "p", "limit": "7"},
		Category: 2, GRPCCode: 8, CorrelationID: "corr-1", TraceID: "trace-1",
		RetryInfo: 2 * time.Second,
	}, e)
	require.Equal(t, 2*time.Second, e.Wait(), "the longer one counts")
	require.ErrorContains(t, err, "updates-page: HTTP status 429 Too Many Requests: PARTICIPANT_BACKPRESSURE: The participant is overloaded (correlation id corr-1)")
}

// Whatever a server, or somebody before it, answers: the status is kept and what can be read is.
func TestAnyBodyOfAnError(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat("[", 10_000)
	body := func(begins string) Error { return Error{Failure: jsonhttp.Failure{Body: begins}} }
	for name, test := range map[string]struct {
		body string
		want Error
		says string // of the error's text
	}{
		"empty":      {"", Error{}, ": HTTP status 409 Conflict"},
		"text":       {"no\x00 way\r\n", body("no way"), `the answer begins "no way"`},
		"not UTF-8":  {"\xff\xfe", body("?"), `the answer begins "?"`},
		"a web page": {"<html>\n<body>" + strings.Repeat("x", 1<<20), body("<html> <body>" + strings.Repeat("x", 287) + "…"), "<html>"},
		"unknown path": {`{"errors":["The requested resource could not be found.","really"],"status":404}`,
			Error{Cause: "The requested resource could not be found.; really"}, ": The requested resource could not be found.; really"},
		"null":               {"null", body("null"), "null"},
		"a list":             {`["code"]`, body(`["code"]`), "code"},
		"a text in quotes":   {`"code"`, body(`"code"`), "code"},
		"an empty object":    {`{}`, body("{}"), "{}"},
		"no code":            {`{"cause":"because","errorCategory":2}`, Error{Cause: "because", Category: 2}, ": because"},
		"a code alone":       {`{"code":"X"}`, Error{Code: "X"}, ": X"},
		"cut off":            {`{"code":"X","cause":"bec`, body(`{"code":"X","cause":"bec`), "bec"},
		"code of wrong type": {`{"code":7}`, body(`{"code":7}`), "7"},
		"the rest of wrong types": {
			`{"code":"X","cause":[],"correlationId":{},"traceId":1,"context":[],"resources":{},"errorCategory":"2","grpcCodeValue":1.5,"retryInfo":3,"definiteAnswer":"no"}`,
			Error{Code: "X"}, ": X",
		},
		"some of wrong types": {
			`{"code":"X","context":{"a":"b","n":1,"l":[]},"errorCategory":9223372036854775808}`,
			Error{Code: "X", Context: map[string]string{"a": "b"}}, ": X",
		},
		"all null": {
			`{"code":"X","cause":null,"correlationId":null,"traceId":null,"context":null,"resources":null,"errorCategory":null,"grpcCodeValue":null,"retryInfo":null,"definiteAnswer":null}`,
			Error{Code: "X"}, ": X",
		},
		"twice":               {`{"code":"X","code":"Y"}`, Error{Code: "Y"}, ": Y"},
		"half a pair":         {`{"code":"X\ud800"}`, Error{Code: "X\ufffd"}, ": X"},
		"control characters":  {`{"code":"X\u0000\u001b[31m","cause":"a\nb\u009b"}`, Error{Code: "X [31m", Cause: "a b"}, ": X [31m: a b"},
		"a sentence as code":  {`{"code":"Status description not available","cause":"INTERNAL","errorCategory":-1}`, Error{Code: "Status description not available", Cause: "INTERNAL", Category: -1}, "not available"},
		"nested without end":  {nested, body(nested[:300] + "…"), "[[["},
		"a trace id alone":    {`{"code":"X","traceId":"t-1"}`, Error{Code: "X", TraceID: "t-1"}, "(trace id t-1)"},
		"a very long code":    {`{"code":"` + strings.Repeat("X", 10_000) + `"}`, Error{Code: strings.Repeat("X", 300) + "…"}, "XXX"},
		"an absurd retryInfo": {`{"code":"X","retryInfo":"99999999999999999999 days"}`, Error{Code: "X", RetryInfo: 24 * time.Hour}, ": X"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: plain(http.StatusConflict, test.body)})
			_, err := newClient(t, f, with35, anyParty).LedgerEnd(t.Context())
			test.want.Operation, test.want.Status = "ledger-end", http.StatusConflict
			require.Equal(t, &test.want, retryable(t, err))
			require.ErrorContains(t, err, test.says)
			require.Less(t, len(err.Error()), 2500)
			require.NotRegexp(t, "[[:cntrl:]]", err.Error())
		})
	}
}

func TestRetryAdvice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"":                        0,
		"1 second":                time.Second,
		"0 seconds":               0,
		"30 seconds":              30 * time.Second,
		"500 milliseconds":        500 * time.Millisecond,
		"1 millisecond":           time.Millisecond,
		"250 microseconds":        250 * time.Microsecond,
		"7 nanoseconds":           7,
		"2 minutes":               2 * time.Minute,
		"1 hour":                  time.Hour,
		"1 day":                   24 * time.Hour,
		"400 days":                24 * time.Hour,
		"Duration.Inf":            0,
		"-1 seconds":              0,
		"1 fortnight":             0,
		"1":                       0,
		"one second":              0,
		"1 second and a half":     0,
		"99999999999999999999999": 0,
	} {
		require.Equal(t, want, retryInfo(text), text)
	}
	require.Equal(t, 3*time.Second, (&Error{Failure: jsonhttp.Failure{RetryAfter: 3 * time.Second}, RetryInfo: time.Second}).Wait())
	require.Zero(t, (&Error{}).Wait())
}

// What a server adds as the reason is said, where its sentence does not say it, and at no great length.
func TestTheReasonIsSaid(t *testing.T) {
	t.Parallel()
	e := Error{Failure: jsonhttp.Failure{Operation: "list", Status: 400}, Code: "C", Cause: "no such thing", Context: map[string]string{"reason": "bad\n id"}}
	require.Equal(t, "list: HTTP status 400 Bad Request: C: no such thing (bad id)", e.Error())
	e.Context["reason"] = "such"
	require.Equal(t, "list: HTTP status 400 Bad Request: C: no such thing", e.Error())
	e.Context["reason"] = strings.Repeat("x", 1<<20)
	require.Less(t, len(e.Error()), 1000)
}
