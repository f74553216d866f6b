package store

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// indexes are the definitions of all indexes of a database, in order.
func (d *testDB) indexes() []string {
	d.T.Helper()
	return d.Rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'indexer' AND tablename !~ '_to[0-9]+$' ORDER BY 1")
}

// However a database comes by its first watermark, its indexes are then those of the migrations. While a snapshot is
// written, some are missing.
func TestLateIndexesAreThereWithTheFirstWatermark(t *testing.T) {
	t.Parallel()
	first := ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(10, 0, "a", "sync::1", 0)}}
	for name, start := range map[string]func(t *testing.T, l *UpdatesWriter, begun ledger.SnapshotProgress){
		"snapshot": func(t *testing.T, l *UpdatesWriter, begun ledger.SnapshotProgress) {
			next, err := l.WriteSnapshotPage(t.Context(), begun, nil, first)
			require.NoError(t, err)
			_, err = l.WriteSnapshotPage(t.Context(), next, nil, ledger.SnapshotPage{
				Last: true, Entries: []ledger.ContractEntry{storetest.ActiveEntry(20, 0, "b", "sync::1", 0)},
			})
			require.NoError(t, err)
		},
		"empty snapshot": func(t *testing.T, l *UpdatesWriter, begun ledger.SnapshotProgress) {
			_, err := l.WriteSnapshotPage(t.Context(), begun, nil, ledger.SnapshotPage{Last: true})
			require.NoError(t, err)
		},
		"another snapshot after a restart": func(t *testing.T, l *UpdatesWriter, begun ledger.SnapshotProgress) {
			_, err := l.WriteSnapshotPage(t.Context(), begun, nil, first)
			require.NoError(t, err)
			require.NoError(t, l.DropSnapshot(t.Context()))
			again, err := l.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, 90)
			require.NoError(t, err)
			_, err = l.WriteSnapshotPage(t.Context(), again, nil, ledger.SnapshotPage{Last: true})
			require.NoError(t, err)
		},
		"limits on time": func(t *testing.T, l *UpdatesWriter, begun ledger.SnapshotProgress) {
			next, err := l.WriteSnapshotPage(t.Context(), begun, nil, first)
			require.NoError(t, err)
			for _, statement := range []string{
				"CREATE FUNCTION refuse_limit() RETURNS event_trigger LANGUAGE plpgsql AS " +
					"$$ BEGIN IF current_setting('statement_timeout') <> '0' THEN RAISE 'a limit on time'; END IF; END $$",
				"CREATE EVENT TRIGGER refuse_limit ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION refuse_limit()",
				"ALTER DATABASE " + pgx.Identifier{l.term.Pool.Config().ConnConfig.Database}.Sanitize() + " SET statement_timeout = '10min'",
			} {
				_, err = l.term.Pool.Exec(t.Context(), statement)
				require.NoError(t, err)
			}
			l.term.Pool.Reset() // connections have the limit from now on
			_, err = l.WriteSnapshotPage(t.Context(), next, nil, ledger.SnapshotPage{Last: true})
			require.NoError(t, err)
		},
		"beginning of the ledger, after a snapshot that brought nothing": func(t *testing.T, l *UpdatesWriter, _ ledger.SnapshotProgress) {
			require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 0, true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			d := newDatabase(t)
			l := d.leadUpdates(d.store())
			want := d.indexes()
			begun, err := l.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, 100)
			require.NoError(t, err)
			all := strings.Join(d.indexes(), "\n")
			for _, index := range lateIndexes {
				require.NotContains(t, all, index.name)
			}
			start(t, l, begun)
			require.Equal(t, want, d.indexes())
		})
	}
}

// Somebody who has looked at the empty tables, and keeps the transaction open, keeps no snapshot from beginning: the
// indexes stay.
func TestReadersAreNotWaitedForWhereASnapshotBegins(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	want := d.indexes()
	reader := d.Begin("SELECT count(*) FROM ledger.active_contracts")
	begun, err := l.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, 100)
	require.NoError(t, err)
	require.Equal(t, want, d.indexes())
	_, err = l.WriteSnapshotPage(t.Context(), begun, nil, ledger.SnapshotPage{
		Last: true, Entries: []ledger.ContractEntry{storetest.ActiveEntry(10, 0, "a", "sync::1", 0)},
	})
	require.NoError(t, err)
	require.Equal(t, want, d.indexes())
	require.Equal(t, "100", d.Watermark())
	require.NoError(t, reader.Rollback(t.Context()))
}
