package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
)

// Nothing is equal where nothing was compared.
func TestVerifyOfNothing(t *testing.T) {
	t.Parallel()
	environ, _ := indexed(t, grown(20), sandbox.ServerOptions{}, nil)
	stdout, stderr := printed(t, config.ExitFailed, environ, "verify", "--offline", "--json")
	require.Contains(t, stdout, `"not_compared"`)
	require.NotContains(t, stdout, `"equal"`)
	require.Contains(t, stderr, "nothing was compared")

	environ["INDEXER_DATABASE_URL"] = throwaway.Migrated(t, migrate)
	_, stderr = printed(t, config.ExitProblem, environ, "verify")
	require.Contains(t, stderr, "nothing has been indexed")
}
