package participant

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// The JSON of every request (interface.md, "Messages").
func TestRequestsAsTheyAreSent(t *testing.T) {
	t.Parallel()
	format := jsontext.Value(`{"verbose":false}`)
	for _, row := range []struct {
		request any
		want    string
	}{
		{snapshotRequest{ActiveAtOffset: 9, EventFormat: format, StreamContinuationToken: "dG9r"},
			`{"activeAtOffset":9,"eventFormat":{"verbose":false},"streamContinuationToken":"dG9r"}`},
		{snapshotPageRequest{ActiveAt: 9, EventFormat: format, MaxPageSize: 7, Token: "dG9r"},
			`{"activeAtOffset":9,"eventFormat":{"verbose":false},"maxPageSize":7,"pageToken":"dG9r"}`},
		{updatesRequest{BeginExclusive: 1, EndInclusive: new(ledger.Offset(2)), UpdateFormat: format},
			`{"beginExclusive":1,"endInclusive":2,"updateFormat":{"verbose":false}}`},
		{updatesRequest{UpdateFormat: format}, `{"beginExclusive":0,"updateFormat":{"verbose":false}}`},
		{contractRequest{ContractID: "00ab"}, `{"contractId":"00ab","queryingParties":[]}`},
		{contractRequest{ContractID: "a\"\n\u0000\u2028é", QueryingParties: []string{"a", "b"}},
			`{"contractId":"a\"\n\u0000\u2028é","queryingParties":["a","b"]}`},
	} {
		got, err := json.Marshal(row.request)
		require.NoError(t, err)
		require.JSONEq(t, row.want, string(got))
	}
}
