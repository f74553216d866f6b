package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

func decodeOne(t *testing.T, record string) Record {
	t.Helper()
	records, err := DecodeTransactions(history(record))
	require.NoError(t, err)
	require.Len(t, records, 1)
	return records[0]
}

func TestTheSampleRecordsAreTheServers(t *testing.T) {
	t.Parallel()
	api := openapi.Scan(t, "0.6")
	require.NoError(t, api.CheckResponse("POST", "/v0/transactions", 200, history(transferRecord, mintRecord, tapRecord, abortRecord)))
	require.NoError(t, api.CheckResponse("POST", "/v0/transactions", 200, realisticHistory(1)))
	require.Error(t, api.CheckResponse("POST", "/v0/transactions", 200, history(unknownRecord)))
}

func TestAMemberThatIsNullIsAbsent(t *testing.T) {
	t.Parallel()
	nulls := swap(swap(abortRecord, `"domain_id":"sync::1"`, `"domain_id":null,"offset":null,"round":null,"transfer":null,"mint":null`), `"withdraw"`, `null`)
	got := decodeOne(t, nulls)
	require.Equal(t, RecordAbort, got.Kind)
	require.Nil(t, got.DomainID)
	require.Nil(t, got.Offset)
	require.Nil(t, got.Round)
	require.Nil(t, got.Abort.Kind)
	require.Nil(t, got.Extra)
	got = decodeOne(t, swap(untyped(abortRecord), `{`, `{"transaction_type":null,`))
	require.Equal(t, RecordAbort, got.Kind)
	require.Nil(t, got.Type)
	got = decodeOne(t, swap(transferRecord, `"input_amulet_amount"`, `"input_coin_amount":null,"input_amulet_amount"`))
	require.Equal(t, "amulet", got.Word, "the other spelling as null is absent")
}

func TestAbsentAndEmptyListsAreTold(t *testing.T) {
	t.Parallel()
	const record = `{"event_id":"e","date":"2025-10-14T11:29:20Z","transfer":{"sender":{"party":"a"}}}`
	none := decodeOne(t, record).Transfer
	require.Nil(t, none.Receivers)
	require.Nil(t, none.BalanceChanges)
	empty := decodeOne(t, swap(record, `"a"}`, `"a"},"receivers":[],"balance_changes":[]`)).Transfer
	require.NotNil(t, empty.Receivers)
	require.NotNil(t, empty.BalanceChanges)
	// Records with longer lists before, whose memory is used again.
	records, err := DecodeTransactions(history(transferRecord, record, swap(record, `"a"}`, `"a"},"receivers":[]`)))
	require.NoError(t, err)
	require.Nil(t, records[1].Transfer.Receivers)
	require.Empty(t, records[2].Transfer.Receivers)
	require.Len(t, records[0].Transfer.Receivers, 2)
}

func TestUnknownMembersOfARecordStandInExtraWhereTheyStood(t *testing.T) {
	t.Parallel()
	record := swap(swap(transferRecord, `"offset"`, `"Offset":1,"memo":{"a": 1.50},"offset"`), `{"sender":{`, `{"lane":[ ],"sender":{"rank":null,`)
	record = swap(swap(record, `{"party":"bob"`, `{"vat":"0.1","party":"bob"`), `{"party":"alice","change`, `{"asOf":7,"party":"alice","change`)
	got := decodeOne(t, record)
	require.Equal(t, `{"Offset":1,"memo":{"a": 1.50}}`, string(got.Extra))
	require.Equal(t, `{"lane":[ ]}`, string(got.Transfer.Extra))
	require.Equal(t, `{"rank":null}`, string(got.Transfer.Sender.Extra))
	require.Equal(t, `{"vat":"0.1"}`, string(got.Transfer.Receivers[0].Extra))
	require.Nil(t, got.Transfer.Receivers[1].Extra)
	require.Equal(t, `{"asOf":7}`, string(got.Transfer.BalanceChanges[0].Extra))
	require.Equal(t, `{"x":"\u0000"}`, string(decodeOne(t, swap(mintRecord, `{"amulet_owner"`, `{"x":"\u0000","amulet_owner"`)).Mint.Extra))
	require.Equal(t, `{"why":1}`, string(decodeOne(t, swap(abortRecord, `{"abort_kind"`, `{"why":1,"abort_kind"`)).Abort.Extra))
}

