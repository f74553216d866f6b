package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

func TestDecodeUpdateListKeepsTheServersOrder(t *testing.T) {
	t.Parallel()
	got, err := DecodeUpdateList(list(checkpoint(9), transaction(10), checkpoint(10), checkpoint(10), transaction(300)), 9)
	require.NoError(t, err)
	require.Equal(t, 5, got.Elements)
	require.Equal(t, Offset(300), got.Last)
	require.Len(t, got.Updates, 2)
	require.Len(t, got.Checkpoints, 3)

	empty, err := DecodeUpdateList([]byte(" [ ] \n"), 9)
	require.NoError(t, err)
	require.Equal(t, UpdateList{}, empty)
}

func TestDecodeTopology(t *testing.T) {
	t.Parallel()
	got, err := DecodeUpdateList(list(topology(7, authorization("Added"), `{"event":{"Empty":{}}}`, authorization("Revoked"))), 0)
	require.NoError(t, err)
	update := got.Updates[0]
	require.Equal(t, KindTopology, update.Kind)
	require.Equal(t, "2025-10-14T11:29:21.123456789Z", update.RecordTime.Exact)
	require.Equal(t, []TopologyEvent{
		{NodeID: 0, Kind: TopologyAdded, PartyID: new("alice"), ParticipantID: new("p1"), Permission: new("PARTICIPANT_PERMISSION_SUBMISSION")},
		{NodeID: 1, Kind: TopologyUnknown},
		{NodeID: 2, Kind: TopologyRevoked, PartyID: new("alice"), ParticipantID: new("p1")},
	}, update.Topology)
	require.Equal(t, []UnknownElement{{NodeID: new(int32(1)), Kind: "Empty", Raw: JSON(`{"Empty":{}}`)}}, update.Unknown)
}

func TestUnknownKindsAreKeptAsSent(t *testing.T) {
	t.Parallel()
	got, err := DecodeUpdateList(list(
		`{"update":{"NewKind":{"value":{ "offset":7,"updateId":"u","synchronizerId":"s","recordTime":"2025-01-01T00:00:00Z","x":"\u0000" }}}}`,
		`{"update":{"FlatKind":{"offset":8,"updateId":7,"value":"\ud800"}}}`,
		transaction(9, `{"NewEvent":{"nodeId":4, "y":1E400}}`, `{"Other":null}`),
	), 0)
	require.NoError(t, err)
	first := got.Updates[0]
	require.Equal(t, KindUnknown, first.Kind)
	require.Equal(t, Offset(7), first.Offset)
	require.Equal(t, "u", first.ID)
	require.Equal(t, "s", *first.SynchronizerID)
	require.True(t, first.RecordTime.Valid)
	require.Equal(t, []UnknownElement{{Kind: "NewKind", Raw: JSON(
		`{"NewKind":{"value":{ "offset":7,"updateId":"u","synchronizerId":"s","recordTime":"2025-01-01T00:00:00Z","x":"\u0000" }}}`)}}, first.Unknown)
	second := got.Updates[1]
	require.Equal(t, Offset(8), second.Offset)
	require.Empty(t, second.ID, "an update id that is no text can't be read")
	require.Nil(t, second.SynchronizerID)
	require.Equal(t, `{"FlatKind":{"offset":8,"updateId":7,"value":"\ud800"}}`, string(second.Unknown[0].Raw))
	require.Equal(t, []UnknownElement{
		{NodeID: new(int32(4)), Kind: "NewEvent", Raw: JSON(`{"NewEvent":{"nodeId":4, "y":1E400}}`)},
		{Kind: "Other", Raw: JSON(`{"Other":null}`)},
	}, got.Updates[2].Unknown)
}

