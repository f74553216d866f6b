package ledger

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// TestDecodingOfTransactionsLosesNothing rebuilds the server's records from what was decoded and compares them member
// by member with what was sent. What may differ, and nothing else:
//
//   - a member that is null may be absent,
//   - the order of an object's members, white space and escapes,
//   - the text form of the date, not the time itself to the nanosecond.
//
// A record of an unknown kind is the same bytes.
func TestDecodingOfTransactionsLosesNothing(t *testing.T) {
	t.Parallel()
	requireRead(t, "transactions", everyRecord())
	requireRead(t, "transactions", realisticHistory(3))
}

// Records that were noted are the same when they are read again, also as jsonb gives them back: with spaces, and
// members in another order.
func TestNotedRecordsLoseNothing(t *testing.T) {
	t.Parallel()
	text := jsontext.Value(strings.NewReplacer(`\ud800`, "A", `\ud83d`, "B").Replace(string(everyRecord()))) // which jsonb can't hold
	require.NoError(t, text.Compact())
	want, err := DecodeTransactions(text)
	require.NoError(t, err)
	for i := range want {
		want[i].Rules = int32(i % 2)
	}
	for _, records := range [][]Record{want, {}} {
		noted, err := EncodeRecords(records)
		require.NoError(t, err)
		got, err := DecodeRecords(noted)
		require.NoError(t, err)
		require.Equal(t, records, got)
		require.NoError(t, noted.Indent())
		got, err = DecodeRecords(noted)
		require.NoError(t, err)
		require.Len(t, got, len(records))
	}
	u := TransferUpdate{ID: "u", Exercises: []TransferExercise{{Entity: "AmuletRules", Choice: "AmuletRules_Mint"}}}
	require.Len(t, u.Records(), 1)
	u.Noted = []Record{}
	require.Empty(t, u.Records(), "also of an update that has none")
	u.Noted = []Record{{EventID: "#u:0", Rules: RulesVersion + 1}}
	require.Equal(t, []Record{{EventID: "#u:0", Rules: RulesVersion}}, u.Records(), "by the rules in force")

	noted, err := EncodeRecords([]Record{decodeOne(t, tapRecord)})
	require.NoError(t, err)
	const stored = `[{"EventID":"#12ab:5","Kind":"tap","Type":"devnet_tap","Date":"2025-10-14T11:29:22Z","DomainID":"sync::1","Round":0,"Word":"amulet","Tap":{"Owner":"alice","Amount":"7.0"}}]`
	require.Equal(t, stored, string(noted), "what is stored is read by later versions")
	for _, other := range []string{`[{"EventId":"#1"}]`, `{}`, `[{"EventID":7}]`, ``} {
		_, err := DecodeRecords(JSON(other))
		require.Error(t, err, other)
	}
}

func requireRebuiltRecords(t *testing.T, got []Record, sent []jsontext.Value) {
	t.Helper()
	require.Len(t, got, len(sent))
	for i, original := range sent {
		if got[i].Kind == RecordUnknown {
			require.Equal(t, string(original), string(got[i].Raw))
			continue
		}
		requireSameJSON(t, original, rebuildRecord(&got[i]))
	}
}

func (m members) decimal(name string, value *Decimal) {
	if value != nil {
		m[name] = string(*value)
	}
}

func (m members) with(extra JSON) members {
	m.extra(extra)
	return m
}

func rebuildRecord(r *Record) members {
	m := members{"event_id": r.EventID}
	m.time("date", r.Date)
	m.text("transaction_type", r.Type)
	m.text("domain_id", r.DomainID)
	m.text("offset", r.Offset)
	add(m, "round", r.Round)
	if r.Transfer != nil {
		m["transfer"] = rebuildTransfer(r.Transfer, r.Word)
	}
	for name, owned := range map[string]*OwnedAmount{"mint": r.Mint, "tap": r.Tap} {
		if owned != nil {
			m[name] = members{r.Word + "_owner": owned.Owner, r.Word + "_amount": string(owned.Amount)}.with(owned.Extra)
		}
	}
	if r.Abort != nil {
		abort := members{"transfer_instruction_cid": r.Abort.InstructionCID}
		abort.text("abort_kind", r.Abort.Kind)
		m["abort_transfer_instruction"] = abort.with(r.Abort.Extra)
	}
	return m.with(r.Extra)
}

func rebuildTransfer(r *Transfer, word string) members {
	sender := members{"party": r.Sender.Party}
	sender.decimal("sender_change_fee", r.Sender.ChangeFee)
	sender.decimal("sender_change_amount", r.Sender.ChangeAmount)
	sender.decimal("sender_fee", r.Sender.Fee)
	sender.decimal("holding_fees", r.Sender.HoldingFees)
	sender.decimal("input_"+word+"_amount", r.Sender.InputAmount)
	sender.decimal("input_app_reward_amount", r.Sender.InputAppRewardAmount)
	sender.decimal("input_validator_reward_amount", r.Sender.InputValidatorRewardAmount)
	sender.decimal("input_sv_reward_amount", r.Sender.InputSVRewardAmount)
	sender.decimal("input_validator_faucet_amount", r.Sender.InputValidatorFaucetAmount)
	m := members{"sender": sender.with(r.Sender.Extra)}
	if r.Receivers != nil {
		receivers := []members{}
		for _, x := range r.Receivers {
			receiver := members{"party": x.Party, "amount": string(x.Amount)}
			receiver.decimal("receiver_fee", x.Fee)
			receivers = append(receivers, receiver.with(x.Extra))
		}
		m["receivers"] = receivers
	}
	if r.BalanceChanges != nil {
		changes := []members{}
		for _, x := range r.BalanceChanges {
			changes = append(changes, members{
				"party": x.Party, "change_to_initial_amount_as_of_round_zero": string(x.InitialAmount),
				"change_to_holding_fees_rate": string(x.HoldingFeesRate),
			}.with(x.Extra))
		}
		m["balance_changes"] = changes
	}
	m.text("description", r.Description)
	m.payload("description", r.DescriptionExact)
	m.text("transfer_kind", r.Kind)
	m.text("transferInstructionReceiver", r.InstructionReceiver)
	m.decimal("transferInstructionAmount", r.InstructionAmount)
	m.text("transferInstructionCid", r.InstructionCID)
	return m.with(r.Extra)
}
