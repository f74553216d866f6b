package active

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
)

// A contract that lived and died within one step leaves a lifetime, and never touched the active set.
func TestProjectionOfTransientContracts(t *testing.T) {
	t.Parallel()
	updates := []ledger.Update{
		{Offset: 1, Created: []ledger.CreatedEvent{{ContractID: "a"}, {NodeID: 1, ContractID: "b"}}, Archived: []ledger.ArchivedEvent{{NodeID: 2, ContractID: "b"}}},
		{Offset: 2, Archived: []ledger.ArchivedEvent{{ContractID: "a"}}},
	}
	s := NewStep(rows.FactsOf(names.NewReferences(), updates).Effects())
	require.Empty(t, s.Activations)
	require.Empty(t, s.Deactivations)
	require.Len(t, s.Lifetimes, 2)
	require.Equal(t, []int64{1, 2}, slices.Sorted(s.DeactivatedOffsets()))
}
