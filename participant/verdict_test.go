package participant

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// categories are the servers' error categories with their gRPC code and HTTP status.
var categories = map[int]struct{ grpc, status int }{
	1: {14, 503}, 2: {10, 409}, 3: {4, 504}, 4: {13, 500}, 5: {3, 400}, 6: {16, 401}, 7: {7, 403}, 8: {3, 400}, 9: {9, 400},
	10: {6, 409}, 11: {5, 404}, 12: {11, 400}, 14: {12, 501},
}

// answerOf is an error as a server sends it: the category decides on the status, and whether there is advice to retry.
// context has the key and value of an entry, or nothing.
func answerOf(category int, code, cause string, context ...string) http.HandlerFunc {
	to := categories[category]
	body := map[string]any{
		"code": code, "cause": cause, "correlationId": nil, "traceId": nil, "resources": [][]string{}, "errorCategory": category,
		"grpcCodeValue": to.grpc, "retryInfo": nil, "definiteAnswer": nil,
		"context": map[string]string{"category": fmt.Sprint(category), "definite_answer": "false", "participant": "p"},
	}
	switch category {
	case 1, 2, 3, 12:
		body["retryInfo"] = "1 second"
	case 4, 6, 7: // kept back
		body["errorCategory"], body["code"], body["cause"] = -1, "NA", "A security-sensitive error has been received"
	}
	for i := 0; i+1 < len(context); i += 2 {
		body["context"].(map[string]string)[context[i]] = context[i+1]
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(to.status)
		_, _ = w.Write(text)
	}
}

// as answers with another status than the category's.
func as(status int, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { handle(restatused{w, status}, r) }
}

type restatused struct {
	http.ResponseWriter
	status int
}

func (r restatused) WriteHeader(int) { r.ResponseWriter.WriteHeader(r.status) }

// verdicts by their names, for the tables.
func given(t *testing.T, err error) (verdict, string) {
	t.Helper()
	require.Error(t, err)
	var p *ledger.Problem
	var b *ledger.Bug
	switch {
	case errors.As(err, &p):
		require.NotEmpty(t, p.Do)
		return act, p.What + ". " + p.Do
	case errors.As(err, &b):
		return bug, b.What
	case errors.Is(err, ledger.ErrNotFound):
		return absent, err.Error()
	case errors.Is(err, ledger.ErrNotOffered):
		return unoffered, err.Error()
	}
	return again, err.Error()
}

