package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func fingerprint(t *testing.T, record string) int64 {
	t.Helper()
	r := decodeOne(t, record)
	return r.Fingerprint()
}

// Fingerprints are stored: they must be the same in every later version, or every record would seem to be another one.
func TestFingerprintsStayTheSame(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		record      string
		fingerprint int64
	}{
		"transfer": {transferRecord, 6959746720481165918},
		"mint":     {mintRecord, -7821097308289810667},
		"tap":      {tapRecord, 1235140140158302975},
		"abort":    {abortRecord, 2404609317161845163},
		"unknown":  {unknownRecord, -8420712199920330508},
	} {
		require.Equal(t, want.fingerprint, fingerprint(t, want.record), name)
	}
}

func TestTheFingerprintLeavesOutWhatDiffersBetweenServices(t *testing.T) {
	t.Parallel()
	same := func(record string, others ...string) {
		t.Helper()
		for _, other := range others {
			require.Equal(t, fingerprint(t, record), fingerprint(t, other), other)
		}
	}
	same(transferRecord,
		untyped(transferRecord), inCoins(transferRecord), inCoins(untyped(transferRecord)),
		swap(transferRecord, `"000000000000000a1b"`, `"0c"`), swap(transferRecord, `"offset"`, `"was"`),
		swap(transferRecord, `"1.50"`, `"01.5"`), swap(transferRecord, `"2"`, `"2.00"`),
		swap(transferRecord, `"balance_changes"`, `"balance_changes":[],"was"`), swap(transferRecord, `"balance_changes"`, `"balance_changes":null,"was"`),
		swap(transferRecord, `"transfer_kind"`, `"new"`), swap(transferRecord, `"round"`, `"Round"`), swap(transferRecord, `"domain_id"`, `"synchronizer_id"`),
		swap(transferRecord, "11:29:20.015513Z", "13:29:20.0155130+02:00"),
	)
	same(mintRecord, untyped(mintRecord), inCoins(mintRecord), swap(mintRecord, `100.0000000000`, `100`), swap(mintRecord, `{"amulet_owner"`, `{"a":1,"amulet_owner"`))
	same(tapRecord, untyped(tapRecord), inCoins(tapRecord), swap(tapRecord, `"7.0"`, `"007"`))
	same(swap(tapRecord, `"7.0"`, `"0"`), swap(tapRecord, `"7.0"`, `"-0.00"`))
	same(abortRecord, untyped(abortRecord), swap(abortRecord, `"abort_kind":"withdraw",`, ``))
	same(unknownRecord,
		swap(unknownRecord, `"0c"`, `"0d"`), swap(unknownRecord, `"offset":"0c",`, ``), swap(unknownRecord, `"offset":"0c"`, `"\u006fffset":{"a":1}`),
		swap(unknownRecord, `{"amount": 1.50, "note":"\u0000\ud800"}`, ` { "note" : "\u0000\ud800" , "amount":1.50}`))
	plain := swap(unknownRecord, `\ud800`, `A`)
	same(plain, swap(plain, `"note":"\u0000A"`, `"not\u0065":"\u0000\u0041"`))
}

// What follows from an update is known again without its content, which may have been redacted.
func TestTheFingerprintOfADerivedRecordLeavesOutWhatIsRedacted(t *testing.T) {
	t.Parallel()
	derived := func(text string) *Record {
		u := TransferUpdate{ID: "u", Exercises: []TransferExercise{{Entity: "AmuletRules", Choice: "AmuletRules_Mint", Argument: JSON(text), Result: JSON(`7`)}}}
		return &u.Records()[0]
	}
	kept, erased := derived(`{"a": 1}`), derived(`{"a": 2}`)
	require.Equal(t, RecordUnknown, kept.Kind)
	require.NotEqual(t, kept.Raw, erased.Raw)
	erased.Raw = nil
	require.Equal(t, kept.Fingerprint(), erased.Fingerprint())
}

func TestTheFingerprintCoversWhatARecordIsAbout(t *testing.T) {
	t.Parallel()
	records := []string{
		transferRecord,
		swap(transferRecord, `#12ab:3`, `#12ab:4`),
		swap(transferRecord, `:20.015513Z`, `:20.015514Z`),
		swap(transferRecord, `"sender":{"party":"alice"`, `"sender":{"party":"alicf"`),
		swap(transferRecord, `"party":"bob"`, `"party":"bo"`),
		swap(transferRecord, `"1.50"`, `"1.51"`),
		swap(transferRecord, `"1.50"`, `"-1.50"`),
		swap(transferRecord, `{"party":"carol","amount":"2","receiver_fee":"0"}`, `{"party":"bob","amount":"1.50"}`),
		swap(transferRecord, `,{"party":"carol","amount":"2","receiver_fee":"0"}`, ``),
		swap(transferRecord, `"receivers"`, `"was"`),
		swap(transferRecord, `"00cid"`, `"00cie"`),
		swap(transferRecord, `"00cid"`, `""`),
		swap(transferRecord, `"00cid"`, `null`),
		mintRecord,
		swap(swap(mintRecord, `"mint":`, `"tap":`), `"mint"`, `"devnet_tap"`),
		swap(mintRecord, `"dso"`, `"ds"`),
		swap(mintRecord, `100.0000000000`, `100.0000000001`),
		tapRecord,
		swap(tapRecord, `#12ab:5`, `#12ab:6`),
		swap(tapRecord, `:22Z`, `:23Z`),
		swap(tapRecord, `"alice"`, `"alice "`),
		swap(tapRecord, `"7.0"`, `"70"`),
		abortRecord,
		swap(abortRecord, `"00cid"`, `"00cie"`),
		unknownRecord,
		untyped(unknownRecord),
		swap(unknownRecord, `"lock","event`, `"","event`),
		swap(unknownRecord, `1.50`, `1.500000000000000000000000001`),
		swap(unknownRecord, `\ud800`, `\ud801`),
		swap(unknownRecord, `"round":43`, `"round":44`),
		swap(unknownRecord, `{"amount"`, `{"offset":1,"amount"`), // only the record's own offset is left out
		swap(unknownRecord, `{"amount"`, `{"offset":2,"amount"`),
	}
	seen := map[int64]string{}
	for _, record := range records {
		f := fingerprint(t, record)
		require.Empty(t, seen[f], "%s\nhas the same fingerprint as the one before", record)
		seen[f] = record
	}
}

// What one text loses the next one wins: the encoding keeps them apart.
func TestTheFingerprintKeepsTextsApart(t *testing.T) {
	t.Parallel()
	owned := `{"event_id":"E","date":"2025-10-14T11:29:20Z","mint":{"coin_owner":"O","coin_amount":"A"}}`
	with := func(id, owner, amount string) int64 {
		return fingerprint(t, strings.NewReplacer("E", id, "O", owner, "A", amount).Replace(owned))
	}
	require.NotEqual(t, with("e", "a1", "1"), with("e", "a", "11"))
	require.NotEqual(t, with("e", "a", "11"), with("e", "a1", "1"))
	require.NotEqual(t, with("emint", "a", "1"), with("e", "minta", "1"))
}
