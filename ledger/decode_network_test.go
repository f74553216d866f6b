package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

func TestNetworkOffsets(t *testing.T) {
	t.Parallel()
	at := func(text string) Time {
		parsed, err := ParseTime(text)
		require.NoError(t, err)
		return parsed
	}
	last := Offset(-1)
	for _, place := range []struct {
		migration int64
		time      string
	}{
		{0, "1970-01-01T00:00:00.000001Z"}, {0, networkTimeLimit}, {1, "1970-01-01T00:00:00Z"}, {1, "2026-01-01T00:00:00.123456Z"},
		{1, "2026-01-01T00:00:00.123457Z"}, {2, "2025-01-01T00:00:00Z"}, {2047, networkTimeLimit},
	} {
		offset, err := NetworkOffset(place.migration, at(place.time))
		require.NoError(t, err)
		require.Greater(t, offset, last)
		last = offset
		migration, recordTime := offset.NetworkPosition()
		require.Equal(t, place.migration, migration)
		require.Equal(t, at(place.time).Time, recordTime)
		require.LessOrEqual(t, offset, LastOfMigration(migration))
	}
	for _, place := range []struct {
		migration  int64
		time, want string
	}{
		{-1, "2026-01-01T00:00:00Z", "migration id -1 is not 0 to 2047"},
		{2048, "2026-01-01T00:00:00Z", "migration id 2048 is not 0 to 2047"},
		{0, "1970-01-01T00:00:00Z", "is offset 0, the beginning of the ledger"},
		{1, "1969-12-31T23:59:59.999999Z", "is not in 1970 to 2112"},
		{1, "2112-09-17T23:53:47.370496Z", "is not in 1970 to 2112"},
		{1, "2026-01-01T00:00:00.1234567Z", "has parts of a microsecond"},
	} {
		_, err := NetworkOffset(place.migration, at(place.time))
		require.ErrorContains(t, err, place.want)
	}
}

func TestTheSampleUpdatesOfANetworkAreTheServices(t *testing.T) {
	t.Parallel()
	body := networkPage(networkTransaction(1, 1, ""), networkTree(1, 2), networkUnassignment(1, 3), networkAssignment(1, 4))
	for _, release := range []string{"0.6", "0.7"} {
		require.NoError(t, openapi.Scan(t, release).CheckResponse("POST", "/v2/updates", 200, body))
	}
}

// TestDecodingOfNetworkUpdatesLosesNothing rebuilds the service's JSON from what was decoded and compares it key by key
// with what was sent. What may differ is what [TestDecodingLosesNothing] lists, and:
//
//   - the offset of an update, which each participant behind the service has another one for,
//   - a migration id or synchronizer beside the event of a reassignment that repeats the event's,
//   - the case of hexadecimal digits.
func TestDecodingOfNetworkUpdatesLosesNothing(t *testing.T) {
	t.Parallel()
	requireRead(t, "network", everyNetworkUpdate())
}

// requireRebuiltNetwork compares updates with what was sent, without what may differ.
func requireRebuiltNetwork(t *testing.T, updates []Update, sent []jsontext.Value) {
	t.Helper()
	require.Len(t, sent, len(updates))
	for i, original := range sent {
		rebuilt, all := rebuildNetworkUpdate(updates[i]), membersIn(t, original)
		lost := []string{"offset"}
		if updates[i].Kind == KindReassignment {
			lost = append(lost, "migration_id", "synchronizer_id")
		}
		for _, name := range lost {
			if all[name] != nil {
				rebuilt[name] = all[name]
			}
		}
		if hash := text(all["external_transaction_hash"]); strings.EqualFold(hash, fmt.Sprint(rebuilt["external_transaction_hash"])) {
			rebuilt["external_transaction_hash"] = hash
		}
		requireSameJSON(t, original, rebuilt)
	}
}

