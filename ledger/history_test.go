package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCursorIsTheNewestUniqueRecord(t *testing.T) {
	t.Parallel()
	unique, doubled := HistoryMark{EventID: "a", Unique: true}, HistoryMark{EventID: "b"}
	for _, row := range []struct {
		window []HistoryMark
		want   int
	}{
		{nil, -1},
		{[]HistoryMark{doubled, doubled}, -1},
		{[]HistoryMark{unique}, 0},
		{[]HistoryMark{unique, doubled, unique, doubled, doubled}, 2},
	} {
		require.Equal(t, row.want, (&HistoryPosition{Window: row.window}).Cursor())
	}
}
