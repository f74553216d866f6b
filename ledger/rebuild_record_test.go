package ledger

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// TestDecodingOfTransactionsLosesNothing rebuilds the server's records from what was decoded and compares them member
// by member with what was sent. What may differ, and nothing else:
//
//   - a member that is null may be absent, unless it is not known,
//   - the order of an object's members, and white space and escapes outside of members that are not known,
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

func requireRebuiltRecords(t *testing.T, got []Record, list jsontext.Value) {
	t.Helper()
	sent := elementsOf(t, list)
	require.Len(t, got, len(sent))
	for i, original := range sent {
		if got[i].Kind == RecordUnknown {
			require.Equal(t, string(original), string(got[i].Raw))
			continue
		}
		require.Equal(t, memberTree(t, original, recordShape), rebuildRecord(t, &got[i]))
	}
}

// shape is the known members of an object. The shape of a member that is no object is nil.
type shape map[string]shape

var recordShape = shape{
	"transaction_type": nil, "event_id": nil, "date": nil, "domain_id": nil, "offset": nil, "round": nil,
	"transfer": {
		"sender": {
			"party": nil, "sender_change_fee": nil, "sender_change_amount": nil, "sender_fee": nil, "holding_fees": nil,
			"input_coin_amount": nil, "input_amulet_amount": nil, "input_app_reward_amount": nil, "input_validator_reward_amount": nil,
			"input_sv_reward_amount": nil, "input_validator_faucet_amount": nil,
		},
		"receivers":       {"party": nil, "amount": nil, "receiver_fee": nil},
		"balance_changes": {"party": nil, "change_to_initial_amount_as_of_round_zero": nil, "change_to_holding_fees_rate": nil},
		"description":     nil, "transfer_kind": nil,
		"transferInstructionReceiver": nil, "transferInstructionAmount": nil, "transferInstructionCid": nil,
	},
	"mint":                       ownedShape,
	"tap":                        ownedShape,
	"abort_transfer_instruction": {"abort_kind": nil, "transfer_instruction_cid": nil},
}

var ownedShape = shape{"coin_owner": nil, "coin_amount": nil, "amulet_owner": nil, "amulet_amount": nil}

// memberTree turns JSON into maps, lists and texts in which only the differences above have gone. Members that are not
// known are the bytes that were sent.
func memberTree(t *testing.T, value jsontext.Value, of shape) any {
	t.Helper()
	if value.Kind() == '[' {
		var in []jsontext.Value
		require.NoError(t, json.Unmarshal(value, &in, jsontext.AllowInvalidUTF8(true)))
		out := []any{}
		for _, item := range in {
			out = append(out, memberTree(t, item, of))
		}
		return out
	}
	var in map[string]jsontext.Value
	require.NoError(t, json.Unmarshal(value, &in, jsontext.AllowInvalidUTF8(true)))
	out := map[string]any{}
	for name, member := range in {
		below, known := of[name]
		switch {
		case !known:
			out[name] = "unknown " + string(member)
		case member.Kind() == 'n':
		case below != nil:
			out[name] = memberTree(t, member, below)
		default:
			out[name] = leaf(t, name, member)
		}
	}
	return out
}

func leaf(t *testing.T, name string, value jsontext.Value) any {
	t.Helper()
	if value.Kind() != '"' {
		n, err := strconv.ParseInt(string(value), 10, 64)
		require.NoError(t, err)
		return n
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	if err != nil || strings.Contains(string(unquoted), "\x00") {
		return "exact " + string(value)
	}
	if name == "date" {
		return instant(t, string(unquoted))
	}
	return string(unquoted)
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at.UTC()
}

// tree is the members of an object in the making.
type tree map[string]any

func (m tree) text(name string, value *string) {
	if value != nil {
		m[name] = *value
	}
}

func (m tree) decimal(name string, value *Decimal) {
	if value != nil {
		m[name] = string(*value)
	}
}

// with puts the members of Extra back and returns the whole.
func (m tree) with(t *testing.T, extra JSON) map[string]any {
	t.Helper()
	if extra != nil {
		for name, value := range memberTree(t, extra, nil).(map[string]any) {
			require.NotContains(t, m, name)
			m[name] = value
		}
	}
	return m
}

func rebuildRecord(t *testing.T, r *Record) map[string]any {
	t.Helper()
	m := tree{"event_id": r.EventID, "date": r.Date.Time}
	if r.Date.Exact != "" {
		m["date"] = instant(t, r.Date.Exact)
	}
	m.text("transaction_type", r.Type)
	m.text("domain_id", r.DomainID)
	m.text("offset", r.Offset)
	if r.Round != nil {
		m["round"] = *r.Round
	}
	if r.Transfer != nil {
		m["transfer"] = rebuildTransfer(t, r.Transfer, r.Word)
	}
	for name, owned := range map[string]*OwnedAmount{"mint": r.Mint, "tap": r.Tap} {
		if owned != nil {
			m[name] = tree{r.Word + "_owner": owned.Owner, r.Word + "_amount": string(owned.Amount)}.with(t, owned.Extra)
		}
	}
	if r.Abort != nil {
		abort := tree{"transfer_instruction_cid": r.Abort.InstructionCID}
		abort.text("abort_kind", r.Abort.Kind)
		m["abort_transfer_instruction"] = abort.with(t, r.Abort.Extra)
	}
	return m.with(t, r.Extra)
}

func rebuildTransfer(t *testing.T, r *Transfer, word string) map[string]any {
	t.Helper()
	sender := tree{"party": r.Sender.Party}
	sender.decimal("sender_change_fee", r.Sender.ChangeFee)
	sender.decimal("sender_change_amount", r.Sender.ChangeAmount)
	sender.decimal("sender_fee", r.Sender.Fee)
	sender.decimal("holding_fees", r.Sender.HoldingFees)
	sender.decimal("input_"+word+"_amount", r.Sender.InputAmount)
	sender.decimal("input_app_reward_amount", r.Sender.InputAppRewardAmount)
	sender.decimal("input_validator_reward_amount", r.Sender.InputValidatorRewardAmount)
	sender.decimal("input_sv_reward_amount", r.Sender.InputSVRewardAmount)
	sender.decimal("input_validator_faucet_amount", r.Sender.InputValidatorFaucetAmount)
	m := tree{"sender": sender.with(t, r.Sender.Extra)}
	if r.Receivers != nil {
		receivers := []any{}
		for _, x := range r.Receivers {
			receiver := tree{"party": x.Party, "amount": string(x.Amount)}
			receiver.decimal("receiver_fee", x.Fee)
			receivers = append(receivers, receiver.with(t, x.Extra))
		}
		m["receivers"] = receivers
	}
	if r.BalanceChanges != nil {
		changes := []any{}
		for _, x := range r.BalanceChanges {
			changes = append(changes, tree{
				"party": x.Party, "change_to_initial_amount_as_of_round_zero": string(x.InitialAmount),
				"change_to_holding_fees_rate": string(x.HoldingFeesRate),
			}.with(t, x.Extra))
		}
		m["balance_changes"] = changes
	}
	m.text("description", r.Description)
	if r.DescriptionExact != nil {
		m["description"] = "exact " + string(r.DescriptionExact)
	}
	m.text("transfer_kind", r.Kind)
	m.text("transferInstructionReceiver", r.InstructionReceiver)
	m.decimal("transferInstructionAmount", r.InstructionAmount)
	m.text("transferInstructionCid", r.InstructionCID)
	return m.with(t, r.Extra)
}