func TestUnknownMembersStandInExtra(t *testing.T) {
	t.Parallel()
	element := swap(transaction(7, swap(created(7, 0), `"code":0,`, `"code":0,"reason": [1],`)), `{"value":`, `{"b":2,"value":`)
	element = swap(swap(element, `{"update"`, `{"a":1,"update"`), `"commandId"`, `"c":3,"CommandId":"4","commandId"`)
	element = swap(element, `"tracestate"`, `"baggage":5,"tracestate"`)
	got, err := DecodeUpdateList(list(element), 0)
	require.NoError(t, err)
	require.Equal(t, `{"c":3,"CommandId":"4","$traceContext":{"baggage":5},"$envelope":{"a":1,"update":{"Transaction":{"b":2}}}}`,
		string(got.Updates[0].Extra))
	require.Equal(t, `{"$viewStatus":{"reason":[1]}}`, strings.ReplaceAll(string(got.Updates[0].Created[0].InterfaceViews[0].Extra), " ", ""))
}

// PostgreSQL holds neither in a text, but a payload may have both, and comes through as the bytes that were sent.
func TestPayloadBytesAreExact(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	payloads := []string{
		`"\u0000"`, `{"k\u0000" : "\ud800" , "\udfff\ud800":[ ]}`, `"\uD83D\uDE00\/\u0041"`, "{ \"a\"\t:\r\n1.50E+2 }",
		`-0`, `1E400`, `0.10000000000000000000000000000000001`, `false`, deep, `{"a":` + deep + `}`, "\"\u00e9\ufffd\"",
	}
	for _, payload := range payloads {
		element := swap(transaction(7, created(7, 0), exercised(7, 1)), `{"owner": "alice", "amount":"1.0000000000"}`, payload)
		element = swap(element, `{"_1":"k", "_2":null}`, payload)
		element = swap(element, `{"n":1e2}`, payload)
		element = swap(element, `{"to":"bob"}`, payload)
		element = swap(element, `"exerciseResult":{}`, `"exerciseResult":`+payload)
		element = swap(element, `"details":[]`, `"details":[ `+payload+` ]`)
		element = swap(element, `"workflowId":"flow"`, `"workflowId":"real �"`)
		body := list(element)
		got, err := DecodeUpdateList(body, 0)
		require.NoError(t, err)
		clear(body) // what was decoded shares no memory with it
		c, x := got.Updates[0].Created[0], got.Updates[0].Exercised[0]
		for _, value := range []JSON{c.Argument, c.ContractKey, c.InterfaceViews[0].Value, x.Argument, x.Result} {
			require.Equal(t, payload, string(value))
		}
		require.Equal(t, `[ `+payload+` ]`, string(c.InterfaceViews[0].StatusDetails))
		require.Equal(t, "real �", *got.Updates[0].WorkflowID, "a replacement character that was sent is a character")
		require.Equal(t, []string{"alice", "dso"}, c.Signatories)
	}
}

func TestUpdateWithManyEvents(t *testing.T) {
	t.Parallel()
	n := 100_000
	if brief.Run() {
		n = 10_000
	}
	events := make([]string, n)
	for i := range events {
		events[i] = archived(7, n-i) // against the usual order
	}
	got, err := DecodeUpdateList(list(transaction(7, events...)), 0)
	require.NoError(t, err)
	require.Len(t, got.Updates[0].Archived, n)
	require.Equal(t, int32(n), got.Updates[0].Archived[0].NodeID)

	events[n-1] = archived(7, n)
	_, err = DecodeUpdateList(list(transaction(7, events...)), 0)
	require.EqualError(t, err, "element 0 at offset 7, Transaction.events: two events have the node id "+strconv.Itoa(n))
}

