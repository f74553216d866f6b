package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func lookedUp() string { return `{"createdEvent":` + createdValue(1, 0) + `}` }

// Rule 3 of interface.md, endpoint 3: these members are not to be parsed, so nothing in them can do harm.
func TestDecodeContractDoesNotParseWhatIsNotPopulated(t *testing.T) {
	t.Parallel()
	want, err := DecodeContract([]byte(lookedUp()))
	require.NoError(t, err)
	for _, member := range []string{"offset", "nodeId", "createdEventBlob", "interfaceViews", "acsDelta", "representativePackageId"} {
		got, err := DecodeContract([]byte(`{"createdEvent":` + without(t, createdValue(1, 0), "", member, true) + `}`))
		require.NoError(t, err, member)
		requireSameContract(t, want, got)
		for _, anything := range []string{`null`, `-1`, `1e400`, `"x\ud800\u0000"`, `true`, `[]`, `[null,{"interfaceId":7}]`, `{"a":{}}`} {
			event := without(t, createdValue(1, 0), "", member, true)
			got, err := DecodeContract([]byte(`{"createdEvent":` + swap(event, `{`, `{"`+member+`":`+anything+`,`) + `}`))
			require.NoError(t, err, "%s: %s", member, anything)
			requireSameContract(t, want, got)
		}
	}
}

// requireSameContract compares all but the bytes of payloads, which the test writes anew.
func requireSameContract(t *testing.T, want, got Contract) {
	t.Helper()
	require.JSONEq(t, string(want.Argument), string(got.Argument))
	require.JSONEq(t, string(want.ContractKey), string(got.ContractKey))
	want.Argument, want.ContractKey, got.Argument, got.ContractKey = nil, nil, nil, nil
	require.Equal(t, want, got)
}

func TestRequiredAndOptionalMembersOfAContract(t *testing.T) {
	t.Parallel()
	requireMembers(t, -1, createdValue(1, 0), "", func(event string) error {
		_, err := DecodeContract([]byte(`{"createdEvent":` + event + `}`))
		return err
	}, "contractId templateId packageName signatories witnessParties createdAt",
		"createArgument contractKey contractKeyHash observers")
}

func TestDecodeContractRefuses(t *testing.T) {
	t.Parallel()
	good := lookedUp()
	requireRefused(t, DecodeContract, []badBody{
		{``, `response: the body is empty: unexpected EOF`},
		{good[:strings.Index(good, `"createArgument"`)], `response, createdEvent: the JSON is cut off at byte 165: unexpected EOF`},
		{`{}`, `response, createdEvent: is required, and absent or null`},
		{`{"createdEvent":null}`, `response, createdEvent: is required, and absent or null`},
		{`{"createdEvent":[]}`, `response, createdEvent: is an array where an object is expected`},
		{`{"createdEvent":{"CreatedEvent":{}}}`, `response, createdEvent.contractId: is required, and absent or null`},
		{swap(good, `"contractId":"00c0"`, `"contractId":["00c0"]`),
			`response, createdEvent.contractId: is an array where a text is expected`},
		{swap(good, `"00c0"`, `""`), `response, createdEvent.contractId: is an empty text`},
		{swap(good, `"contractId"`, `"contractId":"00c1","contractId"`),
			`response, createdEvent.contractId: a member of this name stands twice in the object: duplicate object member name`},
		{swap(good, `"witnessParties":["alice"]`, `"witnessParties":[1]`),
			`response, createdEvent.witnessParties[0]: is a number where a text is expected`},
		{swap(good, `"witnessParties":["alice"]`, `"witnessParties":"alice"`),
			`response, createdEvent.witnessParties: is a text where an array is expected`},
		{swap(good, sampleTemplate, `Amulet`),
			`response, createdEvent.templateId: not an identifier of the form package:Module:Entity: "Amulet"`},
		{swap(good, `"AQI="`, `"AQI"`), `response, createdEvent.contractKeyHash: is not standard Base64 with padding: "AQI"`},
		{swap(good, `"createdAt":"2025-10-14T11:29:20.015513Z"`, `"createdAt":1760441360`),
			`response, createdEvent.createdAt: is a number where a text is expected`},
	})
}

func TestDecodeUpdate(t *testing.T) {
	t.Parallel()
	for _, element := range []string{
		transaction(10, created(10, 0), archived(10, 1), exercised(10, 2)), reassignment(30, assigned(30, 0), unassigned(30, 1)),
		topology(5, authorization("Added")), `{"update":{"New":{"value":{"offset":4,"updateId":"n"}}},"beside":1}`,
	} {
		list, err := DecodeUpdateList(list(element), 0)
		require.NoError(t, err)
		got, err := DecodeUpdate([]byte(" " + element + "\n"))
		require.NoError(t, err)
		require.Equal(t, list.Updates[0], got, "as in a list")
	}
}

func TestDecodeUpdateRefuses(t *testing.T) {
	t.Parallel()
	good := transaction(10, created(10, 0))
	requireRefused(t, DecodeUpdate, []badBody{
		{``, `response: the body is empty: unexpected EOF`},
		{`null`, `response: is null where an object is expected`},
		{`[` + good + `]`, `response: is an array where an object is expected`},
		{`{}`, `response, update: is required, and absent or null`},
		{`{"update":{}}`, `response, update: holds no variant, and exactly one is expected`},
		{checkpoint(10), `response at offset 10, update: is an OffsetCheckpoint where an update is expected`},
		{swap(checkpoint(10), `10`, `"x"`), `response, OffsetCheckpoint.offset: is not a whole number of at most 64 bits: "x"`},
		{good[:len(good)-1], fmt.Sprintf(`response at offset 10: the JSON is cut off at byte %d: unexpected EOF`, len(good)-1)},
		{good + `,`, fmt.Sprint(`response: something follows the end of the JSON at byte `, len(good))},
		{swap(good, `"nodeId":0`, `"nodeId":"0"`),
			`response at offset 10, Transaction.events[0].CreatedEvent.nodeId: is not a whole number of at most 32 bits: "0"`},
		{`{"update":{"Transaction":{"value":[]}}}`, `response, Transaction.value: is an array where an object is expected`},
		{`{"update":{"New":{}}}`, `response, update: is of the kind "New", which is not known, and has no readable offset`},
	})
}
