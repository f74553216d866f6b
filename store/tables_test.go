package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// catalogTables selects the tables of schema indexer, without partitions.
const catalogTables = `pg_class c WHERE c.relnamespace = 'indexer'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`

// Every table is described, and every description is of a table: one that is missing would never be compared, sealed or
// reset.
func TestEveryTableIsDescribed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	described := tables.Names(tables.All())
	slices.Sort(described)
	require.Equal(t, d.Rows("SELECT c.relname::text FROM "+catalogTables+" ORDER BY 1"), slices.Compact(described))
}

// What belongs to offsets and lies in partitions is facts, whichever family it is described as: only facts are compared
// with the ledger, sealed, and counted where a participant was restored. What else has an offset is of a family that
// says what becomes of it.
func TestWhatLiesAtOffsetsIsFacts(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	byOffset := d.Rows(`SELECT c.relname::text FROM ` + catalogTables + ` AND c.relkind = 'p' AND EXISTS (
		SELECT FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
		WHERE p.partrelid = c.oid AND a.attname = 'ledger_offset')`)
	require.Greater(t, len(byOffset), 5)
	for _, table := range tables.All() {
		require.False(t, slices.Contains(byOffset, table.Name) && table.Family != tables.Facts && table.Family != tables.Resynced, table.Name)
		require.False(t, table.Family == tables.State && d.Columns(table.Name)["ledger_offset"] != "" && table.Place == "" && table.Name != "checkpoints", table.Name)
	}
}

// The columns that a description names are those of the table, and its key is the primary key.
func TestTablesAreAsDescribed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	for _, table := range tables.All() {
		columns := d.Columns(table.Name)
		for _, column := range append(append([]string{table.Place}, table.Snapshot...), table.Key...) {
			require.True(t, column == "" || columns[column] != "", "%s.%s", table.Name, column)
		}
		if primary := d.Rows(`SELECT a.attname::text FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY k (attnum, n)
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
			WHERE i.indrelid = ('indexer.' || $1::text)::regclass AND i.indisprimary AND k.n <= i.indnkeyatts ORDER BY k.n`, table.Name); len(primary) > 0 {
			primary = slices.DeleteFunc(primary, func(column string) bool {
				return !slices.Contains(table.Key, column) && strings.Contains(table.Which, "s."+column)
			})
			require.Equal(t, primary, table.Key, table.Name)
		}
		partitioned := d.Row("SELECT coalesce((SELECT a.attname::text FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]"+
			" WHERE p.partrelid = ('indexer.' || $1::text)::regclass), '')", table.Name)
		if table.Partitioned {
			require.Equal(t, table.Place, partitioned, table.Name)
		} else {
			require.Empty(t, partitioned, table.Name)
		}
		if table.Which != "" {
			d.Exec("SELECT FROM indexer." + table.Name + " s WHERE " + table.Rows("true OR true"))
		}
		require.Equal(t, table.Family == tables.Totals || table.Family == tables.Projections, table.Follows != "", table.Name)
	}
}

// What refers to a dictionary by its name is described as such.
func TestReferencesAreDescribed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	names := d.Rows(`SELECT DISTINCT a.attname::text FROM pg_attribute a CROSS JOIN ` + catalogTables + ` AND a.attrelid = c.oid AND a.attname LIKE '%\_ref'`)
	for _, name := range names {
		_, isRef := tables.References[name]
		require.True(t, isRef || name == tables.PartyList+"_ref", name)
	}
	require.Len(t, names, len(tables.References)+1)
	for _, dictionary := range tables.References {
		require.NotPanics(t, func() { tables.Get(tables.Dictionaries, dictionary+"s") })
	}
}

