package audit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// Whatever differs, one repair holds so many contracts at most: each has its JSON.
func TestOneRepairTakesInSoMuch(t *testing.T) {
	t.Parallel()
	var taken takenIn
	entries := activeUpTo(50)
	found := taken.missingOf(entries)
	for range mostTakenIn/len(entries) + 1 {
		for i := range entries {
			d := Difference{Kind: Missing, Relation: "active_contracts", Row: activeRow(fmt.Sprint("contract-", 11+i), "sync::1")}
			found(d)
			taken.extra(EntryKey{}, Difference{Kind: Extra})
		}
	}
	require.Equal(t, mostTakenIn, len(taken.missing))
	require.Equal(t, mostTakenIn, len(taken.gone))
}

// What is taken in would lie below the floor, among the entries of its snapshot, where pruning came in between.
func TestNothingIsTakenInBelowTheFloor(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.Exec("UPDATE indexer.floors SET history_floor = 50, state_floor = 50")
	before := r.rows()
	err := r.repairs(r.leader.store).TakeIn(t.Context(), storetest.Scope, 40,
		[]ledger.ContractEntry{storetest.ActiveEntry(40, 0, "another", "sync::1", 0)}, nil)
	require.ErrorContains(t, err, "it is known from offset 50 on")
	require.Equal(t, before, r.rows())
}
