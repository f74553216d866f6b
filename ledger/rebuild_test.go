package ledger

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// TestDecodingLosesNothing rebuilds the server's JSON from what was decoded and compares it key by key with what
// was sent. What may differ, and nothing else:
//
//   - a member that is null may be absent,
//   - the order of an object's members, and white space and escapes outside of payloads (payloads are the same bytes),
//   - the text form of a time, not the time itself to the nanosecond,
//   - an event's own offset where it was absent or zero: it is its update's,
//   - the order of events: it is that of their node ids, those without one last,
//   - unassignId of 3.3 comes back as reassignmentId, its later name.
func TestDecodingLosesNothing(t *testing.T) {
	t.Parallel()
	t.Run("updates", func(t *testing.T) {
		t.Parallel()
		requireRebuiltUpdates(t, everyUpdate())
	})
	t.Run("entries", func(t *testing.T) {
		t.Parallel()
		requireRebuiltEntries(t, everyEntry())
	})
	t.Run("recorded updates", func(t *testing.T) {
		t.Parallel()
		requireRebuiltUpdates(t, recordedUpdates(t))
	})
	t.Run("recorded entries", func(t *testing.T) {
		t.Parallel()
		requireRebuiltEntries(t, recorded(t, "active-contracts-6.json"))
	})
}

// recorded reads a recorded response, or skips where the recordings are not beside the project.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "shared", "recorded", name))
	if os.IsNotExist(err) {
		t.Skip("no recorded responses at ../shared/recorded beside the project")
	}
	require.NoError(t, err)
	return body
}

// recordedUpdates is the recording with its offsets, renumbered from 0, moved to where a ledger's begin: at 1.
func recordedUpdates(t *testing.T) []byte {
	t.Helper()
	offsets := regexp.MustCompile(`"offset" : \d+`)
	return offsets.ReplaceAllFunc(recorded(t, "updates-ledger-effects-31.json"), func(member []byte) []byte {
		n, err := strconv.Atoi(string(bytes.TrimPrefix(member, []byte(`"offset" : `))))
		require.NoError(t, err)
		return strconv.AppendInt([]byte(`"offset" : `), int64(n)+1, 10)
	})
}

func requireRebuiltUpdates(t *testing.T, body []byte) {
	t.Helper()
	list, err := DecodeUpdateList(body, 0)
	require.NoError(t, err)
	var sent []jsontext.Value
	require.NoError(t, json.Unmarshal(body, &sent))
	require.Len(t, sent, list.Elements)
	updates, checkpoints := list.Updates, list.Checkpoints
	for _, original := range sent {
		var rebuilt members
		if bytes.Contains(original, []byte(`"OffsetCheckpoint"`)) {
			rebuilt, checkpoints = rebuildCheckpoint(checkpoints[0]), checkpoints[1:]
		} else {
			rebuilt, updates = rebuildUpdate(updates[0]), updates[1:]
		}
		requireSameJSON(t, original, rebuilt)
	}
}

func requireRebuiltEntries(t *testing.T, body []byte) {
	t.Helper()
	entries, err := DecodeContractEntries(body)
	require.NoError(t, err)
	var sent []jsontext.Value
	require.NoError(t, json.Unmarshal(body, &sent))
	require.Len(t, sent, len(entries))
	for i, original := range sent {
		requireSameJSON(t, original, rebuildEntry(entries[i]))
	}
}

func requireSameJSON(t *testing.T, original jsontext.Value, rebuilt members) {
	t.Helper()
	text, err := json.Marshal(rebuilt)
	require.NoError(t, err)
	want, got := comparable(t, "", original, false), comparable(t, "", text, true)
	require.Equal(t, want, got)
}

var (
	payloadNames = []string{"createArgument", "contractKey", "choiceArgument", "exerciseResult", "viewValue", "details"}
	timeNames    = []string{"recordTime", "effectiveAt", "createdAt", "assignmentExclusivity"}
)

