package participant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

const (
	wildcard = `{"identifierFilter":{"WildcardFilter":{"value":{"includeCreatedEventBlob":false}}}}`
	iou      = `{"identifierFilter":{"TemplateFilter":{"value":{"templateId":"#iou:Iou:Iou","includeCreatedEventBlob":true}}}}`
	token    = `{"identifierFilter":{"TemplateFilter":{"value":{"templateId":"#token:Token:Token","includeCreatedEventBlob":true}}}}`
	holding  = `{"identifierFilter":{"InterfaceFilter":{"value":{"interfaceId":"#api:Holding:Holding","includeInterfaceView":true,"includeCreatedEventBlob":false}}}}`
	blobbed  = `{"identifierFilter":{"InterfaceFilter":{"value":{"interfaceId":"#api:Holding:Holding","includeInterfaceView":true,"includeCreatedEventBlob":true}}}}`
)

func TestFormatsSayTheScope(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		scope         ledger.Scope
		event, update string
	}{
		"any party, everything": {
			scope: ledger.Scope{Shape: ledger.ShapeACSDelta, Reassignments: true, Topology: true},
			event: `{"filtersByParty":{},"filtersForAnyParty":{"cumulative":[` + wildcard + `]},"verbose":false}`,
			update: `{"includeTransactions":{"eventFormat":EVENT,"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA"},
				"includeReassignments":EVENT,
				"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{"parties":[]}}}`,
		},
		"interfaces alone: their views, and everything else as well": {
			scope:  ledger.Scope{Shape: ledger.ShapeACSDelta, Interfaces: []string{"#api:Holding:Holding"}},
			event:  `{"filtersByParty":{},"filtersForAnyParty":{"cumulative":[` + wildcard + `,` + holding + `]},"verbose":false}`,
			update: `{"includeTransactions":{"eventFormat":EVENT,"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA"}}`,
		},
		"parties, templates, interfaces, blobs, effects": {
			scope: ledger.Scope{Parties: []string{"bob::1", "alice::1"}, Templates: []string{"#token:Token:Token", "#iou:Iou:Iou"},
				Interfaces: []string{"#api:Holding:Holding"}, Shape: ledger.ShapeLedgerEffects, Blobs: true, Topology: true},
			event: `{"filtersByParty":{
				"alice::1":{"cumulative":[` + iou + `,` + token + `,` + blobbed + `]},
				"bob::1":{"cumulative":[` + iou + `,` + token + `,` + blobbed + `]}},"verbose":false}`,
			update: `{"includeTransactions":{"eventFormat":EVENT,"transactionShape":"TRANSACTION_SHAPE_LEDGER_EFFECTS"},
				"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{"parties":["alice::1","bob::1"]}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := formatsOf(test.scope)
			require.NoError(t, err)
			require.JSONEq(t, test.event, string(got.Event))
			require.JSONEq(t, strings.ReplaceAll(test.update, "EVENT", test.event), string(got.Update))
		})
	}
}

// A continuation token depends on the bytes of the format.
func TestEqualScopesGiveEqualFormats(t *testing.T) {
	t.Parallel()
	one, err := formatsOf(ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: []string{"a", "b", "c"}, Templates: []string{"#x:X:X", "#y:Y:Y"}})
	require.NoError(t, err)
	other, err := formatsOf(ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: []string{"c", "b", "a", "b"}, Templates: []string{"#y:Y:Y", "#x:X:X"}})
	require.NoError(t, err)
	require.Equal(t, one, other)
	const filter = `{"cumulative":[{"identifierFilter":{"TemplateFilter":{"value":{"includeCreatedEventBlob":false,"templateId":"#x:X:X"}}}},` +
		`{"identifierFilter":{"TemplateFilter":{"value":{"includeCreatedEventBlob":false,"templateId":"#y:Y:Y"}}}}]}`
	require.Equal(t, `{"filtersByParty":{"a":`+filter+`,"b":`+filter+`,"c":`+filter+`},"verbose":false}`, string(one.Event))
	many := ledger.Scope{Shape: ledger.ShapeLedgerEffects, Reassignments: true}
	for i := range 50 {
		many.Parties = append(many.Parties, fmt.Sprint("party ", i))
	}
	before, err := formatsOf(many)
	require.NoError(t, err)
	for range 20 {
		again, err := formatsOf(many)
		require.NoError(t, err)
		require.Equal(t, before, again)
	}
}
