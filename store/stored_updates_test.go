package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// The last stored update is found whatever partition it is in, also where no id could be read.
func TestLastUpdate(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	last := func(upTo ledger.Offset) string {
		at, id, err := l.LastUpdate(t.Context(), upTo)
		require.NoError(t, err)
		return fmt.Sprintf("%d %q", at, id)
	}
	require.Equal(t, `0 ""`, last(100))
	pages := storetest.OneCreation(0, 10)
	pages[0].Updates[0].ID = "first"
	without := storetest.NewUpdate(5_000_000, "sync::1")
	without.ID, without.Kind = "", ledger.KindUnknown
	pages = append(pages, ledger.Page{From: 10, To: 5_000_010, Updates: []ledger.Update{without}})
	require.NoError(t, l.Append(t.Context(), storetest.Scope, pages))
	require.Equal(t, `0 ""`, last(9))
	require.Equal(t, `10 "first"`, last(10))
	require.Equal(t, `10 "first"`, last(4_999_999))
	require.Equal(t, `5000000 ""`, last(5_000_010))
}
