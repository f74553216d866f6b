package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// exported exports a database into a folder, and returns the ranges that were written.
func exported(t *testing.T, cfg Export) (wrote []export.Manifest, err error) {
	t.Helper()
	cfg.Options.Wrote = func(m export.Manifest) { wrote = append(wrote, m) }
	if cfg.Options.Updates == 0 {
		cfg.Options.Updates = 40
	}
	err = RunExport(t.Context(), cfg, testLogger(t))
	return wrote, err
}

// inSQL and inDuck make the same text of a column's values, which an export has in a form of its own.
var inSQL = map[string]string{
	"text": "%s", "bigint": "%s::text", "integer": "%s::text", "boolean": "%s::text", "numeric": "%s::text", "jsonb": "%s::text", "bytea": "encode(%s, 'hex')",
	"date":                     "%s::text",
	"timestamp with time zone": "(extract(epoch FROM %s) * 1000000)::bigint::text",
	"text[]":                   "array_to_string(%s, ';', '?')", "numeric[]": "array_to_string(%s::text[], ';', '?')",
}

var inDuck = map[string]string{
	"VARCHAR": "%s", "DECIMAL": "%s::text", "DATE": "%s::text", "BIGINT": "%s::text", "INTEGER": "%s::text", "BOOLEAN": "%s::text", "BLOB": "lower(hex(%s))",
	"TIMESTAMP WITH TIME ZONE": "epoch_us(%s)::text", "VARCHAR[]": "array_to_string(list_transform(%s, lambda x: coalesce(x, '?')), ';')",
}

// rowText is an expression for a whole row: the digest of its columns' texts.
func rowText(t *testing.T, forms map[string]string, columns [][2]string) string {
	t.Helper()
	var parts []string
	for _, c := range columns {
		as, _, _ := strings.Cut(c[1], "(")
		require.Contains(t, forms, as, c[0])
		parts = append(parts, "coalesce("+fmt.Sprintf(forms[as], `"`+c[0]+`"`)+", '∅')")
	}
	return "md5(concat_ws('|', " + strings.Join(parts, ", ") + "))"
}

// requireExported compares what DuckDB reads of every file of an export with what PostgreSQL shows up to an offset, row
// by row. DuckDB is asked for all relations at once: its start takes longer than what it does here.
func requireExported(t *testing.T, database, schema, folder string, upTo ledger.Offset) (rows map[string]int) {
	t.Helper()
	return requireRelations(t, database, schema, folder, upTo, exportedRelations(t, database, schema, false))
}

func requireRelations(t *testing.T, database, schema, folder string, upTo ledger.Offset, relations []store.ExportRelation) (rows map[string]int) {
	t.Helper()
	ask := func(query func(r store.ExportRelation, files string) string) map[string][]string {
		t.Helper()
		var queries []string
		for _, r := range relations {
			queries = append(queries, query(r, fmt.Sprintf("read_parquet('%s/%s/*.parquet', filename = true, file_row_number = true)", folder, r.Name)))
		}
		answers := map[string][]string{}
		for _, line := range duck(t, strings.Join(queries, " UNION ALL ")) {
			name, answer, _ := strings.Cut(line, "\t")
			answers[name] = append(answers[name], answer)
		}
		return answers
	}
	described := ask(func(r store.ExportRelation, files string) string {
		return fmt.Sprintf(`SELECT '%s', column_name, column_type FROM (DESCRIBE SELECT * EXCLUDE (filename, file_row_number) FROM %s)`, r.Name, files)
	})
	theirs := map[string][][2]string{}
	for _, r := range relations {
		for i, line := range described[r.Name] {
			name, as, _ := strings.Cut(line, "\t")
			require.Equal(t, r.Columns[i].Name, name, r.Name)
			theirs[r.Name] = append(theirs[r.Name], [2]string{name, as})
		}
		require.Len(t, theirs[r.Name], len(r.Columns), r.Name)
	}
	got := ask(func(r store.ExportRelation, files string) string {
		return fmt.Sprintf(`SELECT '%[1]s', %[2]s FROM %[3]s UNION ALL
			SELECT 'unsorted', filename FROM (SELECT filename, %[4]s AS place, lag(%[4]s) OVER (PARTITION BY filename ORDER BY file_row_number) AS before
			FROM %[3]s) WHERE before > place`, r.Name, rowText(t, inDuck, theirs[r.Name]), files, r.Place)
	})
	require.Empty(t, got["unsorted"])
	rows = map[string]int{}
	for _, r := range relations {
		types := map[string]string{}
		for _, line := range texts(t, database, `SELECT attname || ' ' || format_type(atttypid, NULL) FROM pg_attribute
			WHERE attrelid = $1::text::regclass AND attnum > 0`, shownAs(schema, r)) {
			name, as, _ := strings.Cut(line, " ")
			types[name] = as
		}
		var mine [][2]string
		for _, c := range theirs[r.Name] {
			mine = append(mine, [2]string{c[0], types[c[0]]})
		}
		which := ""
		if r.Name == "exact_payloads" {
			which = map[string]string{"ledger_offset": ` AND stream = 'updates' AND field NOT LIKE 'checkpoint\_%'`, "seq": " AND stream = 'transactions'"}[r.Place]
		}
		want := texts(t, database, fmt.Sprintf("SELECT %s FROM %s e WHERE %s <= $1%s", rowText(t, inSQL, mine), shownAs(schema, r), r.Place, which), int64(upTo))
		slices.Sort(want)
		slices.Sort(got[r.Name])
		require.True(t, slices.Equal(want, got[r.Name]), "%s: %d rows, and %d that DuckDB reads, or others", r.Name, len(want), len(got[r.Name]))
		rows[r.Name] = len(want)
	}
	return rows
}

