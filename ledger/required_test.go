package ledger

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// A member that a server always sends stops the decoding where it is absent or null, and the error names it; one that
// some version or some case leaves out may be absent or null.
func TestRequiredAndOptionalMembers(t *testing.T) {
	t.Parallel()
	const (
		inCreated = "contractId templateId packageName signatories witnessParties createdAt"
		optional  = "observers createArgument contractKey contractKeyHash createdEventBlob interfaceViews representativePackageId acsDelta"
		inAssign  = "source target reassignmentId reassignmentCounter createdEvent"
		inUnass   = "contractId templateId packageName source target reassignmentId reassignmentCounter nodeId offset witnessParties"
	)
	update := func(body []byte) error { _, err := DecodeUpdateList(body, 0); return err }
	entries := func(body []byte) error { _, err := DecodeContractEntries(body); return err }
	rows := []struct {
		name     string
		element  string
		path     string // to the object
		decode   func([]byte) error
		required string
		optional string
	}{
		{"transaction", transaction(5, archived(5, 0)), "update/Transaction/value", update,
			"updateId offset synchronizerId recordTime effectiveAt events",
			"commandId workflowId traceContext externalTransactionHash transactionHash paidTrafficCost"},
		{"reassignment", reassignment(5, unassigned(5, 0)), "update/Reassignment/value", update,
			"updateId offset recordTime events", "commandId workflowId synchronizerId traceContext paidTrafficCost"},
		{"topology", topology(5, authorization("Added")), "update/TopologyTransaction/value", update,
			"updateId offset synchronizerId recordTime events", "traceContext"},
		{"checkpoint", checkpoint(5), "update/OffsetCheckpoint/value", update, "offset synchronizerTimes", ""},
		{"synchronizer time", checkpoint(5), "update/OffsetCheckpoint/value/synchronizerTimes/0", update, "synchronizerId recordTime", ""},
		{"created", transaction(5, created(5, 0)), "update/Transaction/value/events/0/CreatedEvent", update,
			"nodeId " + inCreated, "offset " + optional},
		{"view", transaction(5, created(5, 0)), "update/Transaction/value/events/0/CreatedEvent/interfaceViews/0", update,
			"interfaceId viewStatus", "viewValue implementationPackageId"},
		{"view status", transaction(5, created(5, 0)), "update/Transaction/value/events/0/CreatedEvent/interfaceViews/0/viewStatus", update,
			"code message", "details"},
		{"archived", transaction(5, archived(5, 0)), "update/Transaction/value/events/0/ArchivedEvent", update,
			"nodeId contractId templateId packageName witnessParties", "offset implementedInterfaces"},
		{"exercised", transaction(5, exercised(5, 0)), "update/Transaction/value/events/0/ExercisedEvent", update,
			"nodeId contractId templateId packageName choice consuming actingParties witnessParties lastDescendantNodeId",
			"offset interfaceId choiceArgument exerciseResult implementedInterfaces acsDelta"},
		{"assigned", reassignment(5, assigned(5, 0)), "update/Reassignment/value/events/0/JsAssignmentEvent", update, inAssign, "submitter"},
		{"unassigned", reassignment(5, unassigned(5, 0)), "update/Reassignment/value/events/0/JsUnassignedEvent/value", update, inUnass,
			"submitter assignmentExclusivity"},
		{"authorization", topology(5, authorization("Onboarding")),
			"update/TopologyTransaction/value/events/0/event/ParticipantAuthorizationOnboarding/value", update,
			"partyId participantId participantPermission", ""},
		{"entry", activeEntry(), "", entries, "contractEntry", "workflowId streamContinuationToken"},
		{"active", activeEntry(), "contractEntry/JsActiveContract", entries, "createdEvent synchronizerId reassignmentCounter", ""},
		{"created of an entry", activeEntry(), "contractEntry/JsActiveContract/createdEvent", entries, "offset nodeId " + inCreated, optional},
		{"incomplete unassigned", incompleteUnassignedEntry(), "contractEntry/JsIncompleteUnassigned", entries, "createdEvent unassignedEvent", ""},
		{"unassigned of an entry", incompleteUnassignedEntry(), "contractEntry/JsIncompleteUnassigned/unassignedEvent", entries, inUnass,
			"submitter assignmentExclusivity"},
		{"incomplete assigned", incompleteAssignedEntry(), "contractEntry/JsIncompleteAssigned", entries, "assignedEvent", ""},
		{"assigned of an entry", incompleteAssignedEntry(), "contractEntry/JsIncompleteAssigned/assignedEvent", entries, inAssign, "submitter"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			requireMembers(t, 0, row.element, row.path, func(element string) error { return row.decode(list(element)) }, row.required, row.optional)
		})
	}
}

// requireMembers leaves each member of the object at path out of an element of an answer, and sends null for it. The
// element of an answer that is no list is -1.
func requireMembers(t *testing.T, element int, sample, path string, decode func(string) error, required, optional string) {
	t.Helper()
	require.NoError(t, decode(sample))
	for _, absent := range []bool{true, false} {
		for field := range strings.FieldsSeq(required) {
			err := decode(without(t, sample, path, field, absent))
			var decodeError *DecodeError
			require.ErrorAs(t, err, &decodeError, field)
			require.ErrorIs(t, err, errMissing, field)
			require.Equal(t, element, decodeError.Element)
			require.True(t, decodeError.Field == field || strings.HasSuffix(decodeError.Field, "."+field), "%v names %s", err, field)
		}
		for field := range strings.FieldsSeq(optional) {
			require.NoError(t, decode(without(t, sample, path, field, absent)), field)
		}
	}
}

// badBody is one that must be refused, and the whole sentence that the user sees.
type badBody struct{ body, want string }

// requireRefused decodes bodies, of which nothing may be returned.
func requireRefused[T any](t *testing.T, decode func([]byte) (T, error), rows []badBody) {
	t.Helper()
	for _, row := range rows {
		got, err := decode([]byte(row.body))
		require.EqualError(t, err, row.want)
		requireDecodeError(t, err)
		require.Zero(t, got, row.want)
	}
}

// without is the element without the member of the object at path, or with null for it.
func without(t *testing.T, element, path, field string, absent bool) string {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal([]byte(element), &tree))
	at := tree
	for step := range strings.SplitSeq(path, "/") {
		switch level := at.(type) {
		case map[string]any:
			if step != "" {
				at = level[step]
			}
		case []any:
			at = level[step[0]-'0']
		}
	}
	object, ok := at.(map[string]any)
	require.True(t, ok, "%s is no object", path)
	require.Contains(t, object, field)
	if absent {
		delete(object, field)
	} else {
		object[field] = nil
	}
	text, err := json.Marshal(tree)
	require.NoError(t, err)
	return string(text)
}