func TestDecodeUpdatePage(t *testing.T) {
	t.Parallel()
	page := func(members string, updates ...string) []byte {
		return []byte(`{"updates":` + string(list(updates...)) + members + `}`)
	}
	const bounds = `,"lowestPageOffsetExclusive":5,"highestPageOffsetInclusive":20`
	got, err := DecodeUpdatePage(page(bounds+`,"nextPageToken":"dG9r","new":1`, transaction(7), transaction(20)), 5)
	require.NoError(t, err)
	require.Equal(t, Offset(5), got.Lowest)
	require.Equal(t, Offset(20), got.Highest)
	require.Equal(t, "dG9r", got.Next)
	require.Equal(t, 2, got.Elements)
	require.Equal(t, Offset(20), got.Last)

	for _, body := range []string{`{"updates":null` + bounds + `}`, `{"nextPageToken":null` + bounds + `}`, string(page(bounds))} {
		got, err = DecodeUpdatePage([]byte(body), 5)
		require.NoError(t, err)
		require.Equal(t, UpdatePage{Lowest: 5, Highest: 20}, got)
	}

	requireRefused(t, func(body []byte) (UpdatePage, error) { return DecodeUpdatePage(body, 5) }, []badBody{
		{`[]`, `response: is an array where an object is expected`},
		{``, `response: the body is empty: unexpected EOF`},
		{`{`, `response: the JSON is cut off at byte 1: unexpected EOF`},
		{`null`, `response: is null where an object is expected`},
		{string(page(bounds)) + `{}`, `response: something follows the end of the JSON at byte 76`},
		{string(page(``)), `response, lowestPageOffsetExclusive: is required, and absent or null`},
		{string(page(`,"lowestPageOffsetExclusive":5`)), `response, highestPageOffsetInclusive: is required, and absent or null`},
		{string(page(`,"lowestPageOffsetExclusive":-1,"highestPageOffsetInclusive":20`)), `response, lowestPageOffsetExclusive: is a negative offset: -1`},
		{string(page(`,"lowestPageOffsetExclusive":5,"highestPageOffsetInclusive":4`)),
			`response, highestPageOffsetInclusive: is 4, below lowestPageOffsetExclusive, which is 5`},
		{string(page(bounds, transaction(21))), `response, updates: offsets 21 to 21 do not lie within the page, which is above 5 and up to 20`},
		{string(page(bounds, transaction(5))), `element 0 at offset 5: offsets must grow from update to update: 5 comes after 5`},
		{string(page(bounds, transaction(6), swap(transaction(8), `"flow"`, `3`))),
			`element 1 at offset 8, Transaction.workflowId: is a number where a text is expected`},
		{string(page(bounds, swap(transaction(8), `"events":[]`, `"events":{}`))),
			`element 0 at offset 8, Transaction.events: is an object where an array is expected`},
		{`{"updates":{}` + bounds + `}`, `response, updates: is an object where an array is expected`},
		{`{"updates":[],"updates":[]` + bounds + `}`,
			`response, updates: a member of this name stands twice in the object: duplicate object member name`},
		{string(page(bounds + `,"nextPageToken":7`)), `response, nextPageToken: is a number where a text is expected`},
	})
}

