package participant

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func everyFilter() Filters {
	return Filters{Cumulative: []CumulativeFilter{
		{Wildcard: &WildcardFilter{IncludeCreatedEventBlob: true}},
		{Template: &TemplateFilter{TemplateID: "#iou:Iou:Iou"}},
		{Interface: &InterfaceFilter{InterfaceID: "#api:Holding:Holding", IncludeInterfaceView: true}},
		{},
	}}
}

const everyFilterJSON = `{"cumulative":[
	{"identifierFilter":{"WildcardFilter":{"value":{"includeCreatedEventBlob":true}}}},
	{"identifierFilter":{"TemplateFilter":{"value":{"templateId":"#iou:Iou:Iou","includeCreatedEventBlob":false}}}},
	{"identifierFilter":{"InterfaceFilter":{"value":{"interfaceId":"#api:Holding:Holding","includeInterfaceView":true,"includeCreatedEventBlob":false}}}},
	{"identifierFilter":{"Empty":{}}}]}`

// The JSON of every request and variant (interface.md, "Messages").
func TestRequestsAsTheyAreSent(t *testing.T) {
	t.Parallel()
	every := everyFilter()
	event := EventFormat{FiltersByParty: map[string]Filters{"alice": every, "bob": {}}, FiltersForAnyParty: &every, Verbose: true}
	const eventJSON = `{"filtersByParty":{"alice":` + everyFilterJSON + `,"bob":{"cumulative":[]}},"filtersForAnyParty":` + everyFilterJSON + `,"verbose":true}`
	for _, row := range []struct {
		request any
		want    string
	}{
		{snapshotRequest{ActiveAtOffset: 9, EventFormat: &event, StreamContinuationToken: "dG9r"},
			`{"activeAtOffset":9,"eventFormat":` + eventJSON + `,"streamContinuationToken":"dG9r"}`},
		{updatesRequest{BeginExclusive: 1, EndInclusive: new(ledger.Offset(2)), UpdateFormat: &UpdateFormat{
			IncludeTransactions:  &TransactionFormat{EventFormat: event, TransactionShape: ShapeLedgerEffects},
			IncludeReassignments: &event,
			IncludeTopologyEvents: &TopologyFormat{
				HostingEvents: &ParticipantAuthorizationFormat{Parties: []string{"alice"}}},
		}}, `{"beginExclusive":1,"endInclusive":2,"updateFormat":{
			"includeTransactions":{"eventFormat":` + eventJSON + `,"transactionShape":"TRANSACTION_SHAPE_LEDGER_EFFECTS"},
			"includeReassignments":` + eventJSON + `,
			"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{"parties":["alice"]}}}}`},
		{updatesRequest{UpdateFormat: &UpdateFormat{IncludeTopologyEvents: &TopologyFormat{
			HostingEvents: &ParticipantAuthorizationFormat{}}}},
			`{"beginExclusive":0,"updateFormat":{"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{"parties":[]}}}}`},
		{UpdateFormat{}, `{}`},
		{contractRequest{ContractID: "00ab"}, `{"contractId":"00ab","queryingParties":[]}`},
		{contractRequest{ContractID: "a\"\n\u0000\u2028é", QueryingParties: []string{"a", "b"}},
			`{"contractId":"a\"\n\u0000\u2028é","queryingParties":["a","b"]}`},
	} {
		got, err := json.Marshal(row.request)
		require.NoError(t, err)
		require.JSONEq(t, row.want, string(got))
	}
}

// A continuation token depends on the format, so its bytes must not depend on the order of a map.
func TestEqualFormatsAreEqualBytes(t *testing.T) {
	t.Parallel()
	var before string
	for range 20 {
		byParty := map[string]Filters{}
		for i := range 50 {
			byParty[fmt.Sprint("party ", i)] = everyFilter()
		}
		text := ""
		for _, request := range []any{
			snapshotRequest{EventFormat: &EventFormat{FiltersByParty: byParty}},
			updatesRequest{UpdateFormat: &UpdateFormat{IncludeReassignments: &EventFormat{FiltersByParty: byParty}}},
		} {
			got, err := json.Marshal(request)
			require.NoError(t, err)
			text += string(got)
		}
		if before != "" {
			require.Equal(t, before, text)
		}
		before = text
	}
}
