package participant

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

var alice = ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: []string{"alice::1", "bob::1", "carol::1", "dave::1"}}

func TestUpdateErrorsSayWhatHappenedAndWhatToDo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handle http.HandlerFunc
		scope  ledger.Scope
		want   string
	}{
		"pruned": {
			cantonError(400, codePruned, "Updates request from 4 to 12 precedes pruned offset 9", `"earliest_offset":"9"`), anyParty,
			"the participant is pruned up to offset 9, and updates after offset 4 are needed. what is missing can't be had " +
				"from this participant any more: re-seed an empty database with `backfill`, or read from a participant that still has it",
		},
		"pruned, told in the sentence only": {
			cantonError(400, codePruned, "Transactions request from 4 to 12 precedes pruned offset 9", ""), anyParty,
			"the participant is pruned up to offset 9, and",
		},
		"pruned, not told where": {
			cantonError(400, codePruned, "gone", ""), anyParty, "the participant has pruned updates above offset 4. what is missing",
		},
		"ledger ends below": {
			cantonError(400, codeAfterLedgerEnd, "Begin offset (4) is after ledger end (2)", ""), anyParty,
			"the participant's ledger ends below an offset that it had before (reading after offset 4). the participant was restored",
		},
		"may not read as any party": {
			cantonError(403, "NA", "A security-sensitive error has been received", ""), anyParty,
			"does not let the token's user read as any party. grant the user CanReadAsAnyParty, or name the parties",
		},
		"may not read as these": {
			cantonError(403, "NA", "A security-sensitive error has been received", ""), alice,
			"read as alice::1, bob::1, carol::1 and 1 more parties. grant the user CanReadAs (or CanActAs) for each party of --parties",
		},
		"no token": {
			cantonError(401, "NA", "A security-sensitive error has been received", ""), anyParty,
			"the participant wants a token and none is configured. give the file that holds it with --ledger-token-file",
		},
		"unknown package": {
			cantonError(404, "PACKAGE_NAMES_NOT_FOUND", "The following package names do not match: #iou", ""), anyParty,
			"does not know a package, template or interface that it was asked for. check --templates and --interfaces",
		},
		"unknown template": {
			cantonError(404, "TEMPLATES_OR_INTERFACES_NOT_FOUND", "Templates do not exist", ""), anyParty, "check --templates and --interfaces",
		},
		"unknown template of a package": {
			cantonError(404, "NO_TEMPLATES_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME", "x", ""), anyParty, "check --templates and --interfaces",
		},
		"unknown interface of a package": {
			cantonError(404, "NO_INTERFACE_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME", "x", ""), anyParty, "check --templates and --interfaces",
		},
		"package id as a filter": {
			cantonError(400, "INVALID_FIELD", "The submitted command has a field with invalid value: Invalid field packageId", ""), anyParty,
			"the participant refuses the request as invalid. check --parties, --templates and --interfaces",
		},
		"invalid argument": {cantonError(400, "INVALID_ARGUMENT", "no", ""), anyParty, "refuses the request as invalid"},
		"missing field":    {cantonError(400, "MISSING_FIELD", "no", ""), anyParty, "refuses the request as invalid"},
		"undecodable":      {plain(400, "Invalid value for: body (Missing required field)"), anyParty, "refuses the request as invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: test.handle, pathUpdates: test.handle, pathUpdatesPage: test.handle})
			for _, server := range []Server{with34, with35} {
				c := newClient(t, f, server, test.scope)
				_, err := c.ReadUpdates(t.Context(), 4, 12)
				require.Contains(t, problem(t, err), test.want)
				_, _, err = c.TailUpdates(t.Context(), 4, 1, time.Second)
				require.Contains(t, problem(t, err), test.want)
				var e *Error
				require.ErrorAs(t, err, &e, "what the server said is kept")
			}
		})
	}
}

func TestTroubleThatPassesMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status     int
		code, want string
	}{
		{408, "", "408 Request Timeout"},
		{409, "ACCESS_TOKEN_EXPIRED", "409 Conflict: ACCESS_TOKEN_EXPIRED"},
		{409, "STALE_STREAM_AUTHORIZATION", "STALE_STREAM_AUTHORIZATION"},
		{429, "RESOURCE_EXHAUSTED", "429 Too Many Requests: RESOURCE_EXHAUSTED: sorry (correlation id corr-1)"},
		{499, "", "499"},
		{500, "NA", "500 Internal Server Error: NA: sorry"},
		{501, "UNIMPLEMENTED", "501"},
		{502, "", "502 Bad Gateway"},
		{503, "SERVICE_NOT_RUNNING", "503"},
		{504, "", "504"},
		{400, "PARTICIPANT_DATA_ACCESSED_AFTER_LEDGER_END", "PARTICIPANT_DATA_ACCESSED_AFTER_LEDGER_END"},
		{418, "", `418 I'm a teapot; the answer begins "sorry"`},
	} {
		t.Run(fmt.Sprint(test.status, test.code), func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "7")
				if test.code == "" {
					plain(test.status, "sorry")(w, r)
					return
				}
				cantonError(test.status, test.code, "sorry", `"a":"b","n":1`)(w, r)
			}})
			_, err := newClient(t, f, with35, anyParty).ReadUpdates(t.Context(), 4, 12)
			e := retryable(t, err)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, "updates-page", e.Operation)
			require.Equal(t, test.status, e.Status)
			require.Equal(t, test.code, e.Code)
			require.Equal(t, 7*time.Second, e.RetryAfter)
			if test.code != "" {
				require.Equal(t, map[string]string{"a": "b"}, e.Context)
			}
		})
	}
}

func TestRefusedTokenMayBeTriedAgainAndNamesItsFile(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{
		pathUpdatesPage: cantonError(401, "NA", "A security-sensitive error has been received", `"ledger_api_error":"invalid token"`),
	})
	c := newClient(t, f, with35, anyParty, withToken(t, "s3cret"))
	_, err := c.ReadUpdates(t.Context(), 4, 12)
	require.Equal(t, "invalid token", retryable(t, err).Context["ledger_api_error"])
	require.ErrorContains(t, err, "the participant refused the token of "+c.cfg.TokenFile)
	require.NotContains(t, err.Error(), "s3cret")
}
