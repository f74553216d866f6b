package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

func TestSchemasThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, pair := range []Schemas{
		{}, {Tables: "second"}, {Views: "second"}, {Tables: "_a1", Views: "_a2"}, {Tables: strings.Repeat("a", 24)}, {Tables: "ledger", Views: "indexer"},
	} {
		require.NoError(t, pair.Validate(), pair)
	}
	for _, pair := range []Schemas{
		{Tables: "Second"}, {Tables: "1st"}, {Views: "a b"}, {Views: `a"b`}, {Views: "a.b"}, {Tables: "é"}, {Tables: "a,b"}, {Tables: strings.Repeat("a", 25)},
		{Tables: "pg_temp"}, {Views: "pg_catalog"}, {Tables: "public"}, {Views: "information_schema"},
		{Tables: "same", Views: "same"}, {Tables: "ledger"}, {Views: "indexer"},
	} {
		require.ErrorContains(t, pair.Validate(), "schema", pair)
		_, err := Open(Config{URL: "postgres://nowhere", Schemas: pair})
		require.ErrorContains(t, err, "schema", pair)
	}
}

// PostgreSQL cuts the names of sessions. What tells a role's leaders from others' has to be left.
func TestSessionsAreTold(t *testing.T) {
	t.Parallel()
	prefixes := map[string]bool{}
	pairs := []Schemas{session.DefaultSchemas, {Tables: "second"}, {Tables: strings.Repeat("a", 24)}, {Tables: strings.Repeat("a", 23) + "b"}}
	for _, pair := range pairs {
		for _, role := range session.Leases {
			prefix := pair.SessionPrefix(role)
			require.LessOrEqual(t, len(prefix), 60)
			prefixes[prefix] = true
		}
	}
	require.Len(t, prefixes, len(pairs)*len(session.Leases))
}

// Whoever calls a function has a search path of their own.
func TestFunctionsLookNamesUpWhereTheyWereMade(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	require.Empty(t, d.Rows(`SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace IN ('indexer'::regnamespace, 'ledger'::regnamespace)
		AND prosqlbody IS NULL AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search_path=%')`))
}

// What was migrated as a pair is opened as one.
func TestSchemasOfAnotherPair(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates a second pair of schemas")
	d := newDatabase(t)
	open := func(tables, views string) *Store {
		return d.open(d.URL, func(cfg *Config) { cfg.Schemas = Schemas{Tables: tables, Views: views} })
	}
	_, err := open("second_tables", "second_views").Migrate(t.Context())
	require.NoError(t, err)
	for _, s := range []*Store{open("indexer", "second_views"), open("second_tables", "ledger"), open("", "elsewhere")} {
		storetest.RequireProblem(t, s.CheckSchema(t.Context()), "are shown by views in schema", "--views-schema")
		_, err := s.Migrate(t.Context())
		storetest.RequireProblem(t, err, "are shown by views in schema", "--views-schema")
	}
	_, err = open("third_tables", "ledger").Migrate(t.Context())
	storetest.RequireProblem(t, err, "has a schema ledger already", "--views-schema")
	for _, pair := range [][2]string{{"user", "fourth"}, {"fourth", "select"}} {
		_, err = open(pair[0], pair[1]).Migrate(t.Context())
		storetest.RequireProblem(t, err, "a word of SQL", "another name")
	}
	schemas := d.Rows("SELECT nspname FROM pg_namespace WHERE NOT starts_with(nspname, 'pg_') ORDER BY 1")
	require.Equal(t, []string{"indexer", "information_schema", "ledger", "public", "second_tables", "second_views"}, schemas)
	require.False(t, slices.Contains(schemas, "third_tables"))
}

// No statement says in which schema what it names lies, or it would read and write another pair's.
func TestNoStatementNamesASchema(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("\\b(indexer|ledger)\\.[a-z_\"`%]")
	sources := 0
	for _, root := range []string{".", "../queries"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && (entry.Name() == "storetest" || entry.Name() == "testdata") {
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			sources++
			text, err := os.ReadFile(path)
			for number, line := range strings.Split(string(text), "\n") {
				code, _, _ := strings.Cut(line, "// ")
				code, _, _ = strings.Cut(code, "-- ")
				require.NotRegexp(t, named, code, "%s:%d", path, number+1)
			}
			return err
		}))
	}
	require.Greater(t, sources, 100)
}
