package store

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// sealedBounds are the one window of each stream that everythingSealed has rows of.
var sealedBounds = map[string][2]int64{
	ledger.SealedSnapshot: {0, 100}, ledger.SealedUpdates: {100, 104}, ledger.SealedTransactions: {0, 1000},
}

// everythingSealed is a database that has rows in every table that is sealed.
func everythingSealed(t *testing.T) *testDB {
	t.Helper()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	progress, err := l.BeginSnapshot(ctx, "participant::1", testScope, 100)
	require.NoError(t, err)
	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true, Entries: everyEntry()})
	require.NoError(t, err)
	require.NoError(t, l.Append(ctx, testScope, everyKind(100)))
	records := everyTransaction(t)
	_, err = d.leadTransactions(d.store()).AppendTransactions(ctx, ledger.HistoryPosition{}, nil, batchOf(records))
	require.NoError(t, err)
	d.exec("INSERT INTO indexer.record_exact_payloads (seq, field, exact) VALUES (1, 'mint.amount', '007')")
	return d
}

// everyEntry has rows for every table of carried rows.
func everyEntry() []ledger.ContractEntry {
	active := activeEntry(20, 0, "both", "sync::1", 0)
	active.Active.Created.Argument = ledger.JSON(`"\u0000"`)
	active.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: holdingV1, Value: ledger.JSON(`{}`)}}
	return []ledger.ContractEntry{
		activeEntry(10, 0, "plain", "sync::1", 0), active, unassignedEntry(30, 25, "leaving", "sync::1", "sync::2"),
		{Unknown: &ledger.UnknownElement{Kind: "Novelty", Raw: ledger.JSON(`{"a": 1}`)}},
	}
}

// digests are those of all rows of each stream, read in a transaction.
func (d *testDB) digests(s *Store, tx pgx.Tx) map[string]string {
	d.t.Helper()
	list := map[string]string{}
	for stream, bounds := range sealedBounds {
		rows, err := s.rowsDigest(d.t.Context(), tx, stream, bounds[0], bounds[1])
		require.NoError(d.t, err, stream)
		list[stream] = hex.EncodeToString(rows)
	}
	return list
}

// changed is the streams whose digest a statement changes; the statement is taken back.
func (d *testDB) changed(s *Store, statements ...string) (streams []string) {
	d.t.Helper()
	tx, err := d.conn.Begin(d.t.Context())
	require.NoError(d.t, err)
	defer pg.Rollback(d.t.Context(), tx)
	before := d.digests(s, tx)
	for _, statement := range statements {
		_, err := tx.Exec(d.t.Context(), statement)
		require.NoError(d.t, err, statement)
	}
	for stream, now := range d.digests(s, tx) {
		if now != before[stream] {
			streams = append(streams, stream)
		}
	}
	return sorted(streams)
}

// another is an expression for a value that a column of a type does not hold.
var another = map[string]string{
	"int4": "coalesce(x, 0) + 3", "int8": "coalesce(x, 0) + 50", "bool": "coalesce(NOT x, true)", "text": "coalesce(x, '') || 'x'",
	"_text": "array_append(x, 'x')", "bytea": `coalesce(x, '') || '\x99'`, "jsonb": `coalesce(jsonb_build_array(x), '1')`,
	"timestamptz": "coalesce(x, '2025-01-01T00:00:00Z') + interval '1 microsecond'", "numeric": "trim_scale(coalesce(x, 0)) + 0::numeric(300, 300)",
}

