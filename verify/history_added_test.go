package verify

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// slowRepairer is a repairer that something comes before.
type slowRepairer struct {
	HistoryRepairer
	before func()
}

func (s slowRepairer) AddRecords(ctx context.Context, revision int64, records []ledger.Transaction) (bool, error) {
	s.before()
	return s.HistoryRepairer.AddRecords(ctx, revision, records)
}

// What the daemon stores between the judgement that it is missing and the repair is not stored twice; and where the daemon is
// always sooner, that is said.
func TestWhatTheDaemonStoresMeanwhileIsNotAdded(t *testing.T) {
	t.Parallel()
	for name, always := range map[string]bool{"once": false, "always": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newServedHistory(t, 300, sandbox.ScanOptions{})
			all := h.all()
			h.append(all[:20])
			lost := all[20:22]
			r, ok, err := h.store.Repairer(t.Context())
			require.NoError(t, err)
			require.True(t, ok)
			defer r.Close()
			times := 0
			v := History{
				Source: h.client, Database: h.store, Logger: slog.New(slog.DiscardHandler), Progress: func(Progress) {},
				Found: func(ledger.Difference) error { return nil },
				Repairer: slowRepairer{r, func() {
					if times++; times > 1 && !always {
						return
					}
					at, err := h.leader.HistoryPosition(t.Context())
					require.NoError(t, err)
					record := lost[0]
					if times > 1 {
						record = ledger.Transaction{EventID: "new", Raw: ledger.JSON(`{}`), Kind: ledger.TransactionUnknown}
					}
					_, err = h.leader.AppendTransactions(t.Context(), at, []ledger.Transaction{record})
					require.NoError(t, err)
				}},
			}
			reading := historyReading{History: &v, met: bitset{}}
			for i := range lost {
				reading.suspects = append(reading.suspects, shownRecord{place: int64(20 + i), record: &lost[i], fingerprint: lost[i].Fingerprint()})
			}
			err = reading.addMissing(t.Context())
			if always {
				require.ErrorIs(t, err, errHistoryChanged)
				require.Zero(t, h.count(lost[1].EventID))
			} else {
				require.NoError(t, err)
				require.Equal(t, 2, times)
				require.EqualValues(t, 1, h.count(lost[1].EventID))
			}
			require.EqualValues(t, 1, h.count(lost[0].EventID))
		})
	}
}

func (h *servedHistory) count(eventID string) (n int64) {
	h.t.Helper()
	require.NoError(h.t, h.conn.QueryRow(h.t.Context(), "SELECT count(*) FROM indexer.transactions WHERE event_id = $1", eventID).Scan(&n))
	return n
}
