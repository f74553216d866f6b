package participant

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func contractAnswer(id string) string {
	return fmt.Sprintf(`{"createdEvent":{"offset":{"no":"offset"},"nodeId":"x","createdEventBlob":7,"interfaceViews":"none","acsDelta":[],
		"contractId":%q,"templateId":"p:M:E","packageName":"n","createArgument":{"a":1},"contractKey":null,"contractKeyHash":"",
		"signatories":["alice"],"observers":[],"witnessParties":["alice"],"createdAt":"2025-01-01T00:00:00Z","representativePackageId":"p"}}`, id)
}

// What interface.md, endpoint 3, rule 3 says is not to be parsed may be anything.
func TestContractByIDParsesNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathContractByID: answer(contractAnswer("00ab"))})
	c := newClient(t, f, Server{}, anyParty)
	got, raw, err := c.ContractByID(t.Context(), "00ab", []string{"bob", "alice"})
	require.NoError(t, err)
	require.Equal(t, "00ab", got.ContractID)
	require.Equal(t, []string{"alice"}, got.WitnessParties)
	require.Equal(t, contractAnswer("00ab"), string(raw))
	sent := f.requests()
	require.Equal(t, map[string]any{"contractId": "00ab", "queryingParties": []any{"bob", "alice"}}, sent[0].body)
	require.Equal(t, "", sent[0].query)
}

func TestLookUpsThatGoWrong(t *testing.T) {
	t.Parallel()
	checkpointAnswer := checkpoint(5)
	good := transaction(5)
	for name, test := range map[string]struct {
		contract, update http.HandlerFunc
		check            func(t *testing.T, err error)
	}{
		"another thing than was asked for": {answer(contractAnswer("00cd")), answer(transaction(6)), func(t *testing.T, err error) {
			_ = retryable(t, err)
			require.Regexp(t, `look up contract "00ab": .* the answer is of another contract, "00cd"|`+
				`look up update "u5": .* the answer is of another update, "u6"`, err.Error())
		}},
		"cut off": {answer(contractAnswer("00ab")[:99]), answer(good[:99]), func(t *testing.T, err error) {
			require.ErrorContains(t, retryable(t, err), "the answer was cut off after 99 bytes")
		}},
		"wrong types": {answer(strings.Replace(contractAnswer("00ab"), `["alice"]`, `{"alice":1}`, 1)), answer(strings.Replace(good, `"events":[]`, `"events":[7]`, 1)),
			func(t *testing.T, err error) {
				var wrong *ledger.DecodeError
				require.ErrorAs(t, err, &wrong)
				require.Contains(t, []string{"createdEvent.signatories", "Transaction.events[0]"}, wrong.Field)
			}},
		"an empty object": {answer(`{}`), answer(`{}`), func(t *testing.T, err error) {
			var wrong *ledger.DecodeError
			require.ErrorAs(t, err, &wrong)
			require.ErrorContains(t, err, "is required")
		}},
		"a list": {answer("[" + contractAnswer("00ab") + "]"), answer("[" + good + "]"), func(t *testing.T, err error) {
			require.ErrorContains(t, err, "is an array where an object is expected")
		}},
		"a checkpoint": {answer(checkpointAnswer), answer(checkpointAnswer), func(t *testing.T, err error) {
			var wrong *ledger.DecodeError
			require.ErrorAs(t, err, &wrong)
		}},
		"not found": {cantonError(404, "CONTRACT_PAYLOAD_NOT_FOUND", "no", ``), cantonError(404, "UPDATE_NOT_FOUND", "no", ``), func(t *testing.T, err error) {
			require.ErrorIs(t, err, ledger.ErrNotFound)
			require.NotErrorIs(t, err, ledger.ErrNotOffered)
		}},
		"not offered": {unknownPath, unknownPath, func(t *testing.T, err error) {
			require.ErrorIs(t, err, ledger.ErrNotOffered)
			require.NotErrorIs(t, err, ledger.ErrNotFound, "what a proxy does not have says nothing of the ledger")
		}},
		"unknown template": {cantonError(404, "PACKAGE_NAMES_NOT_FOUND", "no", ``), cantonError(404, "PACKAGE_NAMES_NOT_FOUND", "no", ``), func(t *testing.T, err error) {
			require.NotErrorIs(t, err, ledger.ErrNotFound)
			require.Contains(t, problem(t, err), "check --templates")
		}},
		"no right": {cantonError(403, "NA", "no", ``), cantonError(403, "NA", "no", ``), func(t *testing.T, err error) {
			require.Contains(t, problem(t, err), "CanReadAs")
		}},
		"away": {plain(503, "away"), plain(503, "away"), func(t *testing.T, err error) {
			require.Equal(t, 503, retryable(t, err).Status)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathContractByID: test.contract, pathUpdateByID: test.update})
			c := newClient(t, f, with35, ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: []string{"alice"}})
			contract, raw, err := c.ContractByID(t.Context(), "00ab", []string{"alice"})
			require.Error(t, err)
			test.check(t, err)
			require.Zero(t, contract)
			require.Nil(t, raw)
			update, raw, err := c.UpdateOfScope(t.Context(), "u5")
			require.Error(t, err)
			test.check(t, err)
			require.Zero(t, update)
			require.Nil(t, raw)
		})
	}
}

func TestUpdateOfUnknownKindMustSayItsID(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdateByID: answer(`{"update":{"New":{"value":{"offset":4}}}}`)})
	_, _, err := newClient(t, f, with35, anyParty).UpdateOfScope(t.Context(), "u4")
	require.ErrorContains(t, retryable(t, err), `another update, ""`)

	f = newFake(t, map[string]http.HandlerFunc{pathUpdateByID: answer(`{"update":{"New":{"value":{"offset":4,"updateId":"u4"}}}}`)})
	got, _, err := newClient(t, f, with35, anyParty).UpdateOfScope(t.Context(), "u4")
	require.NoError(t, err)
	require.Equal(t, ledger.KindUnknown, got.Kind)
}

// Behind the URL another participant answers now: neither what it has nor what it does not have may be believed.
func TestLookUpsNoticeAnotherParticipant(t *testing.T) {
	t.Parallel()
	for name, lookups := range map[string]http.HandlerFunc{
		"found": answer(contractAnswer("00ab")), "not found": cantonError(404, "CONTRACT_PAYLOAD_NOT_FOUND", "no", ``),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var participant atomic.Value
			participant.Store("first")
			f := newFake(t, map[string]http.HandlerFunc{
				pathContractByID: lookups,
				pathVettingList:  answer(`{"vettedPackages":[]}`),
				pathUpdates:      answer(`[]`),
				pathParticipantID: func(w http.ResponseWriter, r *http.Request) {
					answer(fmt.Sprintf(`{"participantId":%q}`, participant.Load()))(w, r)
				},
			})
			c := newClient(t, f, Server{}, anyParty)
			_, err := c.Discover(t.Context())
			require.NoError(t, err)
			participant.Store("second")
			c.connectionChanged()
			_, _, err = c.ContractByID(t.Context(), "00ab", nil)
			require.Contains(t, problem(t, err), "changed from first to second")
			require.NotErrorIs(t, err, ledger.ErrNotFound)
			_, err = c.ListVettedPackages(t.Context(), VettingFilter{})
			require.Contains(t, problem(t, err), "changed from first to second")
		})
	}
}