// Every code that servers are known to send, as they send it: what it means where it can come.
func TestVerdictOfEachCode(t *testing.T) {
	t.Parallel()
	updates, snapshot := purpose{about: aboutUpdates, offset: 4}, purpose{about: aboutSnapshot, offset: 7}
	resumed := purpose{about: aboutSnapshot, offset: 7, token: ledger.Token{Kind: ledger.TokenList, Value: "dG9rZW4="}}
	contract, update, vetting := purpose{about: aboutContract}, purpose{about: aboutUpdate}, purpose{about: aboutVetting}
	const names = "the participant does not know a package, template or interface that it was asked for. " +
		"check --templates and --interfaces (#package-name:Module:Entity), or upload the package to the participant first"
	const never = "the participant was asked for something that makes no sense"
	const token = "the server refuses the token from which the snapshot was to be continued. a token is only good with the same participant"
	for i, row := range []struct {
		answer http.HandlerFunc
		asked  purpose
		want   verdict
		says   string
		wait   time.Duration
	}{
		{answerOf(12, "OFFSET_AFTER_LEDGER_END", "Begin offset (9) is after ledger end (5)"), updates, act,
			"the participant's ledger ends below an offset that it had before (reading after offset 4). the participant was restored", time.Second},
		{answerOf(12, "OFFSET_AFTER_LEDGER_END", "ACS at offset (7) is after ledger end (5)"), snapshot, act,
			"offset 7 is above the ledger end. choose an --at-offset at or below the ledger end", time.Second},
		{answerOf(12, "OFFSET_AFTER_LEDGER_END", "no"), purpose{}, act, "what was asked for is above the ledger end. give an offset", time.Second},
		{answerOf(9, "OFFSET_OUT_OF_RANGE", "End offset 3 is before begin offset 4."), updates, bug, never, 0},
		{answerOf(8, "NEGATIVE_OFFSET", "no"), updates, bug, never, 0},
		{answerOf(8, "NON_POSITIVE_OFFSET", "no"), snapshot, bug, never, 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "Updates request from 4 to 12 precedes pruned offset 9", "earliest_offset", "9"), updates, act,
			"the participant is pruned up to offset 9, and updates after offset 4 are needed. what is missing can't be had", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "Transactions request from 4 to 12 precedes pruned offset 9"), updates, act,
			"the participant is pruned up to offset 9, and", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "gone", "earliest_offset", "many"), updates, act,
			"the participant has pruned updates above offset 4. what is missing", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "Active contracts request at offset 7 precedes pruned offset 9", "earliest_offset", "9"), snapshot, act,
			"the participant is pruned up to offset 9, above the snapshot's offset 7. choose the ledger end or an --at-offset at or above", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "no", "earliest_offset", "3"), resumed, act,
			"reassignments are in flight at offset 7, and the participant has pruned what is needed to show them. choose the ledger end or another " +
				"offset with --at-offset, or wait until the reassignments are completed and try again; begin again with --restart", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "no", "earliest_offset", "9"), resumed, act,
			"the participant is pruned up to offset 9, above the snapshot's offset 7. choose the ledger end or an --at-offset " +
				"at or above the offset up to which it is pruned; begin again with --restart", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "no", "earliest_offset", "3"), snapshot, act,
			"reassignments are in flight at offset 7, and", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "no"), snapshot, act,
			"either it is pruned above that, or reassignments are in flight", 0},
		{plain(413, "no"), snapshot, act, "too large, even with a limit of 1. raise http-list-max-elements-limit", 0},
		{answerOf(7, "", ""), purpose{need: readAs(alice.Parties)}, act,
			"read as alice::1, bob::1, carol::1 and 1 more parties. " +
				"grant the user CanReadAs (or CanActAs) for each party of --parties", 0},
		{answerOf(9, "PARTICIPANT_PRUNED_DATA_ACCESSED", "no"), contract, act, "the participant has pruned what was asked for. it can't be had", 0},
		{answerOf(9, "PARTICIPANT_DATA_ACCESSED_AFTER_LEDGER_END", "no", "latest_offset", "5"), updates, again, "PARTICIPANT_DATA_ACCESSED_AFTER_LEDGER_END", 0},
		{answerOf(8, "DESCENDING_ORDER_MISSING_END", "no"), updates, bug, never, 0},
		{answerOf(11, "UPDATE_NOT_FOUND", "no"), update, absent, "not found: test: HTTP status 404 Not Found: UPDATE_NOT_FOUND", 0},
		{answerOf(11, "CONTRACT_PAYLOAD_NOT_FOUND", "no"), contract, absent, "not found: test: HTTP status 404 Not Found: CONTRACT_PAYLOAD_NOT_FOUND", 0},
		{answerOf(11, "CONTRACT_EVENTS_NOT_FOUND", "no"), contract, absent, "CONTRACT_EVENTS_NOT_FOUND", 0},
		{answerOf(11, "PACKAGE_NAMES_NOT_FOUND", "no"), updates, act, names, 0},
		{answerOf(11, "NO_TEMPLATES_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME", "no"), snapshot, act, names, 0},
		{answerOf(11, "NO_INTERFACE_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME", "no"), updates, act, names, 0},
		{answerOf(11, "TEMPLATES_OR_INTERFACES_NOT_FOUND", "no"), update, act, names, 0},
		{answerOf(8, "MISSING_FIELD", "The submitted command is missing a mandatory field: update_format"), updates, bug, never, 0},
		{answerOf(8, "INVALID_FIELD", "Invalid field packageId"), updates, act,
			"the participant refuses the request as invalid. check --parties, --templates and --interfaces; templates and interfaces are written", 0},
		{answerOf(8, "INVALID_ARGUMENT", "no"), purpose{}, act, "the participant refuses the request as invalid. check --parties", 0},
		{answerOf(8, "INVALID_ARGUMENT", "no"), contract, act, "refuses the request as invalid. check the contract's id", 0},
		{answerOf(8, "INVALID_ARGUMENT", "no"), update, act, "refuses the request as invalid. check the update's id", 0},
		{answerOf(8, "INVALID_ARGUMENT", "no"), vetting, act, "refuses the request as invalid. check --synchronizer and, of a change", 0},
		{answerOf(8, "INVALID_CONTINUATION_TOKEN", "no"), resumed, act, token, 0},
		{answerOf(8, "INVALID_ACS_PAGE_TOKEN", "no"), resumed, act, token, 0},
		{answerOf(8, "INVALID_FIELD", "Invalid field stream_continuation_token"), resumed, act, token, 0},
		{plain(400, "Invalid value for: body (Illegal base64 character at 'streamContinuationToken')"), resumed, act, token, 0},
		{answerOf(8, "INVALID_CONTINUATION_TOKEN", "no"), purpose{}, act, "the server refuses the token from which reading was to be continued. begin again", 0},
		{answerOf(8, "INVALID_UPDATES_PAGE_TOKEN", "no"), updates, bug, never, 0},
		{as(413, answerOf(2, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED", "(201) is greater than the node limit (200).")), updates, act,
			"the server says that the request or its answer is too large, even with a limit of 1. raise http-list-max-elements-limit", time.Second},
		{answerOf(6, "", "", "ledger_api_error", "invalid token"), purpose{}, act,
			"the participant wants a token and none is configured. give the file that holds it with --ledger-token-file", 0},
		{answerOf(7, "", ""), purpose{need: readAs(nil)}, act, "the participant does not let the token's user read as any party. grant the user", 0},
		{answerOf(4, "", ""), updates, again, "HTTP status 500 Internal Server Error: NA: A security-sensitive error", 0},
		{answerOf(2, "ACCESS_TOKEN_EXPIRED", "no"), updates, again, "the token expired during the request: ", time.Second},
		{answerOf(2, "STALE_STREAM_AUTHORIZATION", "no"), updates, again, "the rights of the token's user changed during", time.Second},
		{answerOf(9, "PACKAGE_SERVICE_CANNOT_AUTODETECT_SYNCHRONIZER", "no"), vetting, act,
			"the participant can't tell which synchronizer is meant: it is connected to several, or to none. name it with --synchronizer", 0},
		{answerOf(9, "TOPOLOGY_SERIAL_MISMATCH", "no"), vetting, act,
			"the vetted packages have another serial than was expected: somebody else changed them, or the serial is wrong. look at the present state", 0},
		{answerOf(9, "TOPOLOGY_DEPENDENCIES_NOT_VETTED", "no"), vetting, act,
			"the change would leave packages vetted that need others which are not. vet the dependencies too", 0},
		{answerOf(11, "TOPOLOGY_CANNOT_VET_DUE_TO_MISSING_PACKAGES", "no"), vetting, act,
			"the participant does not have a package that is to be vetted, or one that it needs. upload the package", 0},
		{answerOf(11, "UNRESOLVED_VETTING_REFERENCE", "no"), vetting, act, "no package of the participant fits one of the references. check its id", 0},
		{answerOf(9, "AMBIGUOUS_VETTING_REFERENCE", "no"), vetting, act, "several packages fit one of the references, and to vet takes exactly one. name", 0},
		{answerOf(8, "NOT_VALID_UPGRADE_PACKAGE", "no"), vetting, act, "a package is no valid upgrade of another vetted one of its name. take a version", 0},
		{answerOf(8, "KNOWN_PACKAGE_VERSION", "no"), vetting, act, "two different packages of the same name and version would be vetted. unvet the other", 0},
		{answerOf(9, "PACKAGE_SERVICE_NOT_CONNECTED_TO_SYNCHRONIZER", "no"), vetting, act, "the participant is not connected to the synchronizer. connect it", 0},
		{answerOf(11, "SYNCHRONIZER_NOT_FOUND", "no"), vetting, act, "the participant does not know the synchronizer. name one", 0},
		{answerOf(11, "TOPOLOGY_STORE_NOT_FOUND", "no"), vetting, act, "the participant does not know the synchronizer. name one", 0},
		{answerOf(8, "INVALID_TOKEN", "no"), purpose{}, act, "the participant wants a token and none is configured", 0},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			judged(t, row.answer, row.asked, row.want, row.says, row.wait)
		})
	}
}