// The rows of a table that families share belong to one of them at least.
func TestEveryRowOfASharedTableBelongsToAFamily(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.WriteEverything(d.leadUpdates(d.store()), d.leadTransactions(d.store()))
	d.Exec(`INSERT INTO indexer.verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest)
		SELECT s, 0, 3, now(), 'equal', 0, sha256('') FROM unnest('{updates,transactions}'::text[]) s`)
	for _, table := range tables.In(tables.Resynced) {
		d.Exec("UPDATE indexer." + table.Name + " SET node_id = 1073741824 WHERE (ledger_offset, node_id) = (SELECT ledger_offset, node_id FROM indexer." + table.Name + " LIMIT 1)")
	}
	for name, parts := range sharedTables() {
		var conditions []string
		for _, table := range parts {
			conditions = append(conditions, table.Rows("true"))
			require.Equal(t, "true", d.Row("SELECT count(*) > 0 FROM indexer."+name+" s WHERE "+table.Rows("true")), "%s: %s", name, table.Which)
		}
		require.Empty(t, d.Rows("SELECT s::text FROM indexer."+name+" s WHERE (("+strings.Join(conditions, ") OR (")+")) IS NOT TRUE"))
	}
}

// sharedTables are those that more than one description is of.
func sharedTables() map[string][]tables.Table {
	shared := map[string][]tables.Table{}
	for _, table := range tables.All() {
		shared[table.Name] = append(shared[table.Name], table)
	}
	for name, parts := range shared {
		if len(parts) == 1 && parts[0].Which == "" {
			delete(shared, name)
		}
	}
	return shared
}

// What is written of updates, snapshots and records goes into tables that are described as theirs, and so is compared,
// repaired and sealed: each column of them, but for those that only another one's rows have.
func TestWhatIsWrittenIsDescribed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, c := range []struct {
		written   []rows.Table
		described []tables.Table
		without   func(tables.Table) []string
	}{
		{new(rows.Facts).Tables(), tables.In(tables.Facts), func(t tables.Table) []string { return t.Snapshot }},
		{new(rows.Carried).Tables(), tables.OfSnapshot(), func(tables.Table) []string { return nil }},
		{new(rows.Records).Tables(), tables.In(tables.Records), func(tables.Table) []string { return nil }},
	} {
		var names []string
		for _, table := range c.written {
			names = append(names, table.Name)
			i := slices.IndexFunc(c.described, func(described tables.Table) bool { return described.Name == table.Name })
			require.GreaterOrEqual(t, i, 0, table.Name)
			require.ElementsMatch(t, d.Rows(`SELECT attname::text FROM pg_attribute WHERE attrelid = ('indexer.' || $1::text)::regclass AND attnum > 0 AND NOT attisdropped
				AND attname <> ALL ($2)`, table.Name, append([]string{}, c.without(c.described[i])...)), table.Columns(), table.Name)
		}
		require.ElementsMatch(t, tables.Names(c.described), names)
	}
}

// Each element of an update is one row that is told to be an element's: who looks at a participant that was restored
// counts them.
func TestElementsAreTold(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	elements, told := 0, 0
	for _, page := range storetest.EveryKind(0) {
		for i := range page.Updates {
			elements += page.Updates[i].Elements()
		}
		list, err := Audit.Stored(d.store()).Compare(t.Context(), page)
		require.NoError(t, err)
		for _, d := range list {
			if d.Element {
				told++
			}
		}
	}
	require.Equal(t, elements, told)
}

// What may make contracts active is what active contracts and lifetimes are computed from.
func TestActivityIsReplayed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, table := range tables.In(tables.Facts) {
		require.Equal(t, table.Activity, d.Row(`SELECT EXISTS (SELECT FROM pg_depend
			WHERE classid = 'pg_proc'::regclass AND objid = 'indexer.activations'::regproc AND refobjid = ('indexer.' || $1::text)::regclass)`, table.Name) == "true", table.Name)
	}
}