// shownAs is the relation whose rows a relation of an export has.
func shownAs(schema string, r store.ExportRelation) string {
	if r.Of != "" {
		return strings.Replace(r.Name, "_", ".", 1)
	}
	return schema + "." + r.Name
}

// exportQueries are the queries of docs/export.md, which run on another folder.
func exportQueries(t *testing.T, folder string) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/export.md")
	require.NoError(t, err)
	for _, block := range strings.Split(string(text), "```duckdb\n")[1:] {
		query, _, _ := strings.Cut(block, "```")
		queries = append(queries, strings.ReplaceAll(query, "/exports/ledger", folder))
	}
	require.Len(t, queries, 2)
	return queries
}

// requireActive compares what the documented query finds active at offsets with what PostgreSQL does.
func requireActive(t *testing.T, database, folder string, at ...ledger.Offset) {
	t.Helper()
	for _, offset := range at {
		query := strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(exportQueries(t, folder)[0], "5000", fmt.Sprint(offset))), ";")
		got := duck(t, "SELECT ledger_offset || ' ' || node_id || ' ' || contract_id FROM ("+query+")")
		want := texts(t, database, "SELECT active_from || ' ' || active_from_node_id || ' ' || contract_id FROM ledger.active_at($1)", int64(offset))
		slices.Sort(got)
		slices.Sort(want)
		require.NotEmpty(t, want)
		require.Equal(t, want, got, "active at %d", offset)
	}
}

// requireSkippable looks at what lets an engine leave parts of files out: each column has statistics, and contract and
// update ids have filters, which have what is there and nothing else. All of it is compressed.
func requireSkippable(t *testing.T, database, folder string) {
	t.Helper()
	const chunks = `SELECT DISTINCT split_part(path_in_schema, ',', 1), compression, coalesce(stats_min_value, stats_min) IS NOT NULL OR stats_null_count = num_values,
		bloom_filter_offset IS NOT NULL`
	filtered := 0
	for _, line := range duck(t, chunks+" FROM parquet_metadata('"+folder+"/*/*.parquet')") {
		values := strings.Split(line, "\t")
		wants := values[0] == "contract_id" || values[0] == "update_id"
		if wants {
			filtered++
		}
		require.Equal(t, []string{"ZSTD", "true", fmt.Sprint(wants)}, values[1:], values[0])
	}
	require.Equal(t, 2, filtered)
	contract := texts(t, database, "SELECT contract_id FROM ledger.created_events LIMIT 1")[0]
	for id, want := range map[string][]string{contract: {"false", "true"}, "of nobody": {"true"}} {
		excluded := duck(t, fmt.Sprintf("SELECT DISTINCT bloom_filter_excludes FROM parquet_bloom_probe('%s/created_events/*.parquet', 'contract_id', '%s') ORDER BY 1", folder, id))
		require.Equal(t, want, excluded, id)
	}
}

func exportedRelations(t *testing.T, database, schema string, records bool) (list []store.ExportRelation) {
	t.Helper()
	schemas := store.Schemas{}
	if schema == "network" {
		schemas = config.NetworkSchemas
	}
	db, err := store.Open(store.Config{URL: database, Schemas: schemas})
	require.NoError(t, err)
	defer db.Close()
	in := db.Export
	if records {
		in = db.ExportRecords
	}
	require.NoError(t, in(t.Context(), func(e *store.ExportSnapshot) error {
		list, err = e.Relations(t.Context())
		return err
	}))
	return list
}

// filesOf are the contents of an export, without the metadata of tables: these tell how often it was brought up to
// date.
func filesOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.Contains(path, "/metadata/") {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			files[strings.TrimPrefix(path, folder+"/")] = string(content)
		}
		return err
	}))
	return files
}