func rebuildNetworkUpdate(u Update) members {
	migration, _ := u.Offset.NetworkPosition()
	value := object1("update_id", u.ID)
	value.text("workflow_id", u.WorkflowID)
	value.time("record_time", u.RecordTime)
	value.time("effective_at", u.EffectiveAt)
	if u.ExternalTransactionHash != nil {
		value["external_transaction_hash"] = fmt.Sprintf("%x", u.ExternalTransactionHash)
	}
	value.extra(u.Extra)
	move := func(submitter *string, source, target, id string, counter int64, extra JSON) members {
		event := members{
			"source_synchronizer": source, "target_synchronizer": target, "migration_id": migration,
			"unassign_id": id, "reassignment_counter": counter,
		}
		event.text("submitter", submitter)
		event.extra(extra)
		value["event"] = event
		return event
	}
	for i, a := range u.Assigned {
		event := move(a.Submitter, a.Source, a.Target, a.ReassignmentID, a.ReassignmentCounter, a.Extra)
		event["created_event"] = rebuildNetworkCreated(u.ID, u.Created[i])
	}
	for _, e := range u.Unassigned {
		move(e.Submitter, e.Source, e.Target, e.ReassignmentID, e.ReassignmentCounter, e.Extra)["contract_id"] = e.ContractID
	}
	if u.Kind == KindTransaction {
		value["migration_id"] = migration
		value.text("synchronizer_id", u.SynchronizerID)
		value["root_event_ids"], value["events_by_id"] = rebuildNetworkTree(u)
	}
	return value
}

// rebuildNetworkTree makes the tree from node ids and last descendants alone, but for the children of events of an
// unknown type.
func rebuildNetworkTree(u Update) (roots []string, events members) {
	roots, events = []string{}, members{}
	type node struct {
		number, last int32
		event        members
		children     []string // nil: it can have none
	}
	var nodes []node
	below := map[any]bool{} // events of an unknown type
	for _, e := range u.Created {
		nodes = append(nodes, node{e.NodeID, e.NodeID, rebuildNetworkCreated(u.ID, e), nil})
	}
	for _, e := range u.Exercised {
		event := members{
			"event_type": "exercised_event", "event_id": u.ID + ":" + strconv.Itoa(int(e.NodeID)), "contract_id": e.ContractID,
			"template_id": e.TemplateID, "package_name": e.PackageName, "choice": e.Choice, "consuming": e.Consuming,
		}
		event.text("interface_id", e.InterfaceID)
		event.payload("choice_argument", e.Argument)
		event.payload("exercise_result", e.Result)
		event.texts("acting_parties", e.ActingParties)
		event.extra(e.Extra)
		nodes = append(nodes, node{e.NodeID, e.LastDescendantNodeID, event, []string{}})
	}
	for _, e := range u.Unknown {
		event := members{}
		event.extra(e.Raw)
		for _, body := range event {
			event = members{}
			event.extra(body.(JSON))
		}
		if ids, isList := event["child_event_ids"].(JSON); isList && ids.Kind() == '[' {
			var children []any
			if err := json.Unmarshal(ids, &children, jsontext.AllowInvalidUTF8(true)); err != nil {
				panic(err)
			}
			for _, id := range children {
				below[id] = true
			}
		}
		nodes = append(nodes, node{*e.NodeID, *e.NodeID, event, nil})
	}
	slices.SortFunc(nodes, func(a, b node) int { return int(a.number - b.number) })
	for i := range nodes {
		id := fmt.Sprint(u.ID, ":", nodes[i].number)
		switch own := nodes[i].event["event_id"].(type) {
		case JSON:
			id = text(own)
		case string:
			id = own
		}
		parent := -1
		for j := range i {
			if nodes[j].last >= nodes[i].number {
				parent = j
			}
		}
		switch {
		case below[id]:
		case parent < 0:
			roots = append(roots, id)
		default:
			nodes[parent].children = append(nodes[parent].children, id)
		}
		events[id] = nodes[i].event
	}
	for i := range nodes {
		if nodes[i].event["event_type"] == "exercised_event" {
			nodes[i].event["child_event_ids"] = nodes[i].children
		}
	}
	return roots, events
}