func TestDecodeContractEntries(t *testing.T) {
	t.Parallel()
	got, err := DecodeContractEntries(list(activeEntry(), incompleteUnassignedEntry(), incompleteAssignedEntry(),
		entry(`{"JsEmpty":{}}`), entry(`{"JsNew":{ "a":1}}`)))
	require.NoError(t, err)
	require.Len(t, got, 5)
	require.Equal(t, "dG9rZW4=", got[0].Token)
	require.Equal(t, "", *got[0].WorkflowID)
	require.Equal(t, OriginSnapshot, got[0].Active.Created.Origin)
	require.Equal(t, Offset(7), got[0].Active.Created.Offset)
	require.Equal(t, "sync::1", got[0].Active.SynchronizerID)
	require.Equal(t, Offset(7), got[1].Unassigned.Created.Offset)
	require.Equal(t, Offset(8), got[1].Unassigned.Unassigned.Offset)
	require.Equal(t, OriginSnapshot, got[2].Assigned.Created.Origin)
	require.Equal(t, "00c0", got[2].Assigned.Assigned.ContractID)
	require.True(t, got[3].Empty)
	require.Equal(t, &UnknownElement{Kind: "JsNew", Raw: JSON(`{"JsNew":{ "a":1}}`)}, got[4].Unknown)

	empty, err := DecodeContractEntries([]byte(`[]`))
	require.NoError(t, err)
	require.Empty(t, empty)

	requireRefused(t, DecodeContractEntries, []badBody{
		{`{}`, `response: is an object where an array is expected`},
		{`[{}]`, `element 0, contractEntry: is required, and absent or null`},
		{string(list(entry(`{}`))), `element 0, contractEntry: holds no variant, and exactly one is expected`},
		{string(list(activeEntry(), entry(`{"JsEmpty":{},"JsNew":{}}`))), `element 1, contractEntry: holds 2 variants, and exactly one is expected`},
		{string(list(swap(activeEntry(), `"offset":7`, `"offset":0`))),
			`element 0, JsActiveContract.createdEvent.offset: is 0, and the first offset of a ledger is 1`},
		{string(list(swap(activeEntry(), `"workflowId":""`, `"workflowId":"\u0000"`))),
			`element 0, workflowId: holds a NUL character, which a text of the database can't: "\u0000"`},
		{string(list(swap(activeEntry(), `"reassignmentCounter":0`, `"reassignmentCounter":{}`))),
			`element 0, JsActiveContract.reassignmentCounter: is not a whole number of at most 64 bits: {}`},
		{string(list(swap(activeEntry(), `"interfaceViews":[`, `"interfaceViews":[[],`))),
			`element 0, JsActiveContract.createdEvent.interfaceViews[0]: is an array where an object is expected`},
	})
}

func TestDecodeContractPage(t *testing.T) {
	t.Parallel()
	body := `{"activeContracts":` + string(list(activeEntry())) + `,"activeAtOffset":9,"nextPageToken":"dA=="}`
	got, err := DecodeContractPage([]byte(body))
	require.NoError(t, err)
	require.Len(t, got.Entries, 1)
	require.Equal(t, Offset(9), got.ActiveAt)
	require.Equal(t, "dA==", got.Next)

	got, err = DecodeContractPage([]byte(`{"activeContracts":[],"activeAtOffset":0,"nextPageToken":null}`))
	require.NoError(t, err)
	require.Empty(t, got.Entries)
	require.Empty(t, got.Next)

	requireRefused(t, DecodeContractPage, []badBody{
		{`{"activeAtOffset":9}`, `response, activeContracts: is required, and absent or null`},
		{`{"activeContracts":null,"activeAtOffset":9}`, `response, activeContracts: is required, and absent or null`},
		{`{"activeContracts":[]}`, `response, activeAtOffset: is required, and absent or null`},
		{swap(body, `"synchronizerId":"sync::1"`, `"synchronizerId":null`), `element 0, JsActiveContract.synchronizerId: is required, and absent or null`},
		{body[:len(body)-1], fmt.Sprintf(`response: the JSON is cut off at byte %d: unexpected EOF`, len(body)-1)},
	})
}

// Interface views are a set too.
func TestInterfaceViewsInAnyOrder(t *testing.T) {
	t.Parallel()
	view := func(module string) string {
		return `{"interfaceId":"` + strings.Repeat("b", 64) + ":" + module + `:View","viewStatus":{"code":0,"message":""},"viewValue":{"m":"` + module + `"}}`
	}
	var decoded []UpdateList
	for _, views := range []string{view("C") + "," + view("A") + "," + view("B"), view("B") + "," + view("C") + "," + view("A")} {
		event := swap(created(5, 0), `"interfaceViews":[`, `"interfaceViews":[`+views+`,`)
		got, err := DecodeUpdateList(list(transaction(5, event)), 0)
		require.NoError(t, err)
		decoded = append(decoded, got)
	}
	require.Greater(t, len(decoded[0].Updates[0].Created[0].InterfaceViews), 3)
	require.Equal(t, decoded[0].Updates, decoded[1].Updates)
}
