package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a database began with goes on, whatever the service has. A new one begins with updates where there are any.
func TestWhatIsReadOfAScanIsChosen(t *testing.T) {
	t.Parallel()
	for _, served := range []Histories{{}, {Updates: true}, {Transactions: true}, {true, true}} {
		for begun, want := range map[Histories]ScanHistory{
			{Updates: true}: ScanUpdates, {Transactions: true}: ScanTransactions, {true, true}: ScanBoth,
		} {
			read, because := Choose(begun, served)
			require.Equal(t, want, read, "%+v %+v", begun, served)
			require.Contains(t, because, "the database began with")
		}
	}
	for served, want := range map[Histories]ScanHistory{{}: "", {Updates: true}: ScanUpdates, {Transactions: true}: ScanTransactions, {true, true}: ScanUpdates} {
		read, _ := Choose(Histories{}, served)
		require.Equal(t, want, read, "%+v", served)
	}
	require.True(t, ScanHistory("").Auto())
	require.False(t, ScanHistory("none").Auto() || ScanHistory("none").Updates() || ScanHistory("none").Transactions())
}