func rebuildNetworkCreated(updateID string, e CreatedEvent) members {
	event := members{
		"event_type": "created_event", "event_id": updateID + ":" + strconv.Itoa(int(e.NodeID)), "contract_id": e.ContractID,
		"template_id": e.TemplateID, "package_name": e.PackageName, "signatories": e.Signatories, "observers": e.Observers,
	}
	event.payload("create_arguments", e.Argument)
	event.time("created_at", e.CreatedAt)
	event.extra(e.Extra)
	return event
}

// Node ids are those of the walk through the tree, whatever order the events stand in.
func TestNetworkEventsAreNumberedDepthFirst(t *testing.T) {
	t.Parallel()
	updates, err := DecodeNetworkUpdates(networkPage(networkTree(3, 7)), 0, "dso")
	require.NoError(t, err)
	u := updates[0]
	want, err := NetworkOffset(3, Time{Time: time.Date(2025, 10, 14, 11, 29, 7, 15_513_000, time.UTC), Valid: true})
	require.NoError(t, err)
	require.Equal(t, want, u.Offset)
	var created []int32
	for _, e := range u.Created {
		require.Equal(t, "00c"+strconv.Itoa(int(e.NodeID)), e.ContractID)
		require.Equal(t, u.Offset, e.Offset)
		require.Nil(t, e.WitnessParties, "they are not served")
		require.Nil(t, e.ACSDelta)
		created = append(created, e.NodeID)
	}
	require.Equal(t, []int32{2, 5, 6, 7, 9, 10, 11}, created)
	last := map[int32]int32{}
	for _, e := range u.Exercised {
		require.Equal(t, "00e"+strconv.Itoa(int(e.NodeID)), e.ContractID)
		last[e.NodeID] = e.LastDescendantNodeID
	}
	require.Equal(t, map[int32]int32{0: 7, 1: 3, 3: 3, 4: 7, 8: 10}, last)
}

// What the reader only witnesses does not count as active: its end may not be shown.
func TestNetworkContractsOfOthersAreWitnessed(t *testing.T) {
	t.Parallel()
	of := func(n int, signatories string) string {
		return swap(networkCreation(n, 1), `"signatories":["alice","dso"]`, `"signatories":[`+signatories+`]`)
	}
	body := networkPage(
		networkTransaction(1, 1, `"u1:0","u1:1"`, of(1, `"bob"`), swap(networkExercise(1, 0, true, ""), `00e0`, `00c1`)),
		networkTransaction(1, 2, `"u2:0","u2:1"`, of(2, `"dso"`), swap(networkExercise(2, 0, true, ""), `00e0`, `00c1`)),
		networkTransaction(1, 3, `"u3:1"`, swap(of(3, `"bob"`), `"observers":[]`, `"observers":["dso"]`)),
	)
	got, err := DecodeNetworkUpdates(body, 0, "dso")
	require.NoError(t, err)
	require.Equal(t, new(false), got[0].Created[0].ACSDelta)
	require.Equal(t, new(false), got[0].Exercised[0].ACSDelta)
	for _, u := range got[1:] {
		require.Nil(t, u.Created[0].ACSDelta)
	}
	require.Nil(t, got[1].Exercised[0].ACSDelta)
	got, err = DecodeNetworkUpdates(body, 0, "")
	require.NoError(t, err)
	require.Nil(t, got[0].Created[0].ACSDelta, "whose view it is is not known")
}