// Events of contracts are told, so that a redaction finds all of a contract's. They are among those of ledger.events
// and `indexer contract`.
func TestEventsOfContractsAreTold(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, table := range tables.In(tables.Facts, tables.Resynced) {
		byNode := slices.Equal(table.Key, []string{"ledger_offset", "node_id"})
		require.Equal(t, byNode && d.Columns(table.Name)["contract_id"] != "", table.Contract, table.Name)
		if !table.Contract {
			continue
		}
		require.Equal(t, "true", d.Row(`SELECT EXISTS (SELECT FROM pg_rewrite r JOIN pg_depend p ON p.classid = 'pg_rewrite'::regclass AND p.objid = r.oid
			WHERE r.ev_class = 'ledger.events'::regclass AND p.refobjid = ('indexer.' || $1::text)::regclass)`, table.Name), table.Name)
		if table.Family == tables.Facts {
			require.Regexp(t, `\bFROM `+table.Name+`\b`, tables.Get(tables.State, "redactions").Seen)
		}
	}
}

// Rows that lie at an offset that a reset takes back do not stay.
func TestAResetLeavesNoTableOut(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, table := range tables.All() {
		if table.Family == tables.Records {
			continue
		}
		atOffset := slices.ContainsFunc(table.Key, func(column string) bool { return strings.HasSuffix(column, "ed_offset") || column == "ledger_offset" })
		partitioned := d.Row("SELECT relkind = 'p' FROM pg_class WHERE oid = ('indexer.' || $1::text)::regclass", table.Name) == "true"
		require.False(t, (atOffset || partitioned || table.Family == tables.Facts) && table.Reset == tables.Stay, table.Name)
		if table.Reset == tables.Remove {
			require.NotEmpty(t, table.Place, table.Name)
		}
	}
}

// Who sees an event sees its update: the witnesses of every kind of event are among those who may see the update.
func TestAnUpdateIsSeenByWhoSeesItsEvents(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pages := storetest.EveryKind(0)
	witnesses := map[string]ledger.Offset{}
	for i := range pages[0].Updates {
		u := &pages[0].Updates[i]
		for kind, events := range reflect.ValueOf(u).Elem().Fields() {
			if events.Kind() != reflect.Slice || events.Type().Elem().Kind() != reflect.Struct {
				continue
			}
			for n := range events.Len() {
				if list := events.Index(n).FieldByName("WitnessParties"); list.IsValid() {
					party := fmt.Sprintf("of %s %d", kind.Name, n)
					list.Set(reflect.ValueOf([]string{party}))
					witnesses[party] = u.Offset
				}
			}
		}
	}
	require.Greater(t, len(witnesses), 3)
	require.NoError(t, d.started().Append(t.Context(), storetest.Scope, pages))
	for party, offset := range witnesses {
		require.Equal(t, "true", d.Row("SELECT $1 = ANY (l.parties) FROM indexer.updates u JOIN indexer.party_lists l ON l.party_list_ref IN (u.seen_by_ref, u.seen_also_by_ref, u.seen_by_others_ref) AND $1 = ANY (l.parties) WHERE u.ledger_offset = $2",
			party, int64(offset)), party)
	}
}

// Who sees an event sees the exact values that belong to it.
func TestExactValuesAreSeenWithTheirEvents(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pages := storetest.EveryKind(0)
	for i := range pages[0].Updates {
		for _, events := range reflect.ValueOf(&pages[0].Updates[i]).Elem().Fields() {
			if events.Kind() != reflect.Slice || events.Type().Elem().Kind() != reflect.Struct {
				continue
			}
			for n := range events.Len() {
				if list := events.Index(n).FieldByName("WitnessParties"); list.IsValid() {
					list.Set(reflect.ValueOf([]string{"alice"}))
				}
				if extra := events.Index(n).FieldByName("Extra"); extra.IsValid() {
					extra.SetBytes([]byte(`{"new": "\u0000"}`))
				}
			}
		}
	}
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, pages))
	role, as := throwaway.Login(t, d.URL, "")
	_, err := l.store.Grant(t.Context(), Reader{Role: role, Parties: []string{"alice"}})
	require.NoError(t, err)
	alice, err := pgx.Connect(t.Context(), as)
	require.NoError(t, err)
	defer alice.Close(context.Background())
	const ofEvents = "SELECT string_agg(concat_ws(' ', ledger_offset, node_id, field), ', ' ORDER BY ledger_offset, node_id, field) FROM ledger.exact_payloads WHERE node_id IS NOT NULL"
	var seen string
	require.NoError(t, alice.QueryRow(t.Context(), ofEvents).Scan(&seen))
	require.Equal(t, d.Row(ofEvents), seen)
}

