package storetest

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/migrations"
)

// Migration is the part of a migration from one text on up to another.
func Migration(t testing.TB, file, from, to string) string {
	t.Helper()
	text, err := fs.ReadFile(migrations.For("ledger"), file)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), from)
	require.True(t, found, from)
	part, _, found := strings.Cut(rest, to)
	require.True(t, found, to)
	return from + part
}

// KeepHoldings does to rows what the migration does that begins to keep what contracts hold.
func (d *DB) KeepHoldings() {
	d.T.Helper()
	tx, err := d.Conn.Begin(d.T.Context())
	require.NoError(d.T, err)
	_, err = tx.Exec(d.T.Context(), "SET LOCAL search_path = indexer")
	require.NoError(d.T, err)
	_, err = tx.Exec(d.T.Context(), Migration(d.T, "00014_held.sql", "INSERT INTO positions", "-- All that totals need"))
	require.NoError(d.T, err)
	require.NoError(d.T, tx.Commit(d.T.Context()))
}
