package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each row is an answer that must be refused, and the whole sentence that the user sees.
func TestDecodeTransactionsRefuses(t *testing.T) {
	t.Parallel()
	const (
		at    = `element 0 with event id "#12ab:3", `
		inTap = `element 0 with event id "#12ab:5", `
	)
	valid := string(history(transferRecord))
	transfer := func(old, new string) string { return string(history(swap(transferRecord, old, new))) }
	amount := func(text string) string { return transfer(`"1.50"`, text) }
	tap := func(old, new string) string { return string(history(swap(tapRecord, old, new))) }
	notDecimal := func(text string) string {
		return at + `transfer.receivers[0].amount: is not a decimal number of the form -12.50 or 5.0E-7: ` + text
	}
	requireRefused(t, DecodeTransactions, []badBody{
		{``, `response: the body is empty: unexpected EOF`},
		{`[]`, `response: is an array where an object is expected`},
		{`<html>`, `response: not valid JSON at byte 0: invalid character '<' at start of value`},
		{`{"error":"none"}`, `response, transactions: is required, and absent or null`},
		{`{"transactions":null}`, `response, transactions: is required, and absent or null`},
		{`{"transactions":{}}`, `response, transactions: is an object where an array is expected`},
		{`{"transactions":[],"transactions":[]}`,
			`response, transactions: a member of this name stands twice in the object: duplicate object member name`},
		{valid + `{}`, `response: something follows the end of the JSON at byte 983`},
		{valid[:len(valid)-2], `element 1: the JSON is cut off at byte 981: unexpected EOF`},
		{valid[:len(valid)-1], `response: the JSON is cut off at byte 982: unexpected EOF`},
		{valid[:strings.Index(valid, `"event_id"`)], `element 0: the JSON is cut off at byte 48: unexpected EOF`},
		{valid[:strings.Index(valid, `"sender_fee"`)],
			`element 0 with event id "#12ab:3", transfer.sender: the JSON is cut off at byte 487: unexpected EOF`},
		{transfer(`March`, "M\xffrch"), at + `transfer.description: not valid JSON at byte 823: invalid UTF-8`},
		{transfer(`"round"`, `"date":1,"round"`),
			at + `date: a member of this name stands twice in the object: duplicate object member name`},
		{transfer(`"party":"bob"`, `"party":"bob","party":"bob"`),
			at + `transfer.receivers[0].party: a member of this name stands twice in the object: duplicate object member name`},
		{transfer(`"round"`, `"\u0064ate":1,"round"`),
			at + `date: a member of this name stands twice in the object: duplicate object member name`},
		{transfer(`"transfer":`, `"transfer":null,"transfer":`),
			at + `transfer: a member of this name stands twice in the object: duplicate object member name`},
		{transfer(`"round"`, `"update":{"value":{"value":{"x":1,"x":2}}},"round"`),
			at + `update.value.value.x: a member of this name stands twice in the object: duplicate object member name`},
		{string(history(mintRecord, swap(tapRecord, `"7.0"`, `""`))),
			`element 1 with event id "#12ab:5", tap.amulet_amount: is an empty text where a decimal number is expected`},

		{`{"transactions":[null]}`, `element 0: is null where an object is expected`},
		{`{"transactions":[7]}`, `element 0: is a number where an object is expected`},
		{transfer(`"#12ab:3"`, `""`), `element 0, event_id: is an empty text`},
		{transfer(`"#12ab:3"`, `3`), `element 0, event_id: is a number where a text is expected`},
		{transfer(`#12ab:3`, `#\u0000`),
			`element 0 with event id "#\x00", event_id: holds a NUL character, which a text of the database can't: "#\u0000"`},
		{transfer(`#12ab:3`, `#\udc00`+strings.Repeat("e", 300)),
			`element 0 with event id "#�` + strings.Repeat("e", 196) + `…", event_id: holds half of a surrogate pair, which is no character: "#\udc00` + strings.Repeat("e", 52) + `…`},
		{tap(`:22Z`, `:22`), inTap + `date: not a time of the form 2006-01-02T15:04:05.999999Z: "2025-10-14T11:29:22"`},
		{tap(`"2025-10-14T11:29:22Z"`, `1760441362`), inTap + `date: is a number where a text is expected`},
		{transfer(`42`, `42.0`), at + `round: is not a whole number of at most 64 bits: 42.0`},
		{transfer(`42`, `4e1`), at + `round: is not a whole number of at most 64 bits: 4e1`},
		{transfer(`42`, `"42"`), at + `round: is not a whole number of at most 64 bits: "42"`},
		{transfer(`42`, `9223372036854775808`), at + `round: is not a whole number of at most 64 bits: 9223372036854775808`},
		{transfer(`"000000000000000a1b"`, `7`), at + `offset: is a number where a text is expected`},
		{transfer(`sync::1`, `sync\u0000`),
			at + `domain_id: holds a NUL character, which a text of the database can't: "sync\u0000"`},
		{transfer(`"transfer"`, `7`), at + `transaction_type: is a number where a text is expected`},
		{transfer(`"transfer"`, `"new\u0000"`),
			at + `transaction_type: holds a NUL character, which a text of the database can't: "new\u0000"`},

		{tap(`"tap":{"amulet_owner":"alice","amulet_amount":"7.0"}`, `"tap":null`),
			inTap + `tap: is required, and absent or null, and the transaction_type is devnet_tap`},
		{`{"transactions":[{"event_id":"e","transaction_type":"mint"}]}`,
			`element 0 with event id "e", mint: is required, and absent or null, and the transaction_type is mint`},
		{tap(`devnet_tap`, `mint`), inTap + `tap: contradicts the transaction_type, which is mint`},
		{transfer(`"transfer","event`, `"abort_transfer_instruction","event`),
			at + `transfer: contradicts the transaction_type, which is abort_transfer_instruction`},
		{`{"transactions":[{"mint":{},"tap":{}}]}`, `element 0, event_id: is required, and absent or null`},
		{tap(`{"amulet_owner":"alice","amulet_amount":"7.0"}`, `"7.0"`), inTap + `tap: is a text where an object is expected`},
		{transfer(`"sender":{`, `"sender":[],"was":{`), at + `transfer.sender: is an array where an object is expected`},
		{transfer(`"sender":{`, `"sender":null,"was":{`), at + `transfer.sender: is required, and absent or null`},
		{transfer(`"receivers":[`, `"receivers":{"party":"bob","amount":"1"},"was":[`),
			at + `transfer.receivers: is an object where an array is expected`},
		{transfer(`{"party":"carol"`, `null,{"party":"carol"`), at + `transfer.receivers[1]: is null where an object is expected`},
		{transfer(`{"party":"carol"`, `"carol",{"party":"carol"`),
			at + `transfer.receivers[1]: is a text where an object is expected`},
		{transfer(`"balance_changes":[`, `"balance_changes":0,"was":[`),
			at + `transfer.balance_changes: is a number where an array is expected`},
		{transfer(`"-3.5"`, `null`),
			at + `transfer.balance_changes[0].change_to_initial_amount_as_of_round_zero: is required, and absent or null`},
		{transfer(`"party":"carol"`, `"party":{}`), at + `transfer.receivers[1].party: is an object where a text is expected`},
		{transfer(`"party":"carol"`, `"party":"\ud800"`),
			at + `transfer.receivers[1].party: holds half of a surrogate pair, which is no character: "\ud800"`},
		{transfer(`"rent, \"March\""`, `true`), at + `transfer.description: is a boolean where a text is expected`},
		{string(history(swap(abortRecord, `"00cid"`, `""`))),
			`element 0 with event id "#12ab:6", abort_transfer_instruction.transfer_instruction_cid: is an empty text`},
		{string(history(swap(abortRecord, `"withdraw"`, `{}`))),
			`element 0 with event id "#12ab:6", abort_transfer_instruction.abort_kind: is an object where a text is expected`},

		{transfer(`"input_amulet_amount"`, `"input_coin_amount":"1","input_amulet_amount"`),
			at + `transfer.sender.input_amulet_amount: calls the unit of value both coin and amulet`},
		{tap(`"amulet_owner"`, `"coin_owner":"alice","amulet_owner"`),
			inTap + `tap.amulet_owner: calls the unit of value both coin and amulet`},
		{tap(`amulet_amount`, `coin_amount`), inTap + `tap.coin_amount: calls the unit of value both coin and amulet`},
		{string(history(strings.ReplaceAll(tapRecord, "amulet", "token"))),
			inTap + `tap.coin_owner: is required, and absent or null, and so is amulet_owner`},
		{tap(`,"amulet_amount":"7.0"`, ``), inTap + `tap.amulet_amount: is required, and absent or null`},

		{amount(`""`), at + `transfer.receivers[0].amount: is an empty text where a decimal number is expected`},
		{amount(`1.50`), at + `transfer.receivers[0].amount: is a number where a text is expected`},
		{amount(`"` + strings.Repeat("1", 100) + `e"`), notDecimal(`"` + strings.Repeat("1", 60) + `…"`)},
		{amount(`"1\u0000"`), at + `transfer.receivers[0].amount: holds a NUL character, which a text of the database can't: "1\u0000"`},
		{transfer(`"party":"carol"`, `"party":"`+strings.Repeat("c", 1001)+`"`),
			at + `transfer.receivers[1].party: has 1001 bytes, and an id at most 1000: ` + strings.Repeat("c", 60) + `…`},
		{tap(`"amulet_owner":"`, `"amulet_owner":"`+strings.Repeat("o", 1000)),
			inTap + `tap.amulet_owner: has 1005 bytes, and an id at most 1000: ` + strings.Repeat("o", 60) + `…`},
		{transfer(`"domain_id":"`, `"domain_id":"`+strings.Repeat("d", 1001)),
			at + `domain_id: has 1008 bytes, and an id at most 1000: ` + strings.Repeat("d", 60) + `…`},
		{transfer(`"0.25"`, `"1e"`),
			at + `transfer.sender.holding_fees: is not a decimal number of the form -12.50 or 5.0E-7: "1e"`},
		{transfer(`"0.25"`, `0`), at + `transfer.sender.holding_fees: is a number where a text is expected`},
	})
}

// The event id is found wherever it stands in a record, as long as what comes before it is JSON.
func TestTheErrorOfARecordNamesItsEventID(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]string{
		`{"date":{"event_id":"inner"},"tap":{},"event_id":"#1"}`:       "#1",
		`{"event_id":"#1","event_id":"#2"}`:                            "#1",
		`{"event_id":null,"round":"x"}`:                                "",
		`{"event_id":7}`:                                               "",
		`{"event_id":"#1","date":tru`:                                  "#1",
		`{"date":tru,"event_id":"#1"}`:                                 "",
		`{"event_id":"#1`:                                              "",
		`{"\u0065vent_id":"\u00231","date":7,"tap":{}}`:                "#1",
		`{"mint":{"coin_owner":"a","coin_owner":"a"},"event_id":"#1"}`: "#1",
		`{"a" "b"`: "",
		`7`:        "",
	} {
		_, err := DecodeTransactions([]byte(`{"transactions":[` + tapRecord + ` , ` + record + `]}`))
		var decodeError *DecodeError
		require.ErrorAs(t, err, &decodeError, record)
		require.Equal(t, 1, decodeError.Element, record)
		require.Equal(t, want, decodeError.EventID, record)
	}
}
