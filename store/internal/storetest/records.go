package storetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// Tap returns a record of a tap. The text is its event id, and after a slash its amount, where two records differ in
// that.
func Tap(text string) ledger.Record {
	id, amount, ok := strings.Cut(text, "/")
	if !ok {
		amount = "1"
	}
	return ledger.Record{
		EventID: id, Kind: ledger.RecordTap, Date: Time("2025-01-02T03:04:05Z"), Word: "amulet",
		Tap: &ledger.OwnedAmount{Owner: "alice", Amount: ledger.Decimal(amount)},
	}
}

// RecordsOf returns the taps that Tap makes of texts.
func RecordsOf(texts []string) []ledger.Record {
	list := make([]ledger.Record, len(texts))
	for i, text := range texts {
		list[i] = Tap(text)
	}
	return list
}

// Transfer returns a record of a transfer with balance changes, of an amount and a rate for each party; none: an empty
// list.
func Transfer(round *int64, changes ...ledger.BalanceChange) ledger.Record {
	return ledger.Record{
		EventID: "#1220aa:0", Kind: ledger.RecordTransfer, Date: Time("2025-01-02T03:04:05Z"), Round: round,
		Word: "amulet",
		Transfer: &ledger.Transfer{
			Sender: ledger.Sender{Party: "alice"}, Receivers: []ledger.Receiver{},
			BalanceChanges: append([]ledger.BalanceChange{}, changes...),
		},
	}
}

// Change returns a change of a balance.
func Change(party string, amount, rate ledger.Decimal) ledger.BalanceChange {
	return ledger.BalanceChange{Party: party, InitialAmount: amount, HoldingFeesRate: rate}
}

// Receiver returns a receiver of a transfer.
func Receiver(party string, amount ledger.Decimal, fee *ledger.Decimal) ledger.Receiver {
	return ledger.Receiver{Party: party, Amount: amount, Fee: fee}
}

// Payment returns a record of a transfer at a time of 2025-01-02.
func Payment(id, clock, sender string, fee *ledger.Decimal, receivers ...ledger.Receiver) ledger.Record {
	record := Transfer(new(int64(5)), Change(sender, "1", "0"))
	record.EventID, record.Date = id, Time("2025-01-02T"+clock+"Z")
	record.Transfer.Sender = ledger.Sender{Party: sender, Fee: fee}
	record.Transfer.Receivers = append([]ledger.Receiver{}, receivers...)
	return record
}