// rangesOf are the names of an export's files, without what tells when they were written.
func rangesOf(files map[string]string) (names []string) {
	for name := range files {
		names = append(names, regexp.MustCompile(`\.[a-z2-7]+\.parquet`).ReplaceAllString(name, ".parquet"))
	}
	slices.Sort(names)
	return names
}

// What a reader of the files sees is what PostgreSQL shows, value by value, also of what no participant has sent yet,
// and of a network.
func TestWhatIsExportedIsWhatIsShown(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scan := scanOf(61, 150, sandbox.ScanOptions{})
	database := databaseOfBoth(t)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{Rewrite: new(served).rewrite(strange)}), everything("ledger-effects"))
	cfg.ScanURL, cfg.ScanHistory = []string{serveScan(t, scan)}, config.ScanUpdates
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	for schema, schemas := range map[string]config.Schemas{"ledger": {}, "network": {Network: true}} {
		folder := t.TempDir()
		pair := Export{Database: config.Database{DatabaseURL: database, Schemas: schemas}, To: folder, Options: export.Options{Updates: 10}}
		wrote, err := exported(t, pair)
		require.NoError(t, err)
		require.Greater(t, len(wrote), 2)
		rows := requireExported(t, database, schema, folder, wrote[len(wrote)-1].To)
		sums := map[string]int{}
		for _, m := range wrote {
			for _, f := range m.Files {
				if _, shown := rows[f.Relation]; shown {
					sums[f.Relation] += int(f.Rows)
				}
			}
		}
		require.Equal(t, rows, sums, "manifests count")
		for relation, n := range rows {
			if schema == "ledger" {
				require.Positive(t, n, relation)
			}
		}
		if schema == "ledger" {
			requireActive(t, database, folder, wrote[1].To, wrote[len(wrote)-1].To)
			requireSkippable(t, database, folder)
		}
		plan, _, err := RunPruneExported(t.Context(), pair.Database, nil, folder, false, testLogger(t))
		require.NoError(t, err, "every row is that of the files")
		require.Equal(t, wrote[len(wrote)-1].From, plan.Floor)
		before := filesOf(t, folder)
		pair.Check = true
		wrote, err = exported(t, pair)
		require.NoError(t, err)
		require.Empty(t, wrote)
		require.Equal(t, before, filesOf(t, folder), "again: nothing is written")
	}
}

// What an export that ended early left is removed: no engine finds rows twice.
func TestWhatAnExportLeftIsRemoved(t *testing.T) {
	t.Parallel()
	_, folder, cfg, _ := smallExport(t)
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	before := filesOf(t, folder)
	last := wrote[len(wrote)-1]
	require.NoError(t, os.Remove(filepath.Join(folder, last.Name())))
	for _, left := range []string{"updates/0000000000000000001-0000000000000000009.before.parquet", last.Files[0].Name + ".part", last.Name() + ".part"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, left), []byte("half a file"), 0o600))
	}
	notes := filepath.Join(folder, "notes.txt")
	require.NoError(t, os.WriteFile(notes, nil, 0o600))
	wrote, err = exported(t, cfg)
	require.NoError(t, err)
	require.Equal(t, []string{last.Name()}, []string{wrote[0].Name()})
	require.NoError(t, os.Remove(notes), "what is not of an export stays")
	after := filesOf(t, folder)
	require.Equal(t, rangesOf(before), rangesOf(after))
	require.NotContains(t, before, wrote[0].Files[0].Name, "engines may have kept what has the name")
	require.NotContains(t, after, last.Files[0].Name)
}

// smallExport is a database of some updates, and what exports it into a folder.
func smallExport(t *testing.T) (database, folder string, cfg Export, index func()) {
	t.Helper()
	database, l, url := smallWorld.indexed(t)
	index = func() {
		t.Helper()
		l.Grow(30)
		require.NoError(t, RunIndexer(t.Context(), indexerFor(database, url, smallWorld.scope), testLogger(t)))
	}
	folder = t.TempDir()
	return database, folder, Export{Database: config.Database{DatabaseURL: database}, To: folder}, index
}

