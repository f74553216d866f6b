package ledger

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Samples of the server's JSON, with every key that Canton 3.5 sends, and the way back: the JSON of what was decoded.
// Times, ids and parties are made up.

const (
	sampleTemplate  = "0b3f41ae:Splice.Amulet:Amulet"
	sampleInterface = "718a0f77:Splice.Api.Token.HoldingV1:Holding"
)

func list(elements ...string) []byte { return []byte("[" + strings.Join(elements, ",") + "]") }

func transaction(offset int64, events ...string) string {
	return fmt.Sprintf(`{"update":{"Transaction":{"value":{"updateId":"tx-%[1]d","commandId":"","workflowId":"flow",`+
		`"effectiveAt":"2025-10-14T11:29:20.015513Z","events":[%[2]s],"offset":%[1]d,"synchronizerId":"sync::1",`+
		`"traceContext":{"traceparent":"00-ab-cd-01","tracestate":null},"recordTime":"2025-10-14T11:29:21Z",`+
		`"externalTransactionHash":"q80=","paidTrafficCost":3163,"transactionHash":""}}}}`, offset, strings.Join(events, ","))
}

func reassignment(offset int64, events ...string) string {
	return fmt.Sprintf(`{"update":{"Reassignment":{"value":{"updateId":"re-%[1]d","commandId":"cmd","workflowId":"",`+
		`"offset":%[1]d,"events":[%[2]s],"traceContext":null,"recordTime":"2025-10-14T11:29:21.000Z",`+
		`"synchronizerId":"sync::2","paidTrafficCost":null}}}}`, offset, strings.Join(events, ","))
}

func topology(offset int64, events ...string) string {
	return fmt.Sprintf(`{"update":{"TopologyTransaction":{"value":{"updateId":"to-%[1]d","offset":%[1]d,`+
		`"synchronizerId":"sync::1","recordTime":"2025-10-14T11:29:21.123456789Z","events":[%[2]s],`+
		`"traceContext":{}}}}}`, offset, strings.Join(events, ","))
}

func checkpoint(offset int64) string {
	return fmt.Sprintf(`{"update":{"OffsetCheckpoint":{"value":{"offset":%d,"synchronizerTimes":`+
		`[{"synchronizerId":"sync::1","recordTime":"2025-10-14T11:29:22Z"}]}}}}`, offset)
}

// createdValue is a CreatedEvent without its wrapper.
func createdValue(offset int64, node int) string {
	return fmt.Sprintf(`{"offset":%d,"nodeId":%d,"contractId":"00c%d","templateId":"`+sampleTemplate+`",`+
		`"contractKey":{"_1":"k", "_2":null},"contractKeyHash":"AQI=","createArgument":{"owner": "alice", "amount":"1.0000000000"},`+
		`"createdEventBlob":"","interfaceViews":[{"interfaceId":"`+sampleInterface+`","viewStatus":{"code":0,"message":"","details":[]},`+
		`"viewValue":{"n":1e2},"implementationPackageId":"0b3f41ae"},{"interfaceId":"`+sampleInterface+`","viewStatus":`+
		`{"code":9,"message":"no view","details":[{"typeUrl":"t","value":"AA==","unknownFields":{"fields":{}},"valueDecoded":{"a": null}}]},`+
		`"viewValue":null,"implementationPackageId":null}],"witnessParties":["alice"],"signatories":["alice","dso"],"observers":[],`+
		`"createdAt":"2025-10-14T11:29:20.015513Z","packageName":"splice-amulet","representativePackageId":"0b3f41ae","acsDelta":true}`,
		offset, node, node)
}

func created(offset int64, node int) string {
	return `{"CreatedEvent":` + createdValue(offset, node) + `}`
}

func archived(offset int64, node int) string {
	return fmt.Sprintf(`{"ArchivedEvent":{"offset":%d,"nodeId":%d,"contractId":"00a%d","templateId":"`+sampleTemplate+`",`+
		`"witnessParties":["alice"],"packageName":"splice-amulet","implementedInterfaces":["`+sampleInterface+`"]}}`, offset, node, node)
}

func exercised(offset int64, node int) string {
	return fmt.Sprintf(`{"ExercisedEvent":{"offset":%d,"nodeId":%d,"contractId":"00e%d","templateId":"`+sampleTemplate+`",`+
		`"interfaceId":"`+sampleInterface+`","choice":"Transfer","choiceArgument":{"to":"bob"},"actingParties":["alice"],"consuming":true,`+
		`"witnessParties":["alice","bob"],"lastDescendantNodeId":%d,"exerciseResult":{},"packageName":"splice-amulet",`+
		`"implementedInterfaces":[],"acsDelta":false}}`, offset, node, node, node+1)
}