func TestARecordOfAnUnknownKindIsKeptAsSent(t *testing.T) {
	t.Parallel()
	got := decodeOne(t, "\n "+unknownRecord+" ")
	require.Equal(t, Record{
		EventID: "#12ab:7", Kind: RecordUnknown, Type: new("lock"),
		Date:     Time{Time: time.Date(2025, 10, 14, 11, 29, 24, 0, time.UTC), Valid: true},
		DomainID: new("sync::1"), Offset: new("0c"), Round: new(int64(43)), Raw: JSON(unknownRecord),
	}, got)

	got = decodeOne(t, untyped(unknownRecord))
	require.Equal(t, RecordUnknown, got.Kind, "none of the known parts, and another object")
	require.Nil(t, got.Type)
	require.Equal(t, untyped(unknownRecord), string(got.Raw))

	for _, record := range []string{
		`{"event_id":"e","transaction_type":"x","date":"soon","domain_id":7,"offset":["a"],"round":"1"}`,
		`{"event_id":"e","transfer":7,"mint":{"coin_owner":1},"tap":[],"round":1.5,"offset":"\u0000","transaction_type":"x"}`,
		`{"event_id":"e","transfer":{"sender":"a","receivers":{}},"transaction_type":""}`,
		swap(transferRecord, `"transfer"`, `"Transfer"`),
	} {
		got = decodeOne(t, record)
		require.Equal(t, RecordUnknown, got.Kind, "the type decides, whatever the known parts hold")
		require.Equal(t, record, string(got.Raw))
		require.Nil(t, got.Transfer)
		require.Nil(t, got.Extra, "it stands in Raw")
	}
	require.Equal(t, Record{EventID: "e", Kind: RecordUnknown, Type: new("x"),
		Raw: JSON(`{"event_id":"e","transaction_type":"x","date":"soon","domain_id":7}`)},
		decodeOne(t, `{"event_id":"e","transaction_type":"x","date":"soon","domain_id":7}`), "what can't be read stands in Raw alone")
}

// Which parts a record has, interface.md does not say, nor that it has a date: what does not look like one of the known
// kinds is kept as it is, and stops nothing.
func TestARecordOfAnUnknownShapeIsKeptAsSent(t *testing.T) {
	t.Parallel()
	const anotherPart = `"mint":{"amulet_owner":"a","amulet_amount":"1"},`
	date := Time{Time: time.Date(2025, 10, 14, 11, 29, 22, 0, time.UTC), Valid: true}
	for name, c := range map[string]struct {
		record string
		typ    *string
		date   Time
	}{
		"two parts":                 {swap(tapRecord, `"tap":`, anotherPart+`"tap":`), new("devnet_tap"), date},
		"two parts, no type":        {swap(untyped(tapRecord), `"tap":`, anotherPart+`"tap":`), nil, date},
		"one that can't be read":    {swap(untyped(tapRecord), `"tap":`, `"mint":7,"transfer":{"sender":null},"tap":`), nil, date},
		"two parts of other types":  {swap(swap(tapRecord, `"tap":`, anotherPart+`"transfer":`), "devnet_tap", "abort_transfer_instruction"), new("abort_transfer_instruction"), date},
		"no date":                   {swap(tapRecord, `"date"`, `"Date"`), new("devnet_tap"), Time{}},
		"a date that is null":       {swap(untyped(tapRecord), `"2025-10-14T11:29:22Z"`, `null`), nil, Time{}},
		"no date, and a bad amount": {swap(swap(tapRecord, `"date"`, `"Date"`), `"7.0"`, `7`), new("devnet_tap"), Time{}},
		"two parts, no date":        {swap(swap(tapRecord, `"date"`, `"Date"`), `"tap":`, anotherPart+`"tap":`), new("devnet_tap"), Time{}},
		"two parts, a bad date":     {swap(swap(tapRecord, `2025-10-14`, `2025-02-30`), `"tap":`, anotherPart+`"tap":`), new("devnet_tap"), Time{}},
		"no part, no type":          {swap(untyped(tapRecord), `"tap":{"amulet_owner":"alice","amulet_amount":"7.0"}`, `"tap":null,"lock":[]`), nil, date},
	} {
		require.Equal(t, Record{EventID: "#12ab:5", Kind: RecordUnknown, Type: c.typ, Date: c.date, DomainID: new("sync::1"), Round: new(int64(0)), Raw: JSON(c.record)},
			decodeOne(t, c.record), name)
	}
}