// What doesn't fit, or is damaged, is refused with what it is and what to do, and nothing is written.
func TestExportsThatAreRefused(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, folder, cfg, _ := smallExport(t)
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	m := wrote[1]
	manifest, file := filepath.Join(folder, m.Name()), filepath.Join(folder, m.Files[1].Name)
	refused := func(cfg Export, parts ...string) {
		t.Helper()
		before := filesOf(t, folder)
		wrote, err := exported(t, cfg)
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.NotEmpty(t, problem.Do)
		for _, part := range parts {
			require.Contains(t, problem.Error(), part)
		}
		require.Empty(t, wrote)
		require.Equal(t, before, filesOf(t, folder))
	}
	change := func(name string, to func(content []byte) []byte) (restore func()) {
		t.Helper()
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, to(bytes.Clone(content)), 0o600))
		return func() { require.NoError(t, os.WriteFile(name, content, 0o600)) }
	}
	for what, set := range map[string]func(*export.Manifest){
		"the ledger of someone": func(m *export.Manifest) { m.Participant = "someone" },
		"scope other":           func(m *export.Manifest) { m.Scope = "other" },
		"schema version 9999":   func(m *export.Manifest) { m.SchemaVersion = 9999 },
		"with 77 changes":       func(m *export.Manifest) { m.Change = 77 },
		"has format 99":         func(m *export.Manifest) { m.Format = 99 },
		"has format 2":          func(m *export.Manifest) { m.Format = 2 },
		"is of the records":     func(m *export.Manifest) { m.Records = true },
		"is damaged":            func(m *export.Manifest) { m.Files[0].Name = "../elsewhere.parquet" },
	} {
		restore := change(manifest, func([]byte) []byte {
			other := m
			other.Files = slices.Clone(m.Files)
			set(&other)
			text, err := json.Marshal(other)
			require.NoError(t, err)
			return text
		})
		refused(cfg, m.Name(), what)
		restore()
	}
	restore := change(manifest, func(text []byte) []byte { return text[:len(text)/2] })
	refused(cfg, m.Name(), "is damaged")
	restore()
	restore = change(file, func(content []byte) []byte { return content[:len(content)-1] })
	refused(cfg, m.Files[1].Name, "is damaged")
	restore()
	checked := cfg
	checked.Check = true
	restore = change(file, func(content []byte) []byte { content[len(content)/2] ^= 1; return content })
	refused(checked, m.Files[1].Name, "another SHA-256")
	restore()

	beyond := cfg
	beyond.Options.Through = 1 << 40
	refused(beyond, "--through")
	place, err := export.Open(folder, true)
	require.NoError(t, err)
	db, err := cfg.Open(t.Context(), testLogger(t))
	require.NoError(t, err)
	defer db.Close()
	_, unlock, err := export.Begin(t.Context(), db, place, export.Options{})
	require.NoError(t, err)
	refused(cfg, "another export of database", "writes to file://"+folder)
	unlock()

	wrote, err = exported(t, cfg)
	require.NoError(t, err)
	require.Empty(t, wrote)
	empty := cfg
	empty.DatabaseURL = throwaway.Migrated(t, migrate)
	refused(empty, "nothing has been indexed into schema")
	requireWaiting(t, empty) // one that follows waits for that too
}

