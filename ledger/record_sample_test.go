package ledger

import "strings"

// history is an answer of /v0/transactions.
func history(records ...string) []byte {
	return []byte(`{"transactions":[` + strings.Join(records, ",") + `]}`)
}

// The records have every member of both servers' releases, in the spelling of real ones. No service sends them all.
const (
	transferRecord = `{"transaction_type":"transfer","event_id":"#12ab:3","offset":"000000000000000a1b","date":"2025-10-14T11:29:20.015513Z",` +
		`"domain_id":"sync::1","round":42,"transfer":{"sender":{"party":"alice","input_amulet_amount":"10.0000000000",` +
		`"input_app_reward_amount":"1.0000000000","input_validator_reward_amount":"0.0000000000","input_sv_reward_amount":"0.5",` +
		`"input_validator_faucet_amount":"570.7762557078","sender_change_fee":"0.0300000000","sender_change_amount":"-0.0000000001",` +
		`"sender_fee":"0.0000000000","holding_fees":"0.25"},"receivers":[{"party":"bob","amount":"1.50","receiver_fee":"0.0100000000"},` +
		`{"party":"carol","amount":"2","receiver_fee":"0"}],"balance_changes":[{"party":"alice",` +
		`"change_to_initial_amount_as_of_round_zero":"-3.5","change_to_holding_fees_rate":"-0.0000190259"}],"description":"rent, \"March\"",` +
		`"transferInstructionReceiver":"bob","transferInstructionAmount":"1.5","transferInstructionCid":"00cid",` +
		`"transfer_kind":"transfer_instruction_accept"}}`
	mintRecord = `{"transaction_type":"mint","event_id":"#12ab:4","offset":"0b","date":"2025-10-14T11:29:21Z","domain_id":"sync::1",` +
		`"mint":{"amulet_owner":"dso","amulet_amount":"100.0000000000"}}`
	tapRecord = `{"transaction_type":"devnet_tap","event_id":"#12ab:5","date":"2025-10-14T11:29:22Z","domain_id":"sync::1","round":0,` +
		`"tap":{"amulet_owner":"alice","amulet_amount":"7.0"}}`
	abortRecord = `{"transaction_type":"abort_transfer_instruction","event_id":"#12ab:6","date":"2025-10-14T11:29:23Z","domain_id":"sync::1",` +
		`"abort_transfer_instruction":{"abort_kind":"withdraw","transfer_instruction_cid":"00cid"}}`
	unknownRecord = `{"transaction_type":"lock","event_id":"#12ab:7","offset":"0c","date":"2025-10-14T11:29:24Z","domain_id":"sync::1","round":43,` +
		`"lock":{"amount": 1.50, "note":"\u0000\ud800"}}`
)

// inCoins is a record in the spelling of interface.md.
func inCoins(record string) string { return strings.ReplaceAll(record, "amulet_", "coin_") }

// untyped is a record without its type, which interface.md does not have.
func untyped(record string) string {
	_, rest, found := strings.Cut(record, ",")
	if !found || !strings.HasPrefix(record, `{"transaction_type"`) {
		panic("the record has no type at its head")
	}
	return "{" + rest
}

// everyRecord is an answer with records of every kind, in both spellings, with and without their type, with members
// that are absent, null and not known at every level.
func everyRecord() []byte {
	extended := swap(swap(transferRecord, `"offset"`, `"memo":{"a": [1, null]},"offset"`), `{"sender":{`, `{"lane": 1.50,"sender":{"rank":null,`)
	extended = swap(swap(extended, `{"party":"bob"`, `{"vat":"0.1","party":"bob"`), `{"party":"alice","change`, `{"asOf":7,"party":"alice","change`)
	nulls := transferRecord
	for _, member := range []string{`"000000000000000a1b"`, `"sync::1"`, `42`, `"10.0000000000"`, `"0.5"`, `"0.25"`, `"0.0100000000"`,
		`"rent, \"March\""`, `"00cid"`, `"transfer_instruction_accept"`} {
		nulls = swap(nulls, ":"+member, ":null")
	}
	return history(
		transferRecord, mintRecord, tapRecord, abortRecord, unknownRecord,
		inCoins(transferRecord), inCoins(mintRecord), inCoins(tapRecord),
		untyped(transferRecord), untyped(mintRecord), untyped(tapRecord), untyped(abortRecord), untyped(unknownRecord),
		extended, nulls,
		swap(mintRecord, `{"amulet_owner"`, `{"reason":"\u0000","amulet_owner"`),
		swap(inCoins(untyped(tapRecord)), `{"coin_owner"`, `{"Coin_Owner":"x","coin_owner"`),
		swap(abortRecord, `{"abort_kind"`, `{"by":{"party":"bob"},"abort_kind"`),
		swap(abortRecord, `"domain_id":"sync::1"`, `"domain_id":null,"transfer":null,"mint":null,"tap":null`),
		`{"event_id":"#1","date":"2025-10-14T13:29:20.123456789+02:00","transfer":{"sender":{"party":""}}}`,
		`{"event_id":"#2","date":"2025-10-14T11:29:20Z","transfer":{"sender":{"party":"a"},"receivers":null,"balance_changes":null,"description":null}}`,
		`{"event_id":"#3","date":"2025-10-14T11:29:20Z","transfer":{"sender":{"party":"a"},"receivers":[],"balance_changes":[],"description":"a\u0000b\ud83d"}}`,
		`{"event_id":"#4","date":"2025-10-14T11:29:20Z","coin":1,"abort_transfer_instruction":{"transfer_instruction_cid":"00"}}`,
		`{"event_id":"#6","transfer":{"sender":{"party":"a"}}}`,
		`{"event_id":"#7","date":"2025-10-14T11:29:20Z","mint":{"coin_owner":"a","coin_amount":"1"},"tap":{"coin_owner":"a","coin_amount":"1"}}`,
		` { "event_id" : "#5" , "transaction_type" : "new" , "transfer" : 7 , "mint" : { } , "date" : "soon" , "round" : 1.5 } `,
	)
}