// A NUL or half of a surrogate pair in a description would stop everybody's history for ever, and anybody can write
// one.
func TestNoDescriptionStopsTheStream(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`"a\u0000b"`: "a\uFFFDb", `"\ud83d rent"`: "\uFFFD rent", `"\u0000\udc00"`: "\uFFFD\uFFFD", `"\u0000\ud83d\ude00"`: "\uFFFD😀",
	} {
		got := decodeOne(t, swap(transferRecord, `"rent, \"March\""`, sent)).Transfer
		require.Equal(t, want, *got.Description)
		require.Equal(t, sent, string(got.DescriptionExact))
	}
	for sent, want := range map[string]string{`""`: "", `"\ud83d\ude00"`: "😀", `"\uFFFD\\u0000"`: `�\u0000`} {
		got := decodeOne(t, swap(transferRecord, `"rent, \"March\""`, sent)).Transfer
		require.Equal(t, want, *got.Description)
		require.Nil(t, got.DescriptionExact)
	}
}

func TestRequiredAndOptionalMembersOfARecord(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, record, path, required, optional string }{
		{"transfer record", transferRecord, "", "event_id transfer", "transaction_type date domain_id offset round"},
		{"mint record", mintRecord, "", "event_id mint", "transaction_type date domain_id offset"},
		{"tap record", tapRecord, "", "event_id tap", "transaction_type date domain_id round"},
		{"abort record", abortRecord, "", "event_id abort_transfer_instruction", "transaction_type date domain_id"},
		{"unknown record", swap(unknownRecord, `\u0000\ud800`, ``), "", "event_id", "transaction_type date domain_id offset round lock"},
		{"transfer", transferRecord, "transfer", "sender",
			"receivers balance_changes description transfer_kind transferInstructionReceiver transferInstructionAmount transferInstructionCid"},
		{"sender", transferRecord, "transfer/sender", "party", "sender_change_fee sender_change_amount sender_fee holding_fees input_amulet_amount " +
			"input_app_reward_amount input_validator_reward_amount input_sv_reward_amount input_validator_faucet_amount"},
		{"receiver", transferRecord, "transfer/receivers/1", "party amount", "receiver_fee"},
		{"balance change", transferRecord, "transfer/balance_changes/0",
			"party change_to_initial_amount_as_of_round_zero change_to_holding_fees_rate", ""},
		{"mint", mintRecord, "mint", "amulet_owner amulet_amount", ""},
		{"mint in coins", inCoins(mintRecord), "mint", "coin_owner coin_amount", ""},
		{"tap", tapRecord, "tap", "amulet_owner amulet_amount", ""},
		{"abort", abortRecord, "abort_transfer_instruction", "transfer_instruction_cid", "abort_kind"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			requireMembers(t, 0, row.record, row.path, func(record string) error {
				_, err := DecodeTransactions(history(record))
				return err
			}, row.required, row.optional)
		})
	}
}
