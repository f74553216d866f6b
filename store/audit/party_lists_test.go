package audit

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
)

// What refers to a list that was changed is written anew, with its own list; who remembers numbers begins a new term.
func TestRepairOfPartyLists(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	page := storetest.EveryKind(0)[0]
	page.Updates[0].Created[1].Signatories = []string{"bob"}
	page.Updates[0].Archived[0].WitnessParties = []string{"carol"}
	r := newRepaired(t, page)
	before := r.shown()
	for _, statement := range []string{
		"UPDATE indexer.party_lists SET party_list_ref = party_list_ref + 1000",
		"UPDATE indexer.party_lists SET party_list_ref = 5000 - party_list_ref",
		"DELETE FROM indexer.party_lists WHERE parties = '{bob}'; UPDATE indexer.party_lists SET parties = '{bob}' WHERE parties = '{alice}'",
		"UPDATE indexer.archived SET witness_parties_ref = NULL",
		"UPDATE indexer.created SET signatories_ref = 77",
		"TRUNCATE indexer.party_lists", "DELETE FROM indexer.party_lists WHERE party_list_ref > 1",
	} {
		r.repairer.Close()
		r.repairer = r.repairs(r.leader.store)
		leader := r.leadPruning(r.leader.store)
		r.Exec(statement)
		require.NotEmpty(t, r.different(page), statement)
		require.NoError(t, r.repairer.RepairUpdates(t.Context(), storetest.Scope, page), statement)
		require.Empty(t, r.different(page), statement)
		require.Equal(t, before, r.shown(), statement)
		if strings.Contains(statement, "party_lists") {
			require.ErrorIs(t, leader.Term().Write(t.Context(), func(context.Context, pgx.Tx) error { return nil }), store.ErrNotLeader, statement)
		}
		leader.Close()
	}
}