func TestReassignmentsOfANetwork(t *testing.T) {
	t.Parallel()
	got, err := DecodeNetworkUpdates(networkPage(networkUnassignment(1, 4), networkAssignment(2, 3)), 0, "")
	require.NoError(t, err)
	require.Equal(t, KindReassignment, got[0].Kind)
	require.Equal(t, "sync::1", *got[0].SynchronizerID, "where it leaves")
	require.Equal(t, "sync::2", *got[1].SynchronizerID, "where it arrives")
	require.Equal(t, []UnassignedEvent{{
		Offset: got[0].Offset, ContractID: "00c0", Source: "sync::1", Target: "sync::2", ReassignmentID: "r1", Submitter: new("alice"), ReassignmentCounter: 1,
	}}, got[0].Unassigned)
	require.Equal(t, OriginAssignment, got[1].Created[0].Origin)
	require.Equal(t, "00c0", got[1].Assigned[0].ContractID)
	migration, _ := got[1].Offset.NetworkPosition()
	require.EqualValues(t, 2, migration)
}

// Each row is an answer that must be refused, and the sentence that the user sees.
func TestDecodeNetworkUpdatesRefuses(t *testing.T) {
	t.Parallel()
	const at = `element 0 with update id "u3", `
	tree := func(old, new string) string { return string(networkPage(swap(networkTree(1, 3), old, new))) }
	moved := func(old, new string) string { return string(networkPage(swap(networkAssignment(1, 5), old, new))) }
	after := func(first, second string) string { return string(networkPage(first, second)) }
	rows := []struct{ name, body, want string }{
		{"nothing", ``, `response: the body is empty: unexpected EOF`},
		{"an error", `{"error":"no"}`, `response, transactions: is required, and absent or null`},
		{"cut off", tree(`"child_event_ids":["u3:2"`, `"child_event_ids":["u3:2","`), `not valid JSON at byte`},
		{"no update id", tree(`"update_id":"u3",`, ``), `element 0, update_id: is required, and absent or null`},
		{"no migration", tree(`"migration_id":1,`, ``), at + `migration_id: is required, and absent or null`},
		{"no events", string(networkPage(`{"update_id":"u3","record_time":"2025-10-14T11:29:21Z"}`)), at + `events_by_id: is required, and absent or null`},
		{"no time", tree(`"record_time"`, `"recordTime"`), at + `record_time: is required, and absent or null`},
		{"a migration that does not fit", tree(`"migration_id":1`, `"migration_id":5000`), at + `record_time: migration id 5000 is not 0 to 2047, so it has no place in an offset`},
		{"a time finer than offsets", tree(`03.015513Z`, `03.0155131Z`), at + `record_time: record time 2025-10-14T11:29:03.0155131Z has parts of a microsecond, which have no place in an offset`},
		{"no package", tree(`"package_name":"splice-amulet",`, ``), at + `events_by_id["u3:0"].package_name: is required, and absent or null`},
		{"a payload twice", tree(`"create_arguments":{"dso"`, `"create_arguments":{"dso":1,"dso"`), at + `events_by_id["u3:10"].create_arguments.dso: a member of this name stands twice in the object: duplicate object member name`},
		{"no type", tree(`"event_type":"exercised_event",`, ``), at + `events_by_id["u3:0"].event_type: is required, and absent or null`},
		{"another id", tree(`"event_id":"u3:9"`, `"event_id":"u3:8"`), at + `events_by_id["u3:9"].event_id: is "u3:8", and the event stands under "u3:9"`},
		{"an id twice", tree(`"u3:9":{`, `"u3:8":{`), at + `events_by_id["u3:8"]: a member of this name stands twice in the object: duplicate object member name`},
		{"a child that is not there", tree(`["u3:1","u3:4"]`, `["u3:1","u3:40"]`), at + `events_by_id["u3:0"].child_event_ids: names event "u3:40", which events_by_id does not have`},
		{"a root that is not there", tree(`["u3:0","u3:8"`, `["u3:0","u3:18"`), at + `root_event_ids: names event "u3:18", which events_by_id does not have`},
		{"an event without parent", tree(`["u3:5","u3:6","u3:7"]`, `["u3:5","u3:6"]`), at + `events_by_id["u3:7"].event_id: is "u3:7", which is below no root event`},
		{"an event with two parents", tree(`["u3:5","u3:6","u3:7"]`, `["u3:5","u3:6","u3:7","u3:2"]`), at + `events_by_id["u3:4"].child_event_ids: names event "u3:2", which another list names, or the same one twice`},
		{"a circle", tree(`["u3:9","u3:10"]`, `["u3:9","u3:10","u3:8"]`), at + `events_by_id["u3:8"].child_event_ids: names event "u3:8", which another list names, or the same one twice`},
		{"a circle apart", tree(`"root_event_ids":["u3:0","u3:8","u3:11"]`, `"root_event_ids":["u3:8","u3:11"]`), at + `events_by_id["u3:0"].event_id: is "u3:0", which is below no root event`},
		{"a root twice", tree(`["u3:0","u3:8","u3:11"]`, `["u3:0","u3:8","u3:11","u3:0"]`), at + `root_event_ids: names event "u3:0", which another list names, or the same one twice`},
		{"events of no known type below no root", string(networkPage(networkOrphans(3))), at + `root_event_ids: names event "u3:9", which events_by_id does not have`},
		{"a hash that is none", tree(`"abcd"`, `"abc"`), at + `external_transaction_hash: is not a text of hexadecimal digits: "abc"`},
		{"a time that goes back", after(networkTransaction(1, 5, ""), networkTransaction(1, 4, "")),
			`element 1 with update id "u4", record_time: updates must come in the order of migration id and record time: migration 1, 2025-10-14T11:29:04.015513Z comes after migration 1, 2025-10-14T11:29:05.015513Z`},
		{"the same time", after(networkTransaction(1, 5, ""), networkTransaction(1, 5, "")), `element 1 with update id "u5", record_time: updates must come in the order`},
		{"a migration that falls", after(networkTransaction(2, 4, ""), networkTransaction(1, 5, "")), `element 1 with update id "u5", record_time: updates must come in the order`},
		{"both kinds", moved(`"event":`, `"root_event_ids":[],"event":`), `element 0 with update id "u5", event: stands beside the events of a transaction`},
		{"neither half", moved(`"created_event":{`, `"made_event":{`), `element 0 with update id "u5", event: is neither an assignment, with created_event, nor an unassignment, with contract_id`},
		{"both halves", moved(`"created_event":{`, `"contract_id":"00","created_event":{`), `element 0 with update id "u5", event: is neither an assignment`},
		{"two migrations", moved(`"event":`, `"migration_id":2,"event":`), `element 0 with update id "u5", migration_id: is 2, and that of the event is 1`},
		{"two synchronizers", moved(`"event":`, `"synchronizer_id":"x","event":`), `element 0 with update id "u5", synchronizer_id: is x, and the event is on sync::2`},
	}
	for _, row := range rows {
		require.ErrorContains(t, oracles["network"](t, []byte(row.body)), row.want, row.name)
	}
	below, err := NetworkOffset(1, Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Valid: true})
	require.NoError(t, err)
	_, err = DecodeNetworkUpdates(networkPage(networkTree(1, 3)), below, "")
	require.ErrorContains(t, err, "comes after migration 1, 2026-01-01T00:00:00.000000Z")
}

// A chain of exercises may be as deep as an answer is long.
func TestADeepTreeOfANetwork(t *testing.T) {
	t.Parallel()
	const depth = 50_000
	var events []string
	for i := range depth {
		child := fmt.Sprintf(`"u1:%d"`, i+1)
		if i == depth-1 {
			child = ""
		}
		events = append(events, networkExercise(1, i, false, child))
	}
	got, err := DecodeNetworkUpdate([]byte(networkTransaction(1, 1, `"u1:0"`, events...)), "")
	require.NoError(t, err)
	require.EqualValues(t, depth-1, got.Exercised[0].LastDescendantNodeID)
}
