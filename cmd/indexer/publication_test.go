package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
)

// PostgreSQL would cut a longer name, and the publication would not be found again.
func TestNamesOfPublications(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("a", 54), "Ledger", "1st", "a-b"} {
		_, stderr := printed(t, config.ExitUsage, map[string]string{"INDEXER_DATABASE_URL": "postgres://127.0.0.1:1/x"}, "publication", "enable", "--publication="+name)
		require.Contains(t, stderr, "up to 53 lower case letters")
	}
	require.True(t, publicationName.MatchString(strings.Repeat("a", 53)))
}
