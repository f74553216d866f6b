package rows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// What checkpoints say besides the times, which every row has, is sent in statements of bounded size.
func TestStatementsOfOffsetCheckpoints(t *testing.T) {
	t.Parallel()
	rows := func(n, bytes int) (all []checkpointTime) {
		c := &ledger.OffsetCheckpoint{Offset: 1, Extra: ledger.JSON(`"` + strings.Repeat("x", bytes-2) + `"`)}
		for i := range n {
			c.Times = append(c.Times, ledger.SynchronizerTime{SynchronizerID: fmt.Sprint("sync::", i)})
			all = append(all, checkpointTime{CheckpointKey{1, int32(i)}, c, i})
		}
		return all
	}
	for _, c := range []struct{ rows, bytes, statements int }{
		{0, 2, 0}, {1, 2, 1}, {CheckpointRowsAtOnce, 2, 1}, {CheckpointRowsAtOnce + 1, 2, 2},
		{2, checkpointBytesAtOnce - 1, 1}, {3, checkpointBytesAtOnce - 1, 2}, {5, checkpointBytesAtOnce, 5}, {40, checkpointBytesAtOnce / 4, 10},
	} {
		statements, next := 0, int32(0)
		for s := range CheckpointStatements(rows(c.rows, c.bytes)) {
			statements++
			for _, ref := range s.SynchronizerRefs {
				require.Equal(t, next, ref)
				next++
			}
		}
		require.Equal(t, c.statements, statements, "%+v", c)
		require.Equal(t, c.rows, int(next))
	}
}
