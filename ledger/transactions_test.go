package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A record that is later than all stored ones is not stored; every other one may be, and one without a date.
func TestARecordMayBeStoredUpToTheLatestDate(t *testing.T) {
	t.Parallel()
	at := func(microsecond int64) *Transaction {
		return &Transaction{Date: Time{Time: time.UnixMicro(microsecond).UTC(), Valid: true}}
	}
	var p TransactionsPosition
	require.False(t, p.MayHave(at(1)), "nothing is stored")
	require.True(t, p.MayHave(&Transaction{}))
	p = p.After([]Transaction{*at(5), *at(7), *at(6), {}})
	for microsecond, may := range map[int64]bool{-1: true, 6: true, 7: true, 8: false} {
		require.Equal(t, may, p.MayHave(at(microsecond)), microsecond)
	}
	require.Equal(t, TransactionsPosition{Revision: 2, ShownTo: 5, LastSeq: 5, LatestDate: 7}, p.After([]Transaction{*at(3)}))
}