// What is read of something redacted is written without content, and all columns of content are filled otherwise.
func TestWhatIsRedactedIsWrittenWithoutContent(t *testing.T) {
	t.Parallel()
	for _, redact := range []bool{false, true} {
		pages := storetest.EveryKind(0)
		for i := range pages[0].Updates {
			for j := range pages[0].Updates[i].Unknown {
				pages[0].Updates[i].Unknown[j].Raw = nil
			}
		}
		fillContent(reflect.ValueOf(pages[0].Updates))
		for i := range pages[0].Updates {
			pages[0].Updates[i].Redact(redact, func(ledger.Element) bool { return redact })
		}
		d := newDatabase(t)
		require.NoError(t, d.started().Append(t.Context(), storetest.Scope, pages))
		for _, table := range tables.In(tables.Facts) {
			for _, column := range table.Content {
				if slices.Contains(table.Snapshot, column) {
					continue // no update has it
				}
				require.Equal(t, redact, d.Row("SELECT count("+column+") FROM indexer."+table.Name) == "0", "%s.%s", table.Name, column)
			}
		}
	}
}

// fillContent gives a value to what is of JSON or bytes, and to messages, wherever there is none.
func fillContent(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		if v.IsNil() {
			v.SetBytes([]byte(`{"a": "\u0000"}`)) // which is content of column exact too
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			fillContent(v.Index(i))
		}
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[ledger.Time]():
		for field, value := range v.Fields() {
			if field.Name == "StatusMessage" {
				value.Set(reflect.ValueOf(new(string)))
			}
			fillContent(value)
		}
	}
}

// The times that are kept as exact values are those that a redaction leaves, because they are no content.
func TestTimesAreNoContent(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("internal/rows/*.go")
	require.NoError(t, err)
	var kept []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, call := range regexp.MustCompile(`\.Time\("(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			kept = append(kept, call[1])
		}
	}
	slices.Sort(kept)
	kept = slices.DeleteFunc(kept, func(field string) bool { return field == "checkpoint_time" }) // of no table that is redacted
	require.ElementsMatch(t, redacted.TimeFields, slices.Compact(kept))
}

// Whatever can hold content of contracts is erased when these are redacted: columns of JSON and bytes, of every table,
// but for those that say nothing of contracts. What is erased can be NULL, unless the row goes.
func TestARedactionLeavesNoColumnOut(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	noContent := []string{
		"updates.external_transaction_hash", "updates.transaction_hash", // of a hash nothing can be read
		"offset_checkpoints.extra", "offset_checkpoints.exact", // hints of the server
		"verifications.digest", "pruned_verifications.digest", "reader_lists.bits", "package_contents.content", "scopes.definition", "redactions.erased", "typed_views.columns",
		"redacted_records.records", // without it
	}
	for _, table := range tables.All() {
		if strings.HasPrefix(table.Name, "resync_") { // whose rows all go
			continue
		}
		columns := d.Columns(table.Name)
		for column, typeName := range columns {
			isContent := slices.ContainsFunc(tables.All(), func(t tables.Table) bool { return t.Name == table.Name && slices.Contains(t.Content, column) })
			if typeName == "jsonb" || typeName == "bytea" {
				require.True(t, isContent != slices.Contains(noContent, table.Name+"."+column), "%s.%s", table.Name, column)
			}
		}
		for _, column := range table.Content {
			require.NotEmpty(t, columns[column], "%s.%s", table.Name, column)
			require.Equal(t, "false", d.Row("SELECT attnotnull FROM pg_attribute WHERE attrelid = ('indexer.' || $1::text)::regclass AND attname = $2", table.Name, column))
		}
	}
}