// What changes after it was exported is exported again, what is pruned stays in the files, and the rest of the ledger
// follows: files and what is after them in PostgreSQL are the whole ledger, each row once.
func TestAnExportFollowsWhatChanges(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, folder, cfg, index := smallExport(t)
	first, err := exported(t, cfg)
	require.NoError(t, err)
	end := first[len(first)-1].To

	contract := texts(t, database, `SELECT c.contract_id FROM ledger.created_events c WHERE c.ledger_offset > $1 AND c.payload IS NOT NULL
		AND c.contract_id NOT IN (SELECT a.contract_id FROM ledger.active_contracts a) ORDER BY c.ledger_offset LIMIT 1`, int64(first[1].From))[0]
	_, err = RunRedact(t.Context(), cfg.Database, audit.Redaction{ContractID: contract}, "a test", true, testLogger(t))
	require.NoError(t, err)
	again, err := exported(t, cfg)
	require.NoError(t, err)
	require.NotEmpty(t, again)
	requireExported(t, database, "ledger", folder, end)
	require.Equal(t, []string{"0"}, duck(t, fmt.Sprintf("SELECT count(payload)::text FROM read_parquet('%s/created_events/*.parquet') WHERE contract_id = '%s'", folder, contract)))

	// After a reset the ranges that reach beyond it are gone, until there is something in their place.
	_, err = RunReset(t.Context(), cfg.Database, first[1].To-3, true, testLogger(t))
	require.NoError(t, err)
	_, err = exported(t, cfg)
	require.NoError(t, err)
	requireExported(t, database, "ledger", folder, first[1].To-3)
	index()
	_, err = exported(t, cfg)
	require.NoError(t, err)
	index()
	through := ledger.Offset(watermarkOf(t, database))
	kinds := texts(t, database, "SELECT kind || chr(9) || count(*) FROM ledger.updates GROUP BY kind")
	shown := map[string][]string{}
	for _, relation := range []string{"created_events", "archived_events", "updates"} {
		shown[relation] = texts(t, database, fmt.Sprintf("SELECT ledger_offset::text FROM ledger.%s", relation))
	}
	last, err := exported(t, cfg)
	require.NoError(t, err)
	require.Equal(t, through, last[len(last)-1].To)
	requireExported(t, database, "ledger", folder, through)

	prune(t, database, int64(through)-20)
	none, err := exported(t, cfg)
	require.NoError(t, err)
	require.Empty(t, none, "what was pruned stays")
	for relation, want := range shown {
		got := append(duck(t, fmt.Sprintf("SELECT ledger_offset::text FROM read_parquet('%s/%s/*.parquet')", folder, relation)),
			texts(t, database, fmt.Sprintf("SELECT ledger_offset::text FROM ledger.%s WHERE ledger_offset > $1", relation), int64(through))...)
		slices.Sort(got)
		slices.Sort(want)
		require.Equal(t, want, got, relation)
	}

	// The documented view of both, as it is read at once, and as by a reader for whom newer files came in the meantime. A
	// copy stands for DuckDB's extension.
	rows := texts(t, database, "SELECT format('(%s, %L, %L, TIMESTAMPTZ %L)', ledger_offset, update_id, kind, record_time) FROM ledger.updates")
	view := exportQueries(t, folder)[1]
	_, view, _ = strings.Cut(view, ";")
	view = "ATTACH ':memory:' AS l; CREATE SCHEMA l.ledger; CREATE TABLE l.ledger.updates AS FROM (VALUES " + strings.Join(rows, ", ") +
		") v(ledger_offset, update_id, kind, record_time);" + strings.Replace(view, "count(*)", "count(*)::text", 1)
	require.ElementsMatch(t, kinds, duck(t, view))
	older := strings.Replace(view, "(SELECT max(to_inclusive)", fmt.Sprintf("(SELECT max(to_inclusive) - %d", 5), 1)
	require.NotEqual(t, view, older)
	require.ElementsMatch(t, kinds, duck(t, older))

	// What was pruned before it was exported is a gap that no export hides.
	index()
	prune(t, database, watermarkOf(t, database)-2)
	_, err = exported(t, cfg)
	require.ErrorContains(t, err, "those between them were not exported")
	cfg.To = t.TempDir()
	anew, err := exported(t, cfg)
	require.NoError(t, err)
	require.Equal(t, anew[0].To, anew[0].CompleteFrom, "what is carried is a range of its own")
	require.Positive(t, anew[0].Rows())
	requireExported(t, database, "ledger", cfg.To, anew[len(anew)-1].To)
	requireActive(t, database, cfg.To, *anew[0].StateFrom, anew[len(anew)-1].To)
}

// What was in flight between synchronizers at the snapshot is not active before it arrives.
func TestWhatIsExportedOfASnapshotSaysWhatWasActive(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := growInFlight(sandbox.Options{Seed: 5}) // of its own: it grows
	database, url := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{})
	at := ledger.Offset(l.End())
	_, err := RunBackfill(t.Context(), backfillFor(database, url, everything("ledger-effects"), -1), testLogger(t), nil)
	require.NoError(t, err)
	l.Grow(100)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, url, everything("ledger-effects")), testLogger(t)))
	require.NotEmpty(t, texts(t, database, "SELECT contract_id FROM ledger.reassignments WHERE update_id IS NULL AND kind = 'unassigned'"))
	folder := t.TempDir()
	wrote, err := exported(t, Export{Database: config.Database{DatabaseURL: database}, To: folder})
	require.NoError(t, err)
	require.Equal(t, at, *wrote[0].StateFrom)
	requireActive(t, database, folder, at, wrote[1].To, wrote[len(wrote)-1].To)
}

// hasEnded is of contracts that are active nowhere any more.
const hasEnded = "active_until IS NOT NULL AND contract_id NOT IN (SELECT a.contract_id FROM ledger.active_contracts a)"

