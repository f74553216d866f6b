package audit

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
)

// Lists that were changed are copied back, and what refers to another one is written anew; who remembers numbers begins
// a new term.
func TestRepairOfPartyLists(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	page := storetest.EveryKind(0)[0]
	page.Updates[0].Created[1].Signatories = []string{"bob"}
	page.Updates[0].Archived[0].WitnessParties = []string{"carol"}
	r := newRepaired(t, page)
	shown := func() []string {
		return r.Rows(`SELECT row_to_json(c)::text FROM ledger.created_events c UNION ALL SELECT row_to_json(a)::text FROM ledger.archived_events a
			UNION ALL SELECT row_to_json(e)::text FROM ledger.exercised_events e ORDER BY 1`)
	}
	before := shown()
	for _, statement := range []string{
		"UPDATE indexer.party_lists SET party_list_ref = party_list_ref + 1000",
		"UPDATE indexer.party_lists SET party_list_ref = 5000 - party_list_ref",
		"DELETE FROM indexer.party_lists WHERE parties = '{bob}'; UPDATE indexer.party_lists SET parties = '{bob}' WHERE parties = '{alice}'",
		"UPDATE indexer.archived SET witness_parties_ref = NULL",
		"UPDATE indexer.created SET signatories_ref = 77",
		"TRUNCATE indexer.party_lists", "DELETE FROM indexer.party_lists_both WHERE party_list_ref > 1",
	} {
		leader := r.leadPruning(r.leader.store)
		r.Exec(statement)
		require.NotEmpty(t, r.different(page), statement)
		require.NoError(t, r.repairer.RepairCopies(t.Context()), statement)
		require.NoError(t, r.repairer.RepairUpdates(t.Context(), storetest.Scope, page), statement)
		require.Empty(t, r.different(page), statement)
		require.Equal(t, before, shown(), statement)
		if strings.Contains(statement, "party_lists") {
			require.ErrorIs(t, leader.Term().Write(t.Context(), func(context.Context, pgx.Tx) error { return nil }), store.ErrNotLeader, statement)
		}
		leader.Close()
	}
}
