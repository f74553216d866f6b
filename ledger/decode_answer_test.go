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
	requireMembers(t, createdValue(1, 0), "", func(event string) error {
		_, err := DecodeContract([]byte(`{"createdEvent":` + event + `}`))
		return err
	}, "contractId templateId packageName signatories witnessParties createdAt",
		"createArgument contractKey contractKeyHash observers")
}

// requireMembers leaves each member of the object at path out, and sends null for it.
func requireMembers(t *testing.T, sample, path string, decode func(string) error, required, optional string) {
	t.Helper()
	require.NoError(t, decode(sample))
	for _, absent := range []bool{true, false} {
		for field := range strings.FieldsSeq(required) {
			err := decode(without(t, sample, path, field, absent))
			var decodeError *DecodeError
			require.ErrorAs(t, err, &decodeError, field)
			require.ErrorIs(t, err, errMissing, field)
			require.Equal(t, -1, decodeError.Element)
			require.True(t, decodeError.Field == field || strings.HasSuffix(decodeError.Field, "."+field), "%v names %s", err, field)
		}
		for field := range strings.FieldsSeq(optional) {
			require.NoError(t, decode(without(t, sample, path, field, absent)), field)
		}
	}
}

func TestDecodeContractRefuses(t *testing.T) {
	t.Parallel()
	good := lookedUp()
	for _, row := range []struct{ name, body, want string }{
		{"nothing", ``, `response: the body is empty: unexpected EOF`},
		{"null", `null`, `response: is null where an object is expected`},
		{"a list", `[]`, `response: is an array where an object is expected`},
		{"not JSON", `<html>`, `response: not valid JSON at byte 0: invalid character '<' at start of value`},
		{"cut off", good[:strings.Index(good, `"createArgument"`)], `response, createdEvent: the JSON is cut off at byte 165: unexpected EOF`},
		{"a second value", good + `{}`, fmt.Sprint(`response: something follows the end of the JSON at byte `, len(good))},
		{"no event", `{}`, `response, createdEvent: is required, and absent or null`},
		{"null event", `{"createdEvent":null}`, `response, createdEvent: is required, and absent or null`},
		{"event of another kind", `{"createdEvent":[]}`, `response, createdEvent: is an array where an object is expected`},
		{"event in a variant", `{"createdEvent":{"CreatedEvent":{}}}`, `response, createdEvent.contractId: is required, and absent or null`},
		{"id of another kind", swap(good, `"contractId":"00c0"`, `"contractId":["00c0"]`),
			`response, createdEvent.contractId: is an array where a text is expected`},
		{"id empty", swap(good, `"00c0"`, `""`), `response, createdEvent.contractId: is an empty text`},
		{"id twice", swap(good, `"contractId"`, `"contractId":"00c1","contractId"`),
			`response, createdEvent.contractId: a member of this name stands twice in the object: duplicate object member name`},
		{"NUL in a party", swap(good, `["alice","dso"]`, `["al\u0000ice"]`),
			`response, createdEvent.signatories[0]: holds a NUL character, which a text of the database can't: "al\u0000ice"`},
		{"party of another kind", swap(good, `"witnessParties":["alice"]`, `"witnessParties":[1]`),
			`response, createdEvent.witnessParties[0]: is a number where a text is expected`},
		{"parties of another kind", swap(good, `"witnessParties":["alice"]`, `"witnessParties":"alice"`),
			`response, createdEvent.witnessParties: is a text where an array is expected`},
		{"template id", swap(good, sampleTemplate, `Amulet`),
			`response, createdEvent.templateId: not an identifier of the form package:Module:Entity: "Amulet"`},
		{"hash", swap(good, `"AQI="`, `"AQI"`), `response, createdEvent.contractKeyHash: is not standard Base64 with padding: "AQI"`},
		{"time", swap(good, `"createdAt":"2025-10-14T11:29:20.015513Z"`, `"createdAt":1760441360`),
			`response, createdEvent.createdAt: is a number where a text is expected`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeContract([]byte(row.body))
			require.EqualError(t, err, row.want)
			require.Zero(t, got)
		})
	}
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
	for _, row := range []struct{ name, body, want string }{
		{"nothing", ``, `response: the body is empty: unexpected EOF`},
		{"null", `null`, `response: is null where an object is expected`},
		{"a list", `[` + good + `]`, `response: is an array where an object is expected`},
		{"no update", `{}`, `response, update: is required, and absent or null`},
		{"no variant", `{"update":{}}`, `response, update: holds no variant, and exactly one is expected`},
		{"a checkpoint", checkpoint(10), `response at offset 10, update: is an OffsetCheckpoint where an update is expected`},
		{"a bad checkpoint", swap(checkpoint(10), `10`, `"x"`), `response, OffsetCheckpoint.offset: is not a whole number of at most 64 bits: "x"`},
		{"cut off", good[:len(good)-1], fmt.Sprintf(`response at offset 10: the JSON is cut off at byte %d: unexpected EOF`, len(good)-1)},
		{"more", good + `,`, fmt.Sprint(`response: something follows the end of the JSON at byte `, len(good))},
		{"a wrong member", swap(good, `"nodeId":0`, `"nodeId":"0"`),
			`response at offset 10, Transaction.events[0].CreatedEvent.nodeId: is not a whole number of at most 32 bits: "0"`},
		{"a wrong value", `{"update":{"Transaction":{"value":[]}}}`, `response, Transaction.value: is an array where an object is expected`},
		{"no offset", `{"update":{"New":{}}}`, `response, update: is of the kind "New", which is not known, and has no readable offset`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeUpdate([]byte(row.body))
			require.EqualError(t, err, row.want)
			require.Zero(t, got)
		})
	}
}