// Whatever changes in a sealed row changes the digest of its window, and no other.
func TestDigestOfEveryColumn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("alters columns and rows one after the other, and compares each time")
	}
	d := everythingSealed(t)
	s := d.store()
	require.Empty(t, d.changed(s, "SELECT 1"))
	columns := 0
	for stream, family := range sealedFamilies {
		known, err := s.sealedColumns(t.Context(), d.conn, stream)
		require.NoError(t, err)
		for _, table := range tables.In(family) {
			relation := table.SQL()
			one := fmt.Sprintf("(tableoid, ctid) = (SELECT s.tableoid, s.ctid FROM %s s WHERE %s LIMIT 1)", relation, condition(stream, table))
			require.Equal(t, "1", d.row(fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", relation, one)), relation)
			require.Equal(t, []string{stream}, d.changed(s, fmt.Sprintf("DELETE FROM %s WHERE %s", relation, one)), relation)
			for n, c := range known[table.Name] {
				columns++
				if brief.Run() && n%3 > 0 {
					continue
				}
				expression := strings.ReplaceAll(another[c.typeName], "x)", "s."+c.name+")")
				expression = strings.ReplaceAll(expression, "(x,", "(s."+c.name+",")
				expression = strings.ReplaceAll(expression, "(NOT x", "(NOT s."+c.name)
				update := fmt.Sprintf("UPDATE %s s SET %s = %s WHERE %s", relation, c.name, expression, one)
				require.Equal(t, []string{stream}, d.changed(s, update), update)
			}
		}
	}
	require.Greater(t, columns, 200)
	require.Equal(t, []string{"updates"}, d.changed(s, `INSERT INTO indexer.exact_payloads SELECT * FROM indexer.exact_payloads WHERE ledger_offset > 100`), "a double")
}

// condition is which rows of a table belong to a stream's window.
func condition(stream string, table tables.Table) string {
	if table.Place == "" {
		return table.Rows("true")
	}
	return table.Rows(fmt.Sprintf("s.%s > %d AND s.%[1]s <= %[3]d", table.Place, sealedBounds[stream][0], sealedBounds[stream][1]))
}

// What a reference means is sealed, its number is not.
func TestDigestOfTheDictionaries(t *testing.T) {
	t.Parallel()
	d := everythingSealed(t)
	s := d.store()
	template := "template_ref = (SELECT min(c.template_ref) FROM indexer.created c)"
	for _, column := range []string{"template_id", "package_id", "package_name", "module_name", "entity_name", "representative_package_id"} {
		require.Contains(t, d.changed(s, fmt.Sprintf("UPDATE indexer.templates SET %s = coalesce(%[1]s, '') || 'x' WHERE %s", column, template)), "updates", column)
	}
	require.Contains(t, d.changed(s, "DELETE FROM indexer.templates WHERE "+template), "updates")
	require.Equal(t, []string{"snapshot", "transactions", "updates"}, d.changed(s, "UPDATE indexer.synchronizers SET synchronizer_id = synchronizer_id || 'x'"))
	require.Equal(t, []string{"snapshot", "updates"}, d.changed(s, "UPDATE indexer.templates SET entity_name = entity_name || 'x'"))

	renumbered := []string{"UPDATE indexer.templates SET template_ref = template_ref + 100", "UPDATE indexer.synchronizers SET synchronizer_ref = synchronizer_ref + 100"}
	for _, row := range d.rows(`SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'indexer' AND t.table_type = 'BASE TABLE' AND c.table_name !~ '_p?[0-9]+$'
		AND c.column_name IN ('template_ref', 'synchronizer_ref', 'source_ref', 'target_ref', 'domain_ref') AND c.table_name !~ '^(templates|synchronizers)'`) {
		table, column, _ := strings.Cut(row, " ")
		renumbered = append(renumbered, fmt.Sprintf("UPDATE indexer.%s SET %s = %[2]s + 100", table, column))
	}
	require.Greater(t, len(renumbered), 10)
	require.Empty(t, d.changed(s, renumbered...))
}

// Settings do not matter, nor does a column that is added and left NULL, nor what is not sealed.
func TestDigestDependsOnNothingElse(t *testing.T) {
	t.Parallel()
	d := everythingSealed(t)
	s := d.store()
	require.Empty(t, d.changed(s,
		"SET LOCAL timezone = 'Asia/Kathmandu'", "SET LOCAL datestyle = 'German'", "SET LOCAL intervalstyle = 'sql_standard'",
		"SET LOCAL extra_float_digits = -15", "SET LOCAL bytea_output = 'escape'", "SET LOCAL search_path = indexer, public",
		"SET LOCAL standard_conforming_strings = off", "SET LOCAL quote_all_identifiers = on", "SET LOCAL array_nulls = off",
		"SET LOCAL xmloption = document", "SET LOCAL lc_numeric = 'C'", "SET LOCAL lc_monetary = 'C'", "SET LOCAL lc_time = 'C'",
		"SET LOCAL enable_indexscan = off", "SET LOCAL enable_seqscan = off", "SET LOCAL jit = off"))
	var added []string
	for _, table := range tables.In(tables.Facts, tables.Snapshot, tables.Records) {
		added = append(added, "ALTER TABLE "+table.SQL()+" ADD COLUMN IF NOT EXISTS a_new_one text")
	}
	require.Empty(t, d.changed(s, added...))
	require.Empty(t, d.changed(s,
		"INSERT INTO indexer.offset_checkpoints (ledger_offset, synchronizer_ref, record_time, ordinal) VALUES (103, 1, now(), 0)",
		"INSERT INTO indexer.checkpoint_exact_payloads (ledger_offset, field, exact) VALUES (103, 'checkpoint_time sync::1', 'x')",
		"INSERT INTO indexer.lookup_exact_payloads (ledger_offset, node_id, field, exact) VALUES (103, 1, 'payload', 'x')",
		"TRUNCATE indexer.active_contracts"))
}

// Rows that were dumped and restored, in another order and collation, have the same digest.
func TestDigestOutlivesARestore(t *testing.T) {
	t.Parallel()
	d := everythingSealed(t)
	copied := everythingSealed(t) // has the partitions
	for _, relation := range d.rows(`SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'indexer'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('ledger_offset', 'seq', 'template_ref', 'synchronizer_ref') AND a.attnum > 0)`) {
		copied.exec("TRUNCATE indexer." + relation)
		reader, writer := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := d.conn.PgConn().CopyTo(t.Context(), writer, fmt.Sprintf("COPY (SELECT * FROM indexer.%s ORDER BY random()) TO STDOUT", relation))
			done <- err
			_ = writer.Close() // a pipe's can't fail
		}()
		_, err := copied.conn.PgConn().CopyFrom(t.Context(), reader, fmt.Sprintf("COPY indexer.%s FROM STDIN", relation))
		require.NoError(t, err, relation)
		require.NoError(t, <-done, relation)
	}
	in := func(d *testDB) map[string]string {
		tx, err := d.conn.Begin(t.Context())
		require.NoError(t, err)
		defer pg.Rollback(t.Context(), tx)
		return d.digests(d.store(), tx)
	}
	require.Equal(t, in(d), in(copied))
}

// A column of a type whose text settings can change must not be sealed without a thought.
func TestDigestRefusesTypesItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, typeName := range []string{"date", "interval", "float8", "timestamp", "_timestamptz"} {
		_, err := rowDigestSQL("updates", []column{{"a", typeName}})
		require.ErrorContains(t, err, "updates.a")
	}
}