// comparable turns JSON into maps, lists and texts in which only the differences above have gone.
// In what was rebuilt the payloads are Base64, because the encoder would write them in its own way.
func comparable(t *testing.T, name string, value jsontext.Value, rebuilt bool) any {
	t.Helper()
	if slices.Contains(payloadNames, name) {
		payload := []byte(value)
		if rebuilt {
			require.NoError(t, json.Unmarshal(value, &payload))
		}
		return string(payload)
	}
	switch value.Kind() {
	case '{':
		var in map[string]jsontext.Value
		require.NoError(t, json.Unmarshal(value, &in))
		out := map[string]any{}
		for name, member := range in {
			if member.Kind() == 'n' {
				continue
			}
			if name == "unassignId" {
				name = "reassignmentId"
			}
			out[name] = comparable(t, name, member, rebuilt)
		}
		return out
	case '[':
		var in []jsontext.Value
		require.NoError(t, json.Unmarshal(value, &in))
		out := []any{}
		for _, item := range in {
			out = append(out, comparable(t, "", item, rebuilt))
		}
		return out
	case '"':
		var text string
		require.NoError(t, json.Unmarshal(value, &text))
		if slices.Contains(timeNames, name) {
			at, err := time.Parse(time.RFC3339Nano, text)
			require.NoError(t, err)
			return at.UTC()
		}
		return text
	default:
		return string(value)
	}
}

// members is a JSON object in the making. Members that are nil are left out by add.
type members map[string]any

func object1(name string, value any) members { return members{name: value} }

func (m members) text(name string, value *string) {
	if value != nil {
		m[name] = *value
	}
}

func (m members) texts(name string, value []string) {
	if value != nil {
		m[name] = value
	}
}

func (m members) bytes(name string, value []byte) {
	if value != nil {
		m[name] = base64.StdEncoding.EncodeToString(value)
	}
}

func (m members) payload(name string, value JSON) {
	if value != nil {
		m[name] = []byte(value)
	}
}

func (m members) time(name string, value Time) {
	switch {
	case value.Exact != "":
		m[name] = value.Exact
	case value.Valid:
		m[name] = value.Time.Format(time.RFC3339Nano)
	}
}

func add[T any](m members, name string, value *T) {
	if value != nil {
		m[name] = *value
	}
}

// extra puts the members of Extra back and returns those that belong to other levels.
func (m members) extra(extra JSON) map[string]members {
	elsewhere := map[string]members{}
	if extra == nil {
		return elsewhere
	}
	var all map[string]jsontext.Value
	if err := json.Unmarshal(extra, &all); err != nil {
		panic(err)
	}
	for name, value := range all {
		if name[0] != '$' {
			m[name] = value
			continue
		}
		var level members
		if err := json.Unmarshal(value, &level, json.WithUnmarshalers(rawLeaves)); err != nil {
			panic(err)
		}
		elsewhere[name] = level
	}
	return elsewhere
}

// rawLeaves keeps values that stand in an any as raw JSON, but for objects.
var rawLeaves = json.UnmarshalFromFunc(func(dec *jsontext.Decoder, value *any) error {
	if dec.PeekKind() == '{' {
		var level members
		err := json.UnmarshalDecode(dec, &level)
		*value = level
		return err
	}
	raw, err := dec.ReadValue()
	*value = raw.Clone()
	return err
})

// merge puts one object into another, level by level.
func (m members) merge(other members) members {
	for name, value := range other {
		below, ok := value.(members)
		existing, both := m[name].(members)
		if ok && both {
			existing.merge(below)
		} else {
			m[name] = value
		}
	}
	return m
}

func rebuildUpdate(u Update) members {
	value := members{"offset": u.Offset}
	if u.Kind == KindUnknown {
		element := members{}
		envelope := element.extra(u.Extra)["$envelope"]
		return object1("update", u.Unknown[0].Raw).merge(envelope)
	}
	value["updateId"] = u.ID
	value.text("commandId", u.CommandID)
	value.text("workflowId", u.WorkflowID)
	value.text("synchronizerId", u.SynchronizerID)
	value.time("recordTime", u.RecordTime)
	value.time("effectiveAt", u.EffectiveAt)
	value.bytes("externalTransactionHash", u.ExternalTransactionHash)
	value.bytes("transactionHash", u.TransactionHash)
	add(value, "paidTrafficCost", u.PaidTrafficCost)
	elsewhere := value.extra(u.Extra)
	trace := elsewhere["$traceContext"]
	if trace == nil && (u.TraceParent != nil || u.TraceState != nil) {
		trace = members{}
	}
	if trace != nil {
		trace.text("traceparent", u.TraceParent)
		trace.text("tracestate", u.TraceState)
		value["traceContext"] = trace
	}
	value["events"] = rebuildEvents(u)
	name := map[UpdateKind]string{
		KindTransaction: "Transaction", KindReassignment: "Reassignment", KindTopology: "TopologyTransaction",
	}[u.Kind]
	return object1("update", object1(name, object1("value", value))).merge(elsewhere["$envelope"])
}