// A place goes on after pruning: what is repaired or redacted of what is left is exported again, and what was pruned
// stays in the files.
func TestAnExportGoesOnAfterPruning(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, folder, cfg, _ := smallExport(t)
	end := ledger.Offset(watermarkOf(t, database))
	plan, err := RunPrune(t.Context(), cfg.Database, store.PruneBefore{Offset: new(end - 40)}, false, testLogger(t))
	require.NoError(t, err)
	cfg.Options.Through = plan.Floor
	pruned, err := exported(t, cfg)
	require.NoError(t, err)
	cfg.Options.Through = 0
	left, err := exported(t, cfg)
	require.NoError(t, err)
	require.Equal(t, plan.Floor, prune(t, database, int64(end-40)).Floor)
	shown := filesOf(t, folder)

	repairLifetimes(t, cfg)
	ranges := func(list []export.Manifest) (names []string) {
		for _, m := range list {
			names = append(names, m.Name())
		}
		return names
	}
	again, err := exported(t, cfg)
	require.NoError(t, err)
	require.Equal(t, ranges(left), ranges(again))

	contract := texts(t, database, "SELECT contract_id FROM ledger.contract_lifetimes WHERE active_from > $1 AND "+hasEnded+" LIMIT 1", int64(plan.Floor))[0]
	_, err = RunRedact(t.Context(), cfg.Database, audit.Redaction{ContractID: contract}, "a test", true, testLogger(t))
	require.NoError(t, err)
	again, err = exported(t, cfg)
	require.NoError(t, err)
	require.NotEmpty(t, again)
	files := filesOf(t, folder)
	for _, m := range pruned {
		for _, name := range append([]string{m.Name()}, filesNamed(m)...) {
			require.Equal(t, shown[name], files[name], name)
		}
	}

	// What was redacted is in files that can't be written again.
	contract = texts(t, database, "SELECT contract_id FROM ledger.contract_lifetimes WHERE active_from <= $1 AND "+hasEnded+" LIMIT 1", int64(plan.Floor))[0]
	_, err = RunRedact(t.Context(), cfg.Database, audit.Redaction{ContractID: contract}, "a test", true, testLogger(t))
	require.NoError(t, err)
	_, err = exported(t, cfg)
	require.ErrorContains(t, err, "redacted after they had been exported")
}

// With an export only what it holds is pruned: whole ranges whose files are there, and that did not change meanwhile.
func TestOnlyWhatIsExportedIsPruned(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, folder, cfg, index := smallExport(t)
	cfg.Options.Updates = 20
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	require.Greater(t, len(wrote), 3)
	pruneHeld := func(before ledger.Offset, apply bool) (plan store.PrunePlan, held export.Held, err error) {
		var limit *store.PruneBefore
		if before > 0 {
			limit = &store.PruneBefore{Offset: &before}
		}
		return RunPruneExported(t.Context(), cfg.Database, limit, folder, apply, testLogger(t))
	}
	last := wrote[len(wrote)-1]
	refused := func(parts ...string) {
		t.Helper()
		_, _, err := pruneHeld(last.From, true)
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.NotEmpty(t, problem.Do)
		for _, part := range parts {
			require.Contains(t, problem.Error(), part)
		}
		require.Equal(t, []string{"0"}, texts(t, database, "SELECT ledger.oldest_offset()::text"))
	}

	plan, held, err := pruneHeld(0, false)
	require.NoError(t, err)
	require.Equal(t, last.From, plan.Floor, "something stays")
	require.Contains(t, held.Why, last.Name())
	require.Contains(t, held.Why, "something has to stay")
	plan, held, err = pruneHeld(wrote[1].To+1, false)
	require.NoError(t, err)
	require.Equal(t, wrote[1].To, plan.Floor)
	require.Empty(t, held.Why)
	plan, held, err = pruneHeld(wrote[1].To, false)
	require.NoError(t, err)
	require.Equal(t, wrote[0].To, plan.Floor, "of a range nothing or all: an export could not write the rest of it again")
	require.Contains(t, held.Why, wrote[1].Name())
	require.Contains(t, held.Why, "there is more of it than was asked for")

	// What is not as it was written, or is of something else.
	for n, what := range []string{"bytes instead of", "is missing"} {
		file := wrote[0].Files[n]
		name := filepath.Join(folder, file.Name)
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		end := len(content) - 1
		require.NoError(t, os.Remove(name))
		if to := [][]byte{content[:end], nil}[n]; to != nil {
			require.NoError(t, os.WriteFile(name, to, 0o600))
		}
		refused(file.Name, what)
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
	manifest := filepath.Join(folder, wrote[0].Name())
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	for what, to := range map[string]string{
		"the ledger of someone": strings.Replace(string(text), wrote[0].Participant, "someone", 1),
		"scope other":           strings.Replace(string(text), wrote[0].Scope, "other", 1),
		"schema version 9":      strings.Replace(string(text), `"schema_version": `, `"schema_version": 9`, 1),
	} {
		require.NoError(t, os.WriteFile(manifest, []byte(to), 0o600))
		refused(wrote[0].Name(), what)
	}
	require.NoError(t, os.WriteFile(manifest, text, 0o600))

	// What changed since, and what is not exported.
	contract := texts(t, database, "SELECT contract_id FROM ledger.contract_lifetimes WHERE active_until <= $1 AND active_from > $2 AND active_from <= $3 AND "+hasEnded+" LIMIT 1",
		int64(last.From), int64(wrote[0].To), int64(wrote[1].To))[0]
	_, err = RunRedact(t.Context(), cfg.Database, audit.Redaction{ContractID: contract}, "a test", true, testLogger(t))
	require.NoError(t, err)
	refused("manifests/", "were redacted after they had been exported")
	plan, held, err = pruneHeld(wrote[1].To, false)
	require.NoError(t, err, "nothing of the range with the contract would go")
	require.Equal(t, wrote[0].To, plan.Floor)
	require.Contains(t, held.Why, wrote[1].Name())
	_, err = exported(t, cfg)
	require.NoError(t, err)
	index()
	plan, held, err = pruneHeld(ledger.Offset(watermarkOf(t, database)), false)
	require.NoError(t, err)
	require.Equal(t, last.To, plan.Floor)
	require.Contains(t, held.Why, fmt.Sprintf("has what is after offset %d", last.To))

	// It goes in parts, also of what was pruned without an export in the middle of a range, and what went is read in the
	// files.
	kept := texts(t, database, "SELECT ledger_offset || ' ' || node_id || ' ' || contract_id FROM ledger.created_events WHERE ledger_offset <= $1", int64(last.To))
	for n, before := range []ledger.Offset{wrote[1].To, wrote[2].To, wrote[2].To + 1, 0} {
		if n == 2 {
			prune(t, database, int64(wrote[2].To-5))
		}
		plan, _, err := pruneHeld(before, true)
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprint(plan.Floor)}, texts(t, database, "SELECT ledger.oldest_offset()::text"))
	}
	require.Equal(t, []string{fmt.Sprint(last.To)}, texts(t, database, "SELECT ledger.oldest_offset()::text"))
	files := duck(t, fmt.Sprintf("SELECT ledger_offset || ' ' || node_id || ' ' || contract_id FROM read_parquet('%s/created_events/*.parquet')", folder))
	require.ElementsMatch(t, kept, files)
	plan, _, err = pruneHeld(0, true)
	require.NoError(t, err)
	require.True(t, plan.Empty())
	_, err = exported(t, cfg)
	require.NoError(t, err, "the export goes on")
}

