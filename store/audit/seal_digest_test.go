package audit

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// sealedBounds are the one window of each stream that everythingSealed has rows of.
var sealedBounds = map[string][2]int64{
	tables.StreamSnapshot: {0, 100}, tables.StreamUpdates: {100, 104}, tables.StreamTransactions: {0, 1000},
}

// digests are those of all rows of each stream, read in a transaction.
func (d *testDB) digests(s *opened, tx pgx.Tx) map[string]string {
	d.T.Helper()
	list := map[string]string{}
	for stream, bounds := range sealedBounds {
		rows, err := s.rowsDigest(d.T.Context(), tx, stream, bounds[0], bounds[1])
		require.NoError(d.T, err, stream)
		list[stream] = hex.EncodeToString(rows)
	}
	return list
}

// changed is the streams whose digest a statement changes; the statement is taken back.
func (d *testDB) changed(s *opened, statements ...string) (streams []string) {
	d.T.Helper()
	tx, err := d.Conn.Begin(d.T.Context())
	require.NoError(d.T, err)
	defer pg.Rollback(d.T.Context(), tx)
	before := d.digests(s, tx)
	for _, statement := range statements {
		_, err := tx.Exec(d.T.Context(), statement)
		require.NoError(d.T, err, statement)
	}
	for stream, now := range d.digests(s, tx) {
		if now != before[stream] {
			streams = append(streams, stream)
		}
	}
	return storetest.Sorted(streams)
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
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	d := everythingSealed(t)
	s := d.store()
	require.Empty(t, d.changed(s, "SELECT 1"))
	columns := 0
	for stream := range sealedBounds {
		known, err := s.sealedColumns(t.Context(), d.Conn, stream)
		require.NoError(t, err)
		for _, table := range sealed(stream) {
			if table.Family == tables.Resynced {
				continue // as those of events, where there was a resync
			}
			relation := table.Name
			one := fmt.Sprintf("(tableoid, ctid) = (SELECT s.tableoid, s.ctid FROM %s s WHERE %s LIMIT 1)", relation, condition(stream, table))
			require.Equal(t, "1", d.Row(fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", relation, one)), relation)
			require.Equal(t, []string{stream}, d.changed(s, fmt.Sprintf("DELETE FROM %s WHERE %s", relation, one)), relation)
			for _, c := range known[table.Name] {
				columns++
				expression := strings.ReplaceAll(another[c.typeName], "x)", "s."+c.name+")")
				expression = strings.ReplaceAll(expression, "(x,", "(s."+c.name+",")
				expression = strings.ReplaceAll(expression, "(NOT x", "(NOT s."+c.name)
				update := fmt.Sprintf("UPDATE %s s SET %s = %s WHERE %s", relation, c.name, expression, one)
				require.Equal(t, []string{stream}, d.changed(s, update), update)
			}
		}
	}
	require.Greater(t, columns, 200)
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
	brief.Once(t)
	d := everythingSealed(t)
	s := d.store()
	d.Exec("ALTER TABLE indexer.templates DROP CONSTRAINT templates_check")
	template := "template_ref = (SELECT min(c.template_ref) FROM indexer.created c)"
	for _, column := range []string{"template_id", "package_id", "package_name", "module_name", "entity_name", "representative_package_id"} {
		require.Contains(t, d.changed(s, fmt.Sprintf("UPDATE indexer.templates SET %s = coalesce(%[1]s, '') || 'x' WHERE %s", column, template)), "updates", column)
	}
	require.Contains(t, d.changed(s, "DELETE FROM indexer.templates WHERE "+template), "updates")
	require.Equal(t, []string{"snapshot", "transactions", "updates"}, d.changed(s, "UPDATE indexer.synchronizers SET synchronizer_id = synchronizer_id || 'x'"))
	require.Equal(t, []string{"snapshot", "updates"}, d.changed(s, "UPDATE indexer.templates SET entity_name = entity_name || 'x'"))

	renumbered := []string{"UPDATE indexer.templates SET template_ref = template_ref + 100", "UPDATE indexer.synchronizers SET synchronizer_ref = synchronizer_ref + 100"}
	for _, row := range d.Rows(`SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'indexer' AND t.table_type = 'BASE TABLE' AND c.table_name !~ '_(p|to)[0-9]+$'
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
	brief.Once(t)
	d := everythingSealed(t)
	s := d.store()
	require.Empty(t, d.changed(s,
		"SET LOCAL timezone = 'Asia/Kathmandu'", "SET LOCAL datestyle = 'German'", "SET LOCAL intervalstyle = 'sql_standard'",
		"SET LOCAL extra_float_digits = -15", "SET LOCAL bytea_output = 'escape'", "SET LOCAL search_path = indexer, public",
		"SET LOCAL standard_conforming_strings = off", "SET LOCAL quote_all_identifiers = on", "SET LOCAL array_nulls = off",
		"SET LOCAL xmloption = document", "SET LOCAL lc_numeric = 'C'", "SET LOCAL lc_monetary = 'C'", "SET LOCAL lc_time = 'C'",
		"SET LOCAL enable_indexscan = off", "SET LOCAL enable_seqscan = off", "SET LOCAL jit = off"))
	var added []string
	for _, table := range tables.In(tables.Facts, tables.Records) {
		added = append(added, "ALTER TABLE "+table.Name+" ADD COLUMN IF NOT EXISTS a_new_one text")
	}
	require.Empty(t, d.changed(s, added...))
	require.Empty(t, d.changed(s,
		`INSERT INTO indexer.offset_checkpoints (ledger_offset, synchronizer_ref, record_time, ordinal, exact) VALUES (103, 1, now(), 0, '{"checkpoint_time": "x"}')`,
		`UPDATE indexer.lookups SET exact = '{"payload": "x"}'`,
		"TRUNCATE indexer.active_contracts"))
}

// Rows that were dumped and restored, in another order and collation, have the same digest.
func TestDigestOutlivesARestore(t *testing.T) {
	t.Parallel()
	brief.Long(t, "copies every table of a database")
	d := everythingSealed(t)
	copied := everythingSealed(t) // has the partitions
	for _, relation := range d.Rows(`SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'indexer'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('ledger_offset', 'seq', 'template_ref', 'synchronizer_ref') AND a.attnum > 0)`) {
		copied.Exec("TRUNCATE indexer." + relation)
		reader, writer := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := d.Conn.PgConn().CopyTo(t.Context(), writer, fmt.Sprintf("COPY (SELECT * FROM indexer.%s ORDER BY random()) TO STDOUT", relation))
			done <- err
			_ = writer.Close() // a pipe's can't fail
		}()
		_, err := copied.Conn.PgConn().CopyFrom(t.Context(), reader, fmt.Sprintf("COPY indexer.%s FROM STDIN", relation))
		require.NoError(t, err, relation)
		require.NoError(t, <-done, relation)
	}
	in := func(d *testDB) map[string]string {
		tx, err := d.Conn.Begin(t.Context())
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