// TransactionsPage has records of all kinds, with both words for the unit, with everything and with nearly nothing, and
// with values that no column can hold as they are.
const TransactionsPage = `{"transactions": [
	{"transaction_type": "transfer", "event_id": "#1220aa:0", "date": "2025-01-02T05:04:05.123456+02:00",
		"domain_id": "global::1",
	 "offset": "000000000000000012", "round": 7, "later": {"deep": [1, null, "x"]}, "transfer": {
		"sender": {"party": "alice::1", "sender_change_fee": "0.0300000000", "sender_change_amount": "10.0000000000",
			"sender_fee": "0.1", "holding_fees": "0.0000000000", "input_amulet_amount": "-5.25",
			"input_app_reward_amount": "1", "input_validator_reward_amount": "2.50", "input_sv_reward_amount": "3.0",
			"input_validator_faucet_amount": "123456789012345678901234567890.123456789012345678901234567890", "later": 1},
		"receivers": [
			{"party": "bob::1", "amount": "17.0000000000", "receiver_fee": "0.5", "later": true},
			{"party": "bob::1", "amount": "17.0000000000"}],
		"balance_changes": [
			{"party": "alice::1", "change_to_initial_amount_as_of_round_zero": "-17.6",
				"change_to_holding_fees_rate": "-0.0000190259"},
			{"party": "bob::1", "change_to_initial_amount_as_of_round_zero": "17.0", "change_to_holding_fees_rate": "0.00002",
				"later": []}],
		"description": "", "transfer_kind": "preapproval_send", "transferInstructionReceiver": "carol::1",
		"transferInstructionAmount": "17.00", "transferInstructionCid": "00cid", "later": "text"}},
	{"transaction_type": "transfer", "event_id": "#1220ab:0", "date": "2025-01-02T03:04:05.123456789Z",
		"domain_id": "global::1",
	 "extra": "\u0000", "transfer": {
		"sender": {"party": "alice::1", "sender_change_fee": "-0.00", "sender_change_amount": "007.5", "sender_fee": "00",
			"holding_fees": "-00.5", "input_coin_amount": "01", "input_app_reward_amount": "02",
				"input_validator_reward_amount": "03",
			"input_sv_reward_amount": "04", "input_validator_faucet_amount": "05", "extra": "\ud800"},
		"receivers": [{"party": "bob::1", "amount": "09", "receiver_fee": "-0", "extra": 1e999999}],
		"balance_changes": [{"party": "alice::1", "change_to_initial_amount_as_of_round_zero": "-08",
			"change_to_holding_fees_rate": "010", "extra": "\u0000"}],
		"description": "for \u0000 you", "transferInstructionAmount": "011", "extra": "\u0000"}},
	{"event_id": "#1220ac:0", "date": "2025-01-02T03:04:05Z", "transfer": {
		"sender": {"party": "alice::1"}, "receivers": [], "balance_changes": [], "description": "thanks"}},
	{"event_id": "#1220ac:0", "date": "2025-01-02T03:04:05Z", "transfer": {"sender": {"party": "alice::1"}}},
	{"transaction_type": "mint", "event_id": "#1220ad:1", "date": "2025-01-02T03:04:06Z", "domain_id": "global::2",
	 "offset": "", "mint": {"amulet_owner": "sv::1", "amulet_amount": "570776.2557077625"}},
	{"event_id": "#1220ad:2", "date": "2025-01-02T03:04:06Z", "round": 0, "mint": {"coin_owner": "sv::1",
		"coin_amount": "0001", "later": null, "x": 1}},
	{"event_id": "#1220ad:3", "date": "2025-01-02T03:04:06Z", "round": 8, "mint": {"amulet_owner": "sv::2",
		"amulet_amount": "2", "x": "\u0000"}},
	{"transaction_type": "devnet_tap", "event_id": "#1220ae:0", "date": "2025-01-02T03:04:07Z", "round": 8,
	 "tap": {"amulet_owner": "bob::1", "amulet_amount": "100.0000000000"}},
	{"event_id": "#1220ae:1", "date": "2025-01-02T03:04:07Z", "tap": {"coin_owner": "bob::1", "coin_amount": "-0",
		"x": "\u0000"}},
	{"transaction_type": "abort_transfer_instruction", "event_id": "#1220af:0", "date": "2025-01-02T03:04:08Z",
	 "abort_transfer_instruction": {"transfer_instruction_cid": "00cid", "abort_kind": "withdraw", "x": [2]}},
	{"event_id": "#1220af:1", "date": "2025-01-02T03:04:08Z",
		"abort_transfer_instruction": {"transfer_instruction_cid": "01cid", "x": "\u0000"}},
	{"transaction_type": "airdrop", "event_id": "#1220b0:0", "date": "2025-01-02T03:04:09.1234567Z",
		"domain_id": "global::3",
	 "offset": "000000000000000019", "round": 9, "airdrop": {"to": ["alice::1"]}},
	{"event_id": "#1220b0:1", "date": "soon", "round": "soon", "airdrop": {"to": "\u0000"}}
]}`

// EveryTransaction returns records that have a row in each table of the history, and no value that a column can't hold.
func EveryTransaction(t testing.TB) []ledger.Record {
	t.Helper()
	page, err := ledger.DecodeTransactions([]byte(TransactionsPage))
	require.NoError(t, err)
	unknown := ledger.Record{EventID: "#1220ff:0", Kind: ledger.RecordUnknown,
		Raw: ledger.JSON(`{"event_id": "#1220ff:0"}`)}
	return []ledger.Record{page[0], page[4], page[7], page[9], unknown}
}