// Files of what was pruned that lost their manifest, or one that is damaged, are left alone: nothing else has these
// updates.
func TestAnExportRemovesNoFilesOfWhatWasPruned(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, folder, cfg, index := smallExport(t)
	cfg.Options.Updates = 1000
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	require.Len(t, wrote, 1)
	prune(t, database, watermarkOf(t, database)-30)
	damaged := filepath.Join(folder, wrote[0].Files[0].Name)
	content, err := os.ReadFile(damaged)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(damaged, 10))
	_, err = exported(t, cfg)
	require.ErrorContains(t, err, "is damaged")
	require.NoError(t, os.Remove(damaged))
	_, err = exported(t, cfg)
	require.ErrorContains(t, err, "is missing")
	require.NoError(t, os.WriteFile(damaged, content, 0o600))

	manifest := filepath.Join(folder, wrote[0].Name())
	require.NoError(t, os.Remove(manifest))
	before := filesOf(t, folder)
	_, err = exported(t, cfg)
	require.ErrorContains(t, err, "no manifest of")
	require.Equal(t, before, filesOf(t, folder))

	// Up to the end of the range, as far as it can be pruned: what is carried there has a range of the same name.
	index()
	require.Equal(t, wrote[0].To, prune(t, database, int64(wrote[0].To)+1).Floor)
	_, err = exported(t, cfg)
	require.ErrorContains(t, err, "no manifest of")
	require.Equal(t, before, filesOf(t, folder))
	for name := range before { // an export that ended before it had written this much
		require.NoError(t, os.Remove(filepath.Join(folder, name)))
	}
	wrote, err = exported(t, cfg)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(folder, wrote[0].Name())))
	_, err = exported(t, cfg)
	require.NoError(t, err, "of what is carried nothing was pruned")
}

// repairLifetimes damages what is derived, and repairs it: the change is of everything up to the watermark.
func repairLifetimes(t *testing.T, cfg Export) {
	t.Helper()
	db, err := cfg.Open(t.Context(), testLogger(t))
	require.NoError(t, err)
	defer db.Close()
	repairer, ok, err := audit.LeadRepair(t.Context(), db)
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	execute(t, cfg.DatabaseURL, "DELETE FROM indexer.lifetimes WHERE deactivated_offset = (SELECT max(deactivated_offset) FROM indexer.lifetimes)")
	require.NoError(t, repairer.RepairDerived(t.Context(), nil))
}

// Of ranges that all changed one after the other is replaced: readers always have the others, and an export that is
// killed goes on.
func TestRangesThatChangedAreReplacedOneByOne(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, folder, cfg, _ := smallExport(t)
	_, err := exported(t, cfg)
	require.NoError(t, err)
	before := filesOf(t, folder)
	repairLifetimes(t, cfg)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	cfg.Options.Updates, cfg.Options.Wrote = 40, func(export.Manifest) { kill() }
	require.ErrorIs(t, RunExport(ctx, cfg, testLogger(t)), context.Canceled)
	require.Equal(t, rangesOf(before), rangesOf(filesOf(t, folder)))
	rest, err := exported(t, cfg)
	require.NoError(t, err)
	require.NotEmpty(t, rest)
	none, err := exported(t, cfg)
	require.NoError(t, err)
	require.Empty(t, none)
}