func assignedValue(offset int64, node int) string {
	return `{"source":"sync::1","target":"sync::2","reassignmentId":"r1","submitter":"alice","reassignmentCounter":3,"createdEvent":` +
		createdValue(offset, node) + `}`
}

func assigned(offset int64, node int) string {
	return `{"JsAssignmentEvent":` + assignedValue(offset, node) + `}`
}

func unassignedValue(offset int64, node int) string {
	return fmt.Sprintf(`{"reassignmentId":"r1","contractId":"00u%d","templateId":"`+sampleTemplate+`","source":"sync::1",`+
		`"target":"sync::2","submitter":"","reassignmentCounter":9007199254740993,"assignmentExclusivity":"2025-10-15T00:00:00Z",`+
		`"witnessParties":["alice"],"packageName":"splice-amulet","offset":%d,"nodeId":%d}`, node, offset, node)
}

func unassigned(offset int64, node int) string {
	return `{"JsUnassignedEvent":{"value":` + unassignedValue(offset, node) + `}}`
}

func authorization(kind string) string {
	permission := `,"participantPermission":"PARTICIPANT_PERMISSION_SUBMISSION"`
	if kind == "Revoked" {
		permission = ""
	}
	return `{"event":{"ParticipantAuthorization` + kind + `":{"value":{"partyId":"alice","participantId":"p1"` + permission + `}}}}`
}

func entry(variant string) string {
	return `{"workflowId":"","contractEntry":` + variant + `,"streamContinuationToken":"dG9rZW4="}`
}

func activeEntry() string {
	return entry(`{"JsActiveContract":{"createdEvent":` + createdValue(7, 1) + `,"synchronizerId":"sync::1","reassignmentCounter":0}}`)
}

func incompleteUnassignedEntry() string {
	return entry(`{"JsIncompleteUnassigned":{"createdEvent":` + createdValue(7, 1) + `,"unassignedEvent":` + unassignedValue(8, 0) + `}}`)
}

func incompleteAssignedEntry() string {
	return entry(`{"JsIncompleteAssigned":{"assignedEvent":` + assignedValue(9, 0) + `}}`)
}

// swap replaces the first occurrence of old, which must be there.
func swap(text, old, new string) string {
	if !strings.Contains(text, old) {
		panic("sample holds no " + old)
	}
	return strings.Replace(text, old, new, 1)
}

// everyUpdate is a list with every kind of update and event, known and unknown, and unknown members at every level.
func everyUpdate() []byte {
	unknownMembers := swap(transaction(20, swap(created(20, 0), `"acsDelta":true`, `"acsDelta":null,"newFlag":{"a": [1, 2]}`),
		swap(swap(created(20, 1), `"code":0,`, `"code":0,"reason":"x","lang":"en",`), `"viewValue"`, `"cached":true,"viewValue"`),
		swap(archived(20, 2), `"nodeId"`, `"Nodeid":5,"nodeId"`), swap(exercised(20, 3), `"choice"`, `"cost":1.50,"choice"`)),
		`"tracestate":null`, `"tracestate":"s","baggage":"b"`)
	unknownMembers = swap(unknownMembers, `"commandId"`, `"priority": 7,"commandId"`)
	unknownMembers = swap(unknownMembers, `{"value":`, `{"besideValue":1,"value":`)
	unknownMembers = swap(unknownMembers, `{"update":`, `{"besideUpdate":[],"update":`)
	plainEnvelope := swap(checkpoint(40), `{"update":`, `{"seq":1,"update":`)
	plainEnvelope = swap(plainEnvelope, `{"value":`, `{"beside":{},"value":`)
	plainEnvelope = swap(plainEnvelope, `"synchronizerTimes":[`, `"more":0,"synchronizerTimes":[{"synchronizerId":"sync::0","recordTime":"1970-01-01T00:00:00Z","lag":1},`)
	return list(
		transaction(10, created(10, 0), archived(10, 1), exercised(10, 2), `{"RekeyedEvent":{"nodeId":3,"key": null}}`,
			`{"Odd":{"value":{"nodeId":4}}}`, `{"Odder":"text"}`),
		transaction(11),
		unknownMembers,
		reassignment(30, assigned(30, 0), unassigned(30, 1), swap(unassigned(30, 2), `{"value"`, `{"beside":true,"value"`),
			swap(assigned(30, 3), `"source"`, `"fee":"1","source"`), `{"JsSplitEvent":{"value":{"nodeId":4}}}`),
		plainEnvelope,
		checkpoint(40),
		topology(41, authorization("Added"), authorization("Changed"), authorization("Revoked"), authorization("Onboarding"),
			`{"event":{"Empty":{}}}`, swap(swap(authorization("Added"), `{"event"`, `{"index":5,"event"`), `{"value":{`, `{"v":1,"value":{"w":2,`),
			`{"event":{"ParticipantRetired":{"value":{"participantId":"p1"}}},"index":6}`),
		`{"update":{"NewKind":{"value":{"offset":42,"updateId":"new-42","synchronizerId":"sync::1","recordTime":"2025-10-14T11:30:00Z","x": 1}}},"seq":2}`,
		`{"update":{"FlatKind":{"offset":43}}}`,
		swap(swap(reassignment(44), `"paidTrafficCost":null`, `"paidTrafficCost":12`), `"commandId"`, `"lane":1,"commandId"`),
		swap(topology(45), `"events"`, `"serial":4,"events"`),
	)
}

