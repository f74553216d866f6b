package store

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/store/internal/tables"
)

// docs/replication.md says what is published, and the key of each table of facts: an event's, unless the table has a
// line of its own.
func TestPublishedTablesAreDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../docs/replication.md")
	require.NoError(t, err)
	line := func(table string) (key string, ok bool) {
		_, rest, ok := strings.Cut(string(document), "\n| "+table+" | ")
		key, _, _ = strings.Cut(rest, " |\n")
		return key, ok
	}
	what, ok := line("`ledger`")
	require.True(t, ok)
	ofEvents, ok := line("those of events")
	require.True(t, ok)
	for _, table := range published() {
		switch table.Family {
		case tables.Facts:
			key, ok := line("`" + table.Name + "`")
			if ok {
				require.Contains(t, what, "`"+table.Name+"`")
			} else {
				key = ofEvents
			}
			require.Equal(t, "`"+strings.Join(table.Key, "`, `")+"`", key, table.Name)
		default:
			require.Contains(t, what, "`"+table.Name+"`")
		}
	}
}