func rebuildCheckpoint(c OffsetCheckpoint) members {
	value := members{"offset": c.Offset}
	elsewhere := value.extra(c.Extra)
	times := []members{}
	for i, t := range c.Times {
		entry := object1("synchronizerId", t.SynchronizerID)
		entry.time("recordTime", t.RecordTime)
		if more, ok := elsewhere["$synchronizerTimes"]["["+strconv.Itoa(i)+"]"].(members); ok {
			entry.merge(more)
		}
		times = append(times, entry)
	}
	value["synchronizerTimes"] = times
	return object1("update", object1("OffsetCheckpoint", object1("value", value))).merge(elsewhere["$envelope"])
}

// rebuildEvents puts the events of all kinds back into one list.
func rebuildEvents(u Update) []members {
	type placed struct {
		node  int32
		event members
	}
	const last = 1<<31 - 1
	var all []placed
	for _, e := range u.Created {
		if e.Origin == OriginTransaction {
			all = append(all, placed{e.NodeID, object1("CreatedEvent", rebuildCreated(e))})
		}
	}
	for _, e := range u.Archived {
		event := members{"offset": u.Offset, "nodeId": e.NodeID, "contractId": e.ContractID, "templateId": e.TemplateID, "packageName": e.PackageName}
		event.texts("witnessParties", e.WitnessParties)
		event.texts("implementedInterfaces", e.ImplementedInterfaces)
		event.extra(e.Extra)
		all = append(all, placed{e.NodeID, object1("ArchivedEvent", event)})
	}
	for _, e := range u.Exercised {
		all = append(all, placed{e.NodeID, object1("ExercisedEvent", rebuildExercised(u.Offset, e))})
	}
	for i, e := range u.Assigned {
		all = append(all, placed{e.NodeID, object1("JsAssignmentEvent", rebuildAssigned(e, u.Created[i]))})
	}
	for _, e := range u.Unassigned {
		event, envelope := rebuildUnassigned(e)
		all = append(all, placed{e.NodeID, object1("JsUnassignedEvent", object1("value", event)).merge(envelope)})
	}
	for _, e := range u.Topology {
		if e.Kind == TopologyUnknown {
			i := slices.IndexFunc(u.Unknown, func(x UnknownElement) bool { return *x.NodeID == e.NodeID })
			none := members{}
			all = append(all, placed{e.NodeID, object1("event", u.Unknown[i].Raw).merge(none.extra(e.Extra)["$envelope"])})
			continue
		}
		all = append(all, placed{e.NodeID, rebuildTopology(e)})
	}
	for _, e := range u.Unknown {
		var event members
		if err := json.Unmarshal(e.Raw, &event, json.WithUnmarshalers(rawLeaves)); err != nil {
			panic(err)
		}
		switch {
		case u.Kind == KindTopology: // placed above
		case e.NodeID == nil:
			all = append(all, placed{last, event})
		default:
			all = append(all, placed{*e.NodeID, event})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.node, b.node) })
	events := []members{}
	for _, p := range all {
		events = append(events, p.event)
	}
	return events
}

func rebuildCreated(e CreatedEvent) members {
	event := members{"offset": e.Offset, "nodeId": e.NodeID, "contractId": e.ContractID, "templateId": e.TemplateID, "packageName": e.PackageName}
	event.text("representativePackageId", e.RepresentativePackageID)
	event.payload("createArgument", e.Argument)
	event.payload("contractKey", e.ContractKey)
	event.bytes("contractKeyHash", e.ContractKeyHash)
	event.texts("signatories", e.Signatories)
	event.texts("observers", e.Observers)
	event.texts("witnessParties", e.WitnessParties)
	event.time("createdAt", e.CreatedAt)
	add(event, "acsDelta", e.ACSDelta)
	event.bytes("createdEventBlob", e.Blob)
	event.extra(e.Extra)
	if e.InterfaceViews == nil {
		return event
	}
	views := []members{}
	for _, v := range e.InterfaceViews {
		view := object1("interfaceId", v.InterfaceID)
		view.payload("viewValue", v.Value)
		view.text("implementationPackageId", v.ImplementationPackageID)
		status := members{}.merge(view.extra(v.Extra)["$viewStatus"])
		add(status, "code", v.StatusCode)
		status.text("message", v.StatusMessage)
		status.payload("details", v.StatusDetails)
		view["viewStatus"] = status
		views = append(views, view)
	}
	event["interfaceViews"] = views
	return event
}

