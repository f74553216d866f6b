package store

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// What a reset removes is counted, relation by relation; what it does not concern stays.
func TestResetReport(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
	later := storetest.EveryKind(4)
	later[0].Updates[0].Archived[0].ContractID = "unseen too"
	later[0].Checkpoints = []ledger.OffsetCheckpoint{{Offset: 8, Times: []ledger.SynchronizerTime{{SynchronizerID: "sync::1", RecordTime: storetest.Time("2025-01-02T03:04:05Z")}}}}
	ends := storetest.NewUpdate(9, "sync::1")
	ends.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "contract-0")}
	later = append(later, ledger.Page{From: 8, To: 9, Updates: []ledger.Update{ends}})
	require.NoError(t, l.Append(t.Context(), storetest.Scope, later))
	require.NoError(t, l.SaveLookups(t.Context(), []ledger.Lookup{
		{ContractID: "unseen", At: time.Now(), Status: ledger.LookupNotFound},
		{ContractID: "unseen too", At: time.Now(), Status: ledger.LookupFound, Contract: &ledger.Contract{
			ContractID: "unseen too", TemplateID: storetest.Template, PackageName: "asset", Argument: ledger.JSON(`"\u0000"`),
		}},
	}))
	d.Exec(`INSERT INTO indexer.verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest)
		SELECT s, n, n + 3, now(), 'equal', 0, sha256('') FROM unnest('{updates,transactions}'::text[]) s, unnest('{0,3}'::int[]) n`)
	d.Exec("INSERT INTO indexer.checkpoints (stream, event_id) VALUES ('transactions', 'e')")

	var removed []RemovedRows
	for _, table := range storetest.FactTables {
		n, err := strconv.ParseInt(d.Row("SELECT count(*) FROM indexer."+table+" WHERE ledger_offset > 4"), 10, 64)
		require.NoError(t, err)
		require.Positive(t, n, table)
		removed = append(removed, RemovedRows{table, n})
	}
	want := ResetReport{From: 9, To: 4, Removed: append(removed,
		RemovedRows{"offset_checkpoints", 1}, RemovedRows{"active_contracts", 2}, RemovedRows{"lifetimes", 3},
		RemovedRows{"lookups", 1}, RemovedRows{"verifications", 1})}
	plan, err := l.store.PlanReset(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, want, plan)
	require.Equal(t, "9", d.Watermark(), "nothing was changed")
	report, err := l.Reset(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, want, report)
	require.Empty(t, d.Facts(4, 9))
	require.Equal(t, []string{"0 4"}, d.Coverage())
	require.Equal(t, "4", d.Watermark())
	require.Equal(t, []string{"arrived", "contract-0"}, d.Rows("SELECT contract_id FROM ledger.active_contracts ORDER BY 1"))
	require.Equal(t, "not_found", d.Row("SELECT status FROM indexer.lookups"))
	require.Equal(t, []string{"transactions 0", "transactions 3", "updates 0"}, d.Rows("SELECT stream, from_exclusive FROM indexer.verifications ORDER BY 1, 2"))
	require.Equal(t, "e", d.Row("SELECT event_id FROM indexer.checkpoints WHERE stream = 'transactions'"))
	report, err = l.Reset(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, ResetReport{From: 4, To: 4, Removed: []RemovedRows{}}, report, "again")
}

// A contract whose creation goes with the reset is looked up after all.
func TestResetForgetsWhatMadeALookupNeedless(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	archived, arrived := storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(2, "sync::2")
	archived.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "c")}
	storetest.Assign(&arrived, 0, "c", "sync::3", "sync::2", 1)
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{To: 2, Updates: []ledger.Update{archived, arrived}}}))
	require.Empty(t, wantedLookups(t, l))
	require.Empty(t, d.queue())
	_, err := l.Reset(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []string{"c 1 0"}, d.queue())
}

func TestResetRefusals(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	_, err := l.Reset(t.Context(), 0)
	storetest.RequireProblem(t, err, "nothing has been indexed", "indexer run")
	require.NoError(t, l.Start(t.Context(), "", storetest.Scope, 100, false))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(100)))
	_, err = l.Reset(t.Context(), 99)
	storetest.RequireProblem(t, err, "its events begin after offset 100", "at least 100", "`backfill --at-offset 99`", "`indexer run`")
	_, err = l.Reset(t.Context(), 105)
	storetest.RequireProblem(t, err, "holds nothing after offset 104", "from 100 up to 104")
	require.Equal(t, []string{"100 104"}, d.Coverage())
	d.Exec("UPDATE indexer.leadership SET epoch = epoch + 1 WHERE lease = 'updates'")
	_, err = l.Reset(t.Context(), 102)
	require.ErrorIs(t, err, ErrNotLeader)
	require.Equal(t, "104", d.Watermark())
}
