package ledger

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func FuzzDecodeTransactions(f *testing.F) {
	addSeeds(f, "transactions", everyRecord(), history(transferRecord), history(mintRecord), history(tapRecord), history(abortRecord),
		history(unknownRecord), history(inCoins(untyped(transferRecord))), history(inCoins(untyped(mintRecord))), history())
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeTransactions(body)
		if err != nil {
			requireDecodeError(t, err)
			require.Nil(t, got)
			return
		}
		require.True(t, utf8.Valid(body))
		requireRebuiltRecords(t, got, membersIn(t, body)["transactions"])
		for i := range got {
			requireRecord(t, &got[i])
		}
		again, err := DecodeTransactions(body)
		require.NoError(t, err)
		for i := range got {
			require.Equal(t, got[i].Fingerprint(), again[i].Fingerprint())
		}
	})
}

// requireRecord checks what holds for every record that decodes.
func requireRecord(t *testing.T, r *Record) {
	t.Helper()
	require.NotEmpty(t, r.EventID)
	requireText(t, r.EventID)
	requireOptionalText(t, r.Type, r.DomainID, r.Offset)
	requireExtra(t, r.Extra)
	parts := map[RecordKind]bool{
		RecordTransfer: r.Transfer != nil, RecordMint: r.Mint != nil, RecordTap: r.Tap != nil,
		RecordAbort: r.Abort != nil, RecordUnknown: r.Raw != nil,
	}
	for kind, set := range parts {
		require.Equal(t, kind == r.Kind, set, "%s in a record of the kind %s", kind, r.Kind)
	}
	require.True(t, r.Date.Valid || r.Kind == RecordUnknown)
	require.Contains(t, []string{"", wordCoin, wordAmulet}, r.Word)
	switch r.Kind {
	case RecordTransfer:
		requireTransfer(t, r.Transfer)
		require.Equal(t, r.Word != "", r.Transfer.Sender.InputAmount != nil)
	case RecordMint, RecordTap:
		owned := r.Mint
		if owned == nil {
			owned = r.Tap
		}
		requireText(t, owned.Owner)
		requireDecimal(t, &owned.Amount)
		requireExtra(t, owned.Extra)
		require.NotEmpty(t, r.Word)
	case RecordAbort:
		require.NotEmpty(t, r.Abort.InstructionCID)
		requireText(t, r.Abort.InstructionCID)
		requireOptionalText(t, r.Abort.Kind)
		requireExtra(t, r.Abort.Extra)
	default:
		require.Nil(t, r.Extra)
	}
}

func requireTransfer(t *testing.T, r *Transfer) {
	t.Helper()
	s := &r.Sender
	requireText(t, s.Party)
	requireDecimal(t, s.ChangeFee, s.ChangeAmount, s.Fee, s.HoldingFees, s.InputAmount, s.InputAppRewardAmount, s.InputValidatorRewardAmount,
		s.InputSVRewardAmount, s.InputValidatorFaucetAmount, r.InstructionAmount)
	requireOptionalText(t, r.Description, r.Kind, r.InstructionReceiver, r.InstructionCID)
	requireExtra(t, r.Extra)
	requireExtra(t, s.Extra)
	for _, x := range r.Receivers {
		requireText(t, x.Party)
		requireDecimal(t, &x.Amount, x.Fee)
		requireExtra(t, x.Extra)
	}
	for _, x := range r.BalanceChanges {
		requireText(t, x.Party)
		requireDecimal(t, &x.InitialAmount, &x.HoldingFeesRate)
		requireExtra(t, x.Extra)
	}
}

func requireOptionalText(t *testing.T, texts ...*string) {
	t.Helper()
	for _, text := range texts {
		if text != nil {
			requireText(t, *text)
		}
	}
}

func requireDecimal(t *testing.T, numbers ...*Decimal) {
	t.Helper()
	for _, d := range numbers {
		if d != nil {
			_, err := ParseDecimal(string(*d))
			require.NoError(t, err)
		}
	}
}