func rebuildExercised(offset Offset, e ExercisedEvent) members {
	event := members{
		"offset": offset, "nodeId": e.NodeID, "contractId": e.ContractID, "templateId": e.TemplateID, "packageName": e.PackageName,
		"choice": e.Choice, "consuming": e.Consuming, "lastDescendantNodeId": e.LastDescendantNodeID,
	}
	event.text("interfaceId", e.InterfaceID)
	event.payload("choiceArgument", e.Argument)
	event.payload("exerciseResult", e.Result)
	event.texts("actingParties", e.ActingParties)
	event.texts("witnessParties", e.WitnessParties)
	event.texts("implementedInterfaces", e.ImplementedInterfaces)
	add(event, "acsDelta", e.ACSDelta)
	event.extra(e.Extra)
	return event
}

func rebuildAssigned(e AssignedEvent, c CreatedEvent) members {
	event := members{
		"source": e.Source, "target": e.Target, "reassignmentId": e.ReassignmentID, "reassignmentCounter": e.ReassignmentCounter,
		"createdEvent": rebuildCreated(c),
	}
	event.text("submitter", e.Submitter)
	event.extra(e.Extra)
	return event
}

func rebuildUnassigned(e UnassignedEvent) (event, envelope members) {
	event = members{
		"offset": e.Offset, "nodeId": e.NodeID, "contractId": e.ContractID, "templateId": e.TemplateID, "packageName": e.PackageName,
		"source": e.Source, "target": e.Target, "reassignmentId": e.ReassignmentID, "reassignmentCounter": e.ReassignmentCounter,
	}
	event.text("submitter", e.Submitter)
	event.time("assignmentExclusivity", e.AssignmentExclusivity)
	event.texts("witnessParties", e.WitnessParties)
	return event, event.extra(e.Extra)["$envelope"]
}

func rebuildTopology(e TopologyEvent) members {
	value := members{}
	value.text("partyId", e.PartyID)
	value.text("participantId", e.ParticipantID)
	value.text("participantPermission", e.Permission)
	envelope := value.extra(e.Extra)["$envelope"]
	name := map[TopologyEventKind]string{
		TopologyAdded: "Added", TopologyChanged: "Changed", TopologyRevoked: "Revoked", TopologyOnboarding: "Onboarding",
	}[e.Kind]
	return object1("event", object1("ParticipantAuthorization"+name, object1("value", value))).merge(envelope)
}

func rebuildEntry(e ContractEntry) members {
	element := object1("streamContinuationToken", e.Token)
	element.text("workflowId", e.WorkflowID)
	variant := members{}
	switch {
	case e.Active != nil:
		value := members{
			"createdEvent": rebuildCreated(e.Active.Created), "synchronizerId": e.Active.SynchronizerID,
			"reassignmentCounter": e.Active.ReassignmentCounter,
		}
		value.extra(e.Active.Extra)
		variant["JsActiveContract"] = value
	case e.Unassigned != nil:
		event, _ := rebuildUnassigned(e.Unassigned.Unassigned)
		value := members{"createdEvent": rebuildCreated(e.Unassigned.Created), "unassignedEvent": event}
		value.extra(e.Unassigned.Extra)
		variant["JsIncompleteUnassigned"] = value
	case e.Assigned != nil:
		value := object1("assignedEvent", rebuildAssigned(e.Assigned.Assigned, e.Assigned.Created))
		value.extra(e.Assigned.Extra)
		variant["JsIncompleteAssigned"] = value
	case e.Empty:
		variant["JsEmpty"] = members{}
	default:
		element["contractEntry"] = e.Unknown.Raw
	}
	if len(variant) > 0 {
		element["contractEntry"] = variant
	}
	envelope := element.extra(e.Extra)["$envelope"]
	return element.merge(envelope)
}