// endingPlace is a place whose export loses its session when a file whose name has a part is written or removed.
type endingPlace struct {
	export.Place
	t              *testing.T
	database, part string
}

// Write writes a file.
func (p *endingPlace) Write(ctx context.Context, name string, fill func(io.Writer) error) error {
	p.end(name)
	return p.Place.Write(ctx, name, fill)
}

// Remove removes a file.
func (p *endingPlace) Remove(ctx context.Context, name string) error {
	p.end(name)
	return p.Place.Remove(ctx, name)
}

func (p *endingPlace) end(name string) {
	if strings.Contains(name, p.part) {
		execute(p.t, p.database, `SELECT pg_terminate_backend(k.pid, 10000) FROM pg_locks k JOIN pg_database d ON d.oid = k.database
			WHERE d.datname = current_database() AND k.relation = 'indexer.floors'::regclass AND k.mode = 'AccessShareLock'`)
	}
}

// An export whose session ended has no lock that pruning waits for: it removes no manifest any more, and no file.
func TestAnExportWithoutASessionRemovesNothing(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, folder, cfg, _ := smallExport(t)
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	repairLifetimes(t, cfg)
	place, err := export.Open(folder, true)
	require.NoError(t, err)
	db, err := cfg.Open(t.Context(), testLogger(t))
	require.NoError(t, err)
	defer db.Close()
	for _, c := range []struct {
		part string
		left []string
	}{
		{"updates/metadata/version-hint.text", append(filesNamed(wrote[0]), wrote[0].Name())}, // the tables name the range no more
		{wrote[0].Name(), filesNamed(wrote[0])},
	} {
		e, unlock, err := export.Begin(t.Context(), db, &endingPlace{place, t, database, c.part}, export.Options{Updates: 40, Wrote: func(export.Manifest) {}})
		require.NoError(t, err)
		_, err = e.Next(t.Context())
		unlock()
		require.Error(t, err)
		for _, name := range c.left {
			require.FileExists(t, filepath.Join(folder, name))
		}
	}
	_, err = exported(t, cfg)
	require.NoError(t, err, "the next one goes on")
}

func filesNamed(m export.Manifest) (names []string) {
	for _, file := range m.Files {
		names = append(names, file.Name)
	}
	return names
}

func watermarkOf(t *testing.T, database string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(texts(t, database, "SELECT ledger.latest_offset()::text")[0], 10, 64)
	require.NoError(t, err)
	return n
}

// An export that follows writes full ranges only, and none before it was compared with the ledger; their seals are in
// the manifests. It ends when it is stopped, and what it wrote is whole.
func TestAnExportFollowsWhatIsVerified(t *testing.T) {
	t.Parallel()
	s := indexed(t, 100)
	cfg := Export{Database: config.Database{DatabaseURL: s.database}, To: t.TempDir(), Follow: true, Options: export.Options{Updates: 22}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ranges, ended := make(chan export.Manifest, 100), make(chan error, 1)
	cfg.Options.Wrote = func(m export.Manifest) { ranges <- m }
	go func() { ended <- RunExport(ctx, cfg, testLogger(t)) }()
	s.sealUntil(allVerified)
	for i := range 4 {
		var m export.Manifest
		select {
		case m = <-ranges:
		case err := <-ended:
			require.NoError(t, err)
			t.Fatal("it ended by itself")
		}
		require.Equal(t, []string{"22"}, texts(t, s.database, "SELECT count(*)::text FROM ledger.updates WHERE ledger_offset > $1 AND ledger_offset <= $2", int64(m.From), int64(m.To)))
		var seals []string
		for _, seal := range m.Seals {
			seals = append(seals, fmt.Sprintf("%d %d %s %x", seal.From, seal.To, seal.Result, seal.Digest))
		}
		slices.Sort(seals)
		want := texts(t, s.database, `SELECT format('%s %s %s %s', from_exclusive, to_inclusive, result, encode(digest, 'hex')) FROM ledger.verifications
			WHERE stream = 'updates' AND to_inclusive > $1 AND from_exclusive < $2`, int64(m.From), int64(m.To))
		slices.Sort(want)
		require.True(t, slices.Equal(want, seals), "range %d: %v, %v", i, want, seals)
	}
	stop()
	require.NoError(t, <-ended)
	cfg.Follow, cfg.Check = false, true
	rest, err := exported(t, cfg)
	require.NoError(t, err)
	require.Len(t, rest, 1, "the rest fills no range")
}
