package ledger

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// Pages that are decoded at a time, and behind refused ones, are what they are alone, and stay so while others are
// decoded.
func TestPagesDecodedAtATime(t *testing.T) {
	t.Parallel()
	rounds := 20
	if brief.Run() {
		rounds = 5
	}
	var running sync.WaitGroup
	for n := range 4 {
		running.Go(func() {
			updates, entries := realisticPage(50+100*n), list(activeEntry(), swap(activeEntry(), `"synchronizerId"`, fmt.Sprintf(`"new":%d,"synchronizerId"`, n)))
			records := realisticHistory(10 + 20*n)
			var first [3]any
			for round := range rounds {
				refuseOne(updates)
				gotUpdates, err := DecodeUpdateList(updates, 0)
				assert.NoError(t, err)
				gotEntries, err := DecodeContractEntries(entries)
				assert.NoError(t, err)
				gotRecords, err := DecodeTransactions(records)
				assert.NoError(t, err)
				got := [3]any{gotUpdates, gotEntries, gotRecords}
				if round == 0 {
					first = got
				}
				assert.Equal(t, first, got)
			}
			alone := newLexicon()
			d := newDecoder(updates, alone)
			assert.Equal(t, d.updates(order{}), first[0])
			d = newDecoder(entries, alone)
			assert.Equal(t, d.entries(), first[1])
			d = newDecoder(records, alone)
			var want []Record
			historyMembers.read(d, &want)
			assert.Equal(t, want, first[2])
		})
	}
	running.Wait()
}

// refuseOne decodes what is left of a list that is cut off.
func refuseOne(body []byte) { _, _ = DecodeUpdateList(body[:len(body)*2/3], 0) }

// What is kept between pages is bounded, and holds nothing of them.
func TestRoomForLists(t *testing.T) {
	t.Parallel()
	var room []*int
	for _, n := range []int{3, 0, 10, 2_000} {
		list := append(takeBuffer(&room), make([]*int, n)...)
		for i := range list {
			list[i] = &i
		}
		made := returnBuffer(&room, list)
		require.Len(t, made, n)
		require.Equal(t, n, cap(made))
		for i := range made {
			require.Equal(t, i, *made[i])
			require.Nil(t, room[:n][i])
		}
		require.Empty(t, room)
	}
	large := append(takeBuffer(&room), make([]*int, mostKept+1)...)
	require.Same(t, &large[0], &returnBuffer(&room, large)[0], "it is not copied")
	require.Nil(t, room, "nor kept")
}
