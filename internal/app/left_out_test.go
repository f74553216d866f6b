package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

// What a scope leaves out for good is said when a database begins, with the daemon or with a backfill, and not again.
func TestWhatIsLeftOutIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 79})
	l.Grow(50)
	url := serve(t, l, sandbox.ServerOptions{})
	said := func(run func(*journal) error) int {
		j := &journal{}
		require.NoError(t, run(j))
		require.Equal(t, strings.Contains(j.all(), "another database"), strings.Contains(j.all(), "exercises: choices"))
		return strings.Count(j.all(), "(--shape ledger-effects)")
	}
	index := func(database string) func(*journal) error {
		return func(j *journal) error {
			return RunIndexer(t.Context(), indexerFor(database, url, defaultScope()), j.logger())
		}
	}
	database := databaseOfBoth(t)
	require.Equal(t, 1, said(index(database)))
	require.Zero(t, said(index(database)), "it was said")

	seeded := databaseOfBoth(t)
	seedWith := func(scope config.Scope, database string) func(*journal) error {
		return func(j *journal) error {
			_, err := RunBackfill(t.Context(), backfillFor(database, url, scope, -1), j.logger(), nil)
			return err
		}
	}
	require.Equal(t, 1, said(seedWith(defaultScope(), seeded)))
	require.Zero(t, said(index(seeded)))
	all := effects()
	all.Blobs = true
	require.Zero(t, said(seedWith(all, databaseOfBoth(t))), "nothing is left out")

	_, scan := scanOf(79, 50, sandbox.ScanOptions{})
	require.Zero(t, said(func(j *journal) error {
		return RunIndexer(t.Context(), networkFor(databaseOfBoth(t), serveScan(t, scan)), j.logger())
	}), "of a network nothing can be chosen")
}