// judged lets a server answer and requires the verdict.
func judged(t *testing.T, answer http.HandlerFunc, q purpose, want verdict, says string, wait time.Duration) {
	t.Helper()
	f := newFake(t, map[string]http.HandlerFunc{"/test": answer})
	c := newClient(t, f, with35, anyParty)
	_, err := c.do(t.Context(), jsonhttp.Request{Operation: "test", Path: "/test"})
	explained := c.explain(t.Context(), err, q)
	verdict, text := given(t, explained)
	require.Equal(t, want, verdict, "%v", explained)
	require.Contains(t, text, says)
	var e *Error
	require.ErrorAs(t, explained, &e, "what the server said is kept")
	require.Equal(t, wait, e.Wait())
	require.Equal(t, explained, c.explain(t.Context(), explained, q), "nothing is explained twice")
}

// Every status that servers send, with codes that are not known, and those that a proxy may send.
func TestVerdictOfEachStatus(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   verdict
		says   string
		wait   time.Duration
	}{
		"unavailable":                {answerOf(1, "SERVICE_NOT_RUNNING", "no"), again, "503 Service Unavailable: SERVICE_NOT_RUNNING: no", time.Second},
		"contention":                 {answerOf(2, "REQUEST_ALREADY_IN_FLIGHT", "no"), again, "409 Conflict", time.Second},
		"overload":                   {as(429, answerOf(2, "PARTICIPANT_BACKPRESSURE", "no")), again, "429 Too Many Requests", time.Second},
		"deadline":                   {answerOf(3, "REQUEST_DEADLINE_EXCEEDED", "no"), again, "504 Gateway Timeout", time.Second},
		"internal":                   {answerOf(4, "", ""), again, "500 Internal Server Error", 0},
		"security alert":             {answerOf(5, "TOPOLOGY_INVALID_TX_SIGNATURE", "no"), act, "refuses the request as invalid", 0},
		"no token":                   {answerOf(6, "", ""), act, "wants a token", 0},
		"no right":                   {answerOf(7, "", ""), act, "does not let the token's user in. see that the user exists", 0},
		"invalid":                    {answerOf(8, "SOMETHING_NEW", "no"), act, "refuses the request as invalid", 0},
		"invalid now":                {answerOf(9, "SOMETHING_NEW", "no"), again, "SOMETHING_NEW", 0},
		"exists already":             {answerOf(10, "SOMETHING_NEW", "no"), again, "SOMETHING_NEW", 0},
		"not there":                  {answerOf(11, "SOMETHING_NEW", "no"), again, "SOMETHING_NEW", 0},
		"beyond the end":             {answerOf(12, "SOMETHING_NEW", "no"), again, "SOMETHING_NEW", time.Second},
		"not implemented":            {answerOf(14, "UNSUPPORTED_OPERATION", "no"), unoffered, "501 Not Implemented", 0},
		"cancelled":                  {plain(499, ""), again, "HTTP status 499", 0},
		"unknown":                    {cantonError(500, "NA", "no", ""), again, "500 Internal Server Error: NA: no", 0},
		"invalid, in gRPC's words":   {legacy(400, 3), act, "refuses the request as invalid", 0},
		"precondition, in its words": {legacy(400, 9), again, "Status description not available", 0},
		"undecodable":                {plain(400, "Invalid value for: body (expected an object)"), act, "refuses the request as invalid", 0},
		"too large a request":        {plain(413, "EntityStreamSizeException: incoming entity size exceeded size limit (10485760 bytes)!"), act, "too large, even with a limit of 1", 0},
		"unknown path":               {unknownPath, unoffered, "the server does not offer this operation", 0},
		"other method":               {plain(405, "HTTP method not allowed"), unoffered, "405 Method Not Allowed", 0},
		"too late":                   {plain(503, "The server was not able to produce a timely response to your request."), again, "timely response", 0},
		"proxy: bad request":         {plain(400, "<html>400"), again, `the answer begins "<html>400"`, 0},
		"proxy: wants to be paid":    {plain(402, ""), again, "402 Payment Required", 0},
		"proxy: forbids":             {plain(403, "denied"), unoffered, "the server does not offer this operation", 0},
		"proxy: timeout":             {plain(408, ""), again, "408 Request Timeout", 0},
		"proxy: teapot":              {plain(418, "sorry"), again, "418 I'm a teapot", 0},
		"proxy: too early":           {plain(425, ""), again, "425 Too Early", 0},
		"proxy: bad gateway":         {plain(502, "nginx"), again, "502 Bad Gateway", 0},
		"proxy: odd":                 {plain(599, ""), again, "HTTP status 599", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judged(t, row.answer, purpose{}, row.want, row.says, row.wait)
		})
	}
}

// legacy is an error that the server has no code of its own for.
func legacy(status, grpc int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"code":"Status description not available","cause":"X","context":{},"resources":[],"errorCategory":-1,"grpcCodeValue":%d}`, grpc)
	}
}

// A code that is ruled on belongs to the table above; a mistake of ours is told as one.
func TestEachRulingSaysWhatItMust(t *testing.T) {
	t.Parallel()
	for code, r := range rulings {
		switch r.verdict {
		case act:
			require.NotEmpty(t, r.what, code)
			require.NotEmpty(t, r.do, code)
		case bug:
			require.NotEmpty(t, r.what, code)
			require.Empty(t, r.do, code)
		default:
			require.Empty(t, r.do, code)
		}
	}
}
