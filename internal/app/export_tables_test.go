package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// inIceberg makes the text of a value of what a type is read as.
var inIceberg = map[store.ExportType]string{
	store.ExportText: "%s::text", store.ExportJSON: "%s::text", store.ExportBigint: "%s::text", store.ExportInteger: "%s::text", store.ExportBoolean: "%s::text",
	store.ExportBytes: "replace(encode(%s, 'base64'), E'\\n', '')", store.ExportTexts: "array_to_json(%s::text[])::text",
	store.ExportDate: "%s::text", store.ExportDecimal: "trim_scale(%s)::text", store.ExportTime: `to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')`,
}

// requireTables compares each table of an export with what PostgreSQL shows up to where the export ends, value by
// value; only some relations, if they are named.
func requireTables(t *testing.T, cfg Export, schema string, only ...string) {
	t.Helper()
	requireTablesBy(t, cfg, schema, func(names []string) map[string][]map[string]any {
		return tablesRead(t, "", "duckdb", cfg.To, names...)
	}, only...)
}

// requireTablesBy is requireTables with any reader.
func requireTablesBy(t *testing.T, cfg Export, schema string, read func(names []string) map[string][]map[string]any, only ...string) {
	t.Helper()
	relations := exportedRelations(t, cfg.DatabaseURL, schema, cfg.Options.Records)
	if len(only) > 0 {
		relations = slices.DeleteFunc(relations, func(r store.ExportRelation) bool { return !slices.Contains(only, r.Name) })
	}
	var names []string
	for _, r := range relations {
		names = append(names, r.Name)
	}
	rows := read(names)
	manifests, err := filepath.Glob(filepath.Join(cfg.To, "manifests", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, manifests)
	var last export.Manifest
	require.NoError(t, json.Unmarshal([]byte(readText(t, cfg.To, "manifests/"+filepath.Base(slices.Max(manifests)))), &last))
	for _, r := range relations {
		var got, parts []string
		for _, row := range rows[r.Name] {
			var values []string
			for _, c := range r.Columns {
				values = append(values, icebergText(t, c, row[c.Name]))
			}
			got = append(got, strings.Join(values, "|"))
		}
		for _, c := range r.Columns {
			parts = append(parts, "coalesce("+fmt.Sprintf(inIceberg[c.Type], `e."`+c.Name+`"`)+", '∅')")
		}
		which := ""
		if r.Name == "exact_payloads" {
			which = map[string]string{"ledger_offset": " AND stream = 'updates'", "seq": " AND stream = 'transactions'"}[r.Place]
		}
		want := texts(t, cfg.DatabaseURL, fmt.Sprintf("SELECT concat_ws('|', %s) FROM %s e WHERE %s <= $1%s", strings.Join(parts, ", "), shownAs(schema, r), r.Place, which), int64(last.To))
		slices.Sort(want)
		slices.Sort(got)
		require.Len(t, got, len(want), r.Name)
		for i := range want {
			require.Equal(t, want[i], got[i], r.Name)
		}
	}
}

func icebergText(t *testing.T, c store.ExportColumn, value any) string {
	t.Helper()
	if c.Type == store.ExportDecimal && value != nil { // it may have an exponent, as a number or as a text
		d, err := ledger.ParseDecimal(fmt.Sprint(value))
		require.NoError(t, err)
		return string(d.Plain())
	}
	switch v := value.(type) {
	case nil:
		return "∅"
	case []any:
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return string(text)
	case string:
		if c.Type == store.ExportTime {
			whole, fraction, _ := strings.Cut(strings.TrimSuffix(v, "Z"), ".")
			return whole + "." + (fraction + "000000")[:6]
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}

// Every table of an export is read by other programs, value by value: by the newest PyIceberg and the oldest that is
// supported, and by DuckDB.
func TestTablesAreReadByOtherPrograms(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, _, _ := typedWorld.indexed(t)
	_, err := CreateViews(t.Context(), viewsOf(database, "bank:Bank.Account:Account", "splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"), testLogger(t))
	require.NoError(t, err)
	cfg := Export{Database: config.Database{DatabaseURL: database}, To: t.TempDir(), Options: export.Options{Updates: 120}}
	_, err = exported(t, cfg)
	require.NoError(t, err)
	old := filepath.Join(os.Getenv("TEST_READERS"), "old")
	for name, reader := range map[string]struct{ engine, packages string }{
		"pyiceberg": {"pyiceberg", ""}, "an old pyiceberg": {"pyiceberg", old}, "duckdb": {"duckdb", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireTablesBy(t, cfg, "ledger", func(names []string) map[string][]map[string]any {
				rows := tablesRead(t, reader.packages, reader.engine, cfg.To, names...)
				for _, some := range []string{"created_events", "exercised_events", "typed_bank_account", "typed_splice_api_token_holding_v1_holding"} {
					require.NotEmpty(t, rows[some], some)
				}
				return rows
			})
		})
	}
}

// An export is a table of Apache Iceberg for each relation, of which only the files are read that have what is asked
// for.
func TestAnExportIsTables(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, folder, cfg, index := smallExport(t)
	cfg.Options.Updates = 20
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	require.Greater(t, len(wrote), 3)
	requireTables(t, cfg, "ledger")
	last := wrote[len(wrote)-1]
	require.Equal(t, []string{"1"}, readBy(t, "", "", "files", "ledger_offset", fmt.Sprint(last.From), filepath.Join(folder, "updates")))

	version := func() string { return readText(t, folder, "updates/metadata/version-hint.text") }
	before := version()
	_, err = exported(t, cfg)
	require.NoError(t, err)
	require.Equal(t, before, version(), "nothing is new")

	// The rows of a range that is written again are in one file at any time.
	repairLifetimes(t, cfg)
	index()
	_, err = exported(t, cfg)
	require.NoError(t, err)
	requireTables(t, cfg, "ledger")

	// A copy of the folder has tables of its own after an export into it.
	elsewhere := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(elsewhere, os.DirFS(folder)))
	require.NoError(t, os.RemoveAll(folder))
	cfg.To = elsewhere
	_, err = exported(t, cfg)
	require.NoError(t, err)
	requireTables(t, cfg, "ledger")
}

// Whatever was left of the metadata of a table, the next export brings them up to date; what is not theirs stays.
func TestTablesAreBroughtUpToDate(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, folder, cfg, _ := smallExport(t)
	_, err := exported(t, cfg)
	require.NoError(t, err)
	metadata := filepath.Join(folder, "created_events", "metadata")
	notes := filepath.Join(metadata, "notes.txt")
	require.NoError(t, os.WriteFile(notes, nil, 0o600))
	for what, damage := range map[string]func() error{
		"no hint":           func() error { return os.Remove(filepath.Join(metadata, "version-hint.text")) },
		"a damaged hint":    func() error { return os.WriteFile(filepath.Join(metadata, "version-hint.text"), []byte("x"), 0o600) },
		"an older hint":     func() error { return os.WriteFile(filepath.Join(metadata, "version-hint.text"), []byte("0"), 0o600) },
		"a damaged version": func() error { return os.WriteFile(filepath.Join(metadata, "v1.metadata.json"), []byte("{"), 0o600) },
		"nothing": func() error {
			return errors.Join(os.RemoveAll(metadata), os.MkdirAll(metadata, 0o700), os.WriteFile(notes, nil, 0o600))
		},
		"half a file": func() error { return os.WriteFile(filepath.Join(metadata, "0-list.avro.part"), []byte("x"), 0o600) },
	} {
		require.NoError(t, damage(), what)
		_, err := exported(t, cfg)
		require.NoError(t, err, what)
		requireTables(t, cfg, "ledger", "created_events")
		require.FileExists(t, notes)
	}
}

// watchedPlace is a folder in which an operation fails from time to time, and in which no file may be written or
// removed that a table in force has.
type watchedPlace struct {
	export.Place
	t      *testing.T
	folder string
	until  int // so many operations until the next one that fails
}

var errFault = errors.New("the disk is gone")

// Write writes a file, or fails.
func (w *watchedPlace) Write(ctx context.Context, name string, fill func(io.Writer) error) error {
	if err := w.watch(name); err != nil {
		return err
	}
	return w.Place.Write(ctx, name, fill)
}

// Remove removes a file, or fails.
func (w *watchedPlace) Remove(ctx context.Context, name string) error {
	if err := w.watch(name); err != nil {
		return err
	}
	return w.Place.Remove(ctx, name)
}

func (w *watchedPlace) watch(name string) error {
	require.NotContains(w.t, filesInForce(w.t, w.folder), name)
	if w.until--; w.until < 0 {
		return errFault
	}
	return nil
}

var inAvro = regexp.MustCompile(`file://[^\x00]*?/([a-z_]+/\d+-\d+\.[a-z2-7]+\.parquet|[a-z_]+/metadata/\d+-(?:list|entries)\.avro)`)

// filesInForce are the files that the tables of an export have, each of which is there, and what names them.
func filesInForce(t *testing.T, folder string) (names []string) {
	t.Helper()
	hints, err := filepath.Glob(filepath.Join(folder, "*", "metadata", "version-hint.text"))
	require.NoError(t, err)
	for _, hint := range hints {
		version, err := os.ReadFile(hint)
		require.NoError(t, err)
		table := filepath.Base(filepath.Dir(filepath.Dir(hint)))
		for next := []string{fmt.Sprintf("%s/metadata/v%s.metadata.json", table, version)}; len(next) > 0; next = next[1:] {
			names = append(names, next[0])
			if strings.HasSuffix(next[0], ".parquet") {
				require.FileExists(t, filepath.Join(folder, next[0]))
				continue
			}
			for _, found := range inAvro.FindAllStringSubmatch(readText(t, folder, next[0]), -1) {
				next = append(next, found[1])
			}
		}
	}
	return names
}

// Whatever fails, and when, the tables that are in force have whole files, which stay as they are, and the next export
// brings them up to date.
func TestTablesInForceAreWhole(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, folder, cfg, index := smallExport(t)
	db, err := cfg.Open(t.Context(), testLogger(t))
	require.NoError(t, err)
	defer db.Close()
	place, err := export.Open(folder, true)
	require.NoError(t, err)
	run := func(until int) error {
		w := &watchedPlace{place, t, folder, until}
		e, unlock, err := export.Begin(t.Context(), db, w, export.Options{Updates: 40, Wrote: func(export.Manifest) {}})
		require.NoError(t, err)
		defer unlock()
		for {
			if wrote, err := e.Next(t.Context()); err != nil || !wrote {
				return err
			}
		}
	}
	for _, change := range []func(){func() {}, index, func() { repairLifetimes(t, cfg) }} {
		change()
		failed := 0
		for until := 0; ; until += 17 {
			err := run(until)
			filesInForce(t, folder)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, errFault)
			failed++
		}
		require.Positive(t, failed)
		requireTables(t, cfg, "ledger")
	}
}

func fileOf(t *testing.T, m export.Manifest, relation string) export.File {
	t.Helper()
	n := slices.IndexFunc(m.Files, func(f export.File) bool { return f.Relation == relation })
	require.GreaterOrEqual(t, n, 0)
	return m.Files[n]
}

func readText(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	return string(text)
}
