package ingest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// A Scan without a history is asked again every ten minutes; what is not known to be a Scan soon. What has not changed
// is said once, and so is that a service does not tell its network.
func TestWhenAServiceWithoutAHistoryIsAskedAgain(t *testing.T) {
	for _, scan := range []bool{true, false} {
		t.Run(fmt.Sprint("a Scan ", scan), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var told told
				o := TransactionsOffered{Logger: told.logger(), LookAgain: 10 * time.Minute}
				release := map[bool]string{true: "0.5.1"}
				require.Equal(t, scan, o.Described(ledger.TransactionsService{Release: release[scan]}))
				require.Empty(t, o.Wait())
				require.True(t, o.NoteAbsent(ledger.ErrNotOffered))
				asked := 0
				for range 3600 {
					if wait := o.Wait(); wait == "" {
						require.False(t, o.NoteAbsent(ledger.ErrNotOffered))
						asked++
					} else {
						require.Equal(t, scan, strings.Contains(wait, "it is asked again every 10m0s"))
					}
					time.Sleep(time.Second)
				}
				if scan {
					require.Equal(t, 5, asked)
				} else {
					require.Greater(t, asked, 3600/30)
					require.Less(t, asked, 3600/10)
				}
				o.Described(ledger.TransactionsService{Release: release[!scan]})
				require.True(t, o.NoteAbsent(ledger.ErrNotOffered), "it is something else")
				require.ErrorIs(t, o.Absent(), ledger.ErrNotOffered)
				require.Zero(t, told.lines("msg="))

				require.True(t, o.NotePresent(t.Context()))
				require.False(t, o.NotePresent(t.Context()))
				require.Empty(t, o.Wait())
				require.Nil(t, o.Absent())
				require.Equal(t, 1, told.lines("the Scan service has a transaction history now"))
				require.Equal(t, 1, told.lines("the Scan service does not report its network"))
			})
		})
	}
}
