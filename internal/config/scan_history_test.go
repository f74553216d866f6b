package config

import (
	"io"
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
			read, because, err := Choose(begun, func() (Histories, error) {
				t.Error("the service is asked")
				return served, nil
			})
			require.NoError(t, err)
			require.Equal(t, want, read, "%+v %+v", begun, served)
			require.Contains(t, because, "the database began with")
		}
	}
	for served, want := range map[Histories]ScanHistory{{}: "", {Updates: true}: ScanUpdates, {Transactions: true}: ScanTransactions, {true, true}: ScanUpdates} {
		read, _, err := Choose(Histories{}, func() (Histories, error) { return served, nil })
		require.NoError(t, err)
		require.Equal(t, want, read, "%+v", served)
	}
	_, _, err := Choose(Histories{}, func() (Histories, error) { return Histories{true, true}, io.ErrUnexpectedEOF })
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.True(t, ScanHistory("").Auto())
	require.False(t, ScanHistory("none").Auto() || ScanHistory("none").Updates() || ScanHistory("none").Transactions())
}
