package ledger

import (
	"fmt"
	"strings"
)

// networkPage is an answer of a Scan's /v2/updates.
func networkPage(updates ...string) []byte {
	return []byte(`{"transactions":[` + strings.Join(updates, ",") + `]}`)
}

// networkTransaction is a transaction of the update "u<n>", recorded n seconds after a full minute. Its events are
// those that networkCreated and networkExercised make.
func networkTransaction(migration, n int, roots string, events ...string) string {
	return fmt.Sprintf(`{"update_id":"u%[2]d","migration_id":%[1]d,"workflow_id":"","record_time":"2025-10-14T11:29:%02[2]d.015513Z",`+
		`"synchronizer_id":"sync::1","effective_at":"2025-10-14T11:29:00Z","root_event_ids":[%[3]s],"events_by_id":{%[4]s},`+
		`"external_transaction_hash":"abcd"}`, migration, n, roots, strings.Join(events, ","))
}

// networkCreatedEvent is an event of update "u<n>" without its name.
func networkCreatedEvent(n, node int) string {
	return fmt.Sprintf(`{"event_type":"created_event","event_id":"u%d:%d","contract_id":"00c%[2]d","template_id":"`+sampleTemplate+`",`+
		`"package_name":"splice-amulet","create_arguments":{"dso":"dso", "amount":"0E-10"},"created_at":"2025-10-14T11:29:00Z",`+
		`"signatories":["alice","dso"],"observers":[]}`, n, node)
}

func networkCreation(n, node int) string {
	return fmt.Sprintf(`"u%d:%d":`, n, node) + networkCreatedEvent(n, node)
}

func networkExercise(n, node int, consuming bool, children string) string {
	return fmt.Sprintf(`"u%[1]d:%[2]d":{"event_type":"exercised_event","event_id":"u%[1]d:%[2]d","contract_id":"00e%[2]d",`+
		`"template_id":"`+sampleTemplate+`","package_name":"splice-amulet","choice":"Transfer","choice_argument":{"error":"not known","value":{"a": 1}},`+
		`"child_event_ids":[%[4]s],"exercise_result":{},"consuming":%[3]t,"acting_parties":["alice"],"interface_id":"`+sampleInterface+`"}`,
		n, node, consuming, children)
}

func networkAssignment(migration, n int) string {
	return fmt.Sprintf(`{"update_id":"u%[2]d","offset":"0001","record_time":"2025-10-14T11:29:%02[2]d.000000Z","event":{"submitter":"alice",`+
		`"source_synchronizer":"sync::1","target_synchronizer":"sync::2","migration_id":%[1]d,"unassign_id":"r1","reassignment_counter":1,`+
		`"created_event":%[3]s}}`, migration, n, networkCreatedEvent(n, 0))
}

func networkUnassignment(migration, n int) string {
	return fmt.Sprintf(`{"update_id":"u%[2]d","offset":"1","record_time":"2025-10-14T11:29:%02[2]d.000000Z","event":{"submitter":"alice",`+
		`"source_synchronizer":"sync::1","target_synchronizer":"sync::2","migration_id":%[1]d,"unassign_id":"r1","reassignment_counter":1,`+
		`"contract_id":"00c0"}}`, migration, n)
}

// networkTree is a transaction whose events stand in the order of their ids as texts: 10 and 11 before 2.
func networkTree(migration, n int) string {
	id := func(nodes ...int) string {
		ids := make([]string, len(nodes))
		for i, node := range nodes {
			ids[i] = fmt.Sprintf(`"u%d:%d"`, n, node)
		}
		return strings.Join(ids, ",")
	}
	events := []string{networkExercise(n, 0, false, id(1, 4)), networkExercise(n, 1, true, id(2, 3)), networkCreation(n, 10), networkCreation(n, 11)}
	events = append(events, networkCreation(n, 2), networkExercise(n, 3, true, ""), networkExercise(n, 4, true, id(5, 6, 7)), networkCreation(n, 5),
		networkCreation(n, 6), networkCreation(n, 7), networkExercise(n, 8, true, id(9, 10)), networkCreation(n, 9))
	return networkTransaction(migration, n, id(0, 8, 11), events...)
}

// networkOrphans is a transaction whose only root is not there, so that nothing leads to its events of an unknown type.
func networkOrphans(n int) string {
	return networkTransaction(1, n, fmt.Sprintf(`"u%d:9"`, n), fmt.Sprintf(`"u%d:0":{"event_type":"new"}`, n), fmt.Sprintf(`"u%d:1":{"event_type":"new"}`, n))
}

// everyNetworkUpdate has every kind of update and event, known and unknown, with members that are absent, null and not
// known.
func everyNetworkUpdate() []byte {
	odd := networkTransaction(1, 10, `"u10:0","other"`, `"u10:0":{"event_type":"seen_event","event_id":"u10:0","child_event_ids":["u10:1"],"n":1}`,
		swap(networkCreation(10, 1), `"observers"`, `"agreement":{"a": [1, 2]},"observers"`),
		strings.ReplaceAll(networkCreation(10, 2), `"u10:2"`, `"other"`))
	odd = swap(odd, `"workflow_id":""`, `"workflow_id":null,"verdict":"ok"`)
	nulls := networkTransaction(1, 11, `"u11:0"`, networkExercise(11, 0, true, ""))
	for _, member := range []string{`"abcd"`, `{"error":"not known","value":{"a": 1}}`, `"` + sampleInterface + `"`} {
		nulls = swap(nulls, ":"+member, ":null")
	}
	return networkPage(
		networkTransaction(1, 1, ""), networkTransaction(1, 2, `"u2:0"`, networkCreation(2, 0)), networkTree(1, 3),
		networkUnassignment(1, 4), networkAssignment(1, 5), odd, nulls,
		swap(networkAssignment(2, 1), `"submitter"`, `"reason":"x","submitter"`),
		" "+strings.ReplaceAll(swap(networkUnassignment(2, 2), `"event"`, `"hint":7,"event"`), `":`, `" : `),
		networkTransaction(3, 0, `"other"`, strings.ReplaceAll(networkCreation(0, 0), `"u0:0"`, `"other"`)),
	)
}