// everyEntry is a list with every kind of snapshot entry, and unknown members at every level.
func everyEntry() []byte {
	extended := swap(incompleteAssignedEntry(), `"source"`, `"fee":"1","source"`)
	extended = swap(extended, `{"assignedEvent"`, `{"besideEvent":1,"assignedEvent"`)
	extended = swap(extended, `"contractKey"`, `"newKey":1,"contractKey"`)
	return list(
		activeEntry(), incompleteUnassignedEntry(), incompleteAssignedEntry(), entry(`{"JsEmpty":{}}`),
		entry(`{"JsFrozen":{"value":{"nodeId":3}}}`), extended, entry(`{"JsEmpty":{"why":"gone"}}`),
		swap(swap(activeEntry(), `"synchronizerId"`, `"frozen":false,"synchronizerId"`), `"workflowId":"",`, `"workflowId":null,"page":1,`),
		swap(incompleteUnassignedEntry(), `"unassignedEvent":{`, `"at":"x","unassignedEvent":{"fee":"1",`),
	)
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
	for e := range u.All {
		switch e := e.(type) {
		case *CreatedEvent:
			if e.Origin == OriginTransaction {
				all = append(all, placed{e.NodeID, object1("CreatedEvent", rebuildCreated(*e))})
			}
		case *AssignedEvent, *UnassignedEvent, *TopologyEvent, *UnknownElement: // below
		default: // an event of a transaction, by the name of its type
			kind := reflect.ValueOf(e).Elem()
			event, _ := rebuilt(kind.Interface())
			event["offset"] = u.Offset
			all = append(all, placed{event["nodeId"].(int32), object1(kind.Type().Name(), event)})
		}
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
		if err := json.Unmarshal(e.Raw, &event, json.WithUnmarshalers(rawLeaves), jsontext.AllowInvalidUTF8(true)); err != nil {
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

// otherNames are of members that have another name than the fields that hold them.
var otherNames = map[string]string{
	"CreatedEvent.Argument": "createArgument", "CreatedEvent.Blob": "createdEventBlob", "ExercisedEvent.Argument": "choiceArgument",
	"ExercisedEvent.Result": "exerciseResult", "TopologyEvent.Permission": "participantPermission",
}

// rebuilt is an event as its fields say it: each is a member of its name. What its Extra has of other levels is beside.
func rebuilt(e any) (event members, beside map[string]members) {
	event = members{}
	for field, value := range reflect.ValueOf(e).Fields() {
		name := cmp.Or(otherNames[reflect.TypeOf(e).Name()+"."+field.Name], memberName(field.Name))
		switch value := value.Interface().(type) {
		case JSON:
			if field.Name == "Extra" {
				beside = event.extra(value)
			} else {
				event.payload(name, value)
			}
		case []byte:
			event.bytes(name, value)
		case []string:
			event.texts(name, value)
		case *string:
			event.text(name, value)
		case *bool:
			add(event, name, value)
		case Time:
			event.time(name, value)
		case Origin, TopologyEventKind, []InterfaceView: // said by other things
		default:
			event[name] = value
		}
	}
	return event, beside
}

// memberName is acsDelta for ACSDelta, and contractId for ContractID.
func memberName(field string) string {
	field = strings.Replace(strings.Replace(field, "ACS", "Acs", 1), "ID", "Id", 1)
	return strings.ToLower(field[:1]) + field[1:]
}

func rebuildCreated(e CreatedEvent) members {
	event, _ := rebuilt(e)
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
	event, beside := rebuilt(e)
	return event, beside["$envelope"]
}

func rebuildTopology(e TopologyEvent) members {
	value, beside := rebuilt(e)
	delete(value, "nodeId") // the server sends none
	name := map[TopologyEventKind]string{
		TopologyAdded: "Added", TopologyChanged: "Changed", TopologyRevoked: "Revoked", TopologyOnboarding: "Onboarding",
	}[e.Kind]
	return object1("event", object1("ParticipantAuthorization"+name, object1("value", value))).merge(beside["$envelope"])
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
