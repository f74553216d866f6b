package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// Only a snapshot that is pruned has the cure of one: others keep theirs.
func TestTheCureOfASnapshotThatCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	var pruned *ledger.Problem
	require.ErrorAs(t, notRefilled(10, &ledger.Problem{What: "gone", Do: "give up", Err: ledger.ErrPruned}), &pruned)
	require.Contains(t, pruned.Do, "a replica of the participant")
	refused := &ledger.Problem{What: "the token is refused", Do: "give another one"}
	require.Same(t, refused, notRefilled(10, refused))
}
