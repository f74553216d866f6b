package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	daml "ledgerindexer/internal/features/damllf/build"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
)

// storePackages makes a database that has these packages, and nothing else.
func storePackages(t *testing.T, packages ...daml.Package) (database string) {
	t.Helper()
	database = throwaway.Migrated(t, migrate)
	storePackagesIn(t, database, packages...)
	return database
}

func storePackagesIn(t *testing.T, database string, packages ...daml.Package) {
	t.Helper()
	conn := open(t, database)
	for _, p := range packages {
		id, content := p.Encode()
		_, err := conn.Exec(t.Context(), "INSERT INTO indexer.package_contents (package_id, package_name, package_version, language, needs, content) VALUES ($1, $2, $3, '2.1', '{}', $4)",
			id, p.Name, p.Version, content)
		require.NoError(t, err)
	}
}

func field(name string, t daml.Type) daml.Field { return daml.Field{Name: name, Type: t} }

// fields are many of them.
func fields(n int, of daml.Type) (list []daml.Field) {
	for i := range n {
		list = append(list, field(fmt.Sprintf("f%d", i), of))
	}
	return list
}

// nested are records within each other.
func nested(name string, deep int) (list []daml.DataType) {
	for i := range deep {
		list = append(list, daml.Record(fmt.Sprintf("%s%d", name, i), field("x", daml.Local(fmt.Sprintf("M:%s%d", name, i+1)))))
	}
	return append(list, daml.Record(fmt.Sprintf("%s%d", name, deep), field("x", daml.Text)))
}

// Whatever a package defines that the language allows, its views can be made and read, or it is said why one can't, and
// the others are made.
func TestTypedViewsOfHostilePackages(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	long := strings.Repeat("aB", 100)
	var reserved []daml.Field
	for _, name := range []string{"select", "from", "user", "table", "order", "end", "null", "true", "fooBar", "foo_bar", "FooBar", "contractId", "payload", "active", "$", "_", "_1", "value", "tag",
		"ctid", "oid", "xmin", "tableoid", long, long + "x", long + "X"} {
		reserved = append(reserved, field(name, daml.Text))
	}
	var constructors []daml.Field
	for i := range 1500 {
		constructors = append(constructors, field(fmt.Sprintf("C%d", i), daml.Int64))
	}
	argument := daml.Choice{Name: "Go", Argument: daml.Text, Result: daml.Unit}
	p := daml.Package{Name: strings.Repeat("long-name-", 20), Version: "1.0", Modules: []daml.Module{{
		Name: "M",
		Types: append(append([]daml.DataType{
			daml.Record("Reserved", reserved...), daml.Record("Wide", fields(2000, daml.Text)...), daml.Enum("Word", "A", "B"), daml.Record("Self", field("x", daml.Local("M:Self"))),
			daml.Record("FooBar"), daml.Record("Foo_Bar"), daml.Record("A.B.C", field("x", daml.Local("M:Many"))), daml.Variant("Many", constructors...), daml.Record(long, field("x", daml.Bool)),
			daml.Record("Deep", field("x", daml.Local("M:D0"))), daml.Record("Deeper", field("x", daml.Local("M:E0"))),
		}, nested("D", 150)...), nested("E", 1000)...),
		Templates: []daml.Template{
			{Name: "Reserved", Choices: []daml.Choice{argument, {Name: "go", Argument: daml.Local("M:Self"), Result: daml.Unit}, {Name: long, Argument: daml.Optional(daml.Int64), Result: daml.Unit}}},
			{Name: "Wide"}, {Name: "Word"}, {Name: "Self"}, {Name: "FooBar"}, {Name: "Foo_Bar"}, {Name: "A.B.C"}, {Name: long}, {Name: "Deep"}, {Name: "Deeper"},
		},
		Interfaces: []daml.Interface{{Name: "View", View: daml.Int64, Choices: []daml.Choice{argument}}},
	}}}
	database := storePackages(t, p)
	reports, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	require.Len(t, reports, 15)
	names := map[string]bool{}
	conn := open(t, database)
	for _, r := range reports {
		if strings.HasSuffix(r.Of, ":Deeper") {
			require.Contains(t, r.Failure, "more than 200 deep within each other")
			continue
		}
		require.Empty(t, r.Failure, r.Of)
		require.LessOrEqual(t, len(r.Name), 63)
		require.False(t, names[r.Name], r.Name)
		names[r.Name] = true
		_, err := conn.Exec(t.Context(), "SELECT * FROM typed."+r.Name)
		require.NoError(t, err, r.Of)
	}
	// A wide view uses the index of a field from the next refresh on, and its other columns take the value once.
	i := slices.IndexFunc(reports, func(r ViewReport) bool { return strings.HasSuffix(r.Of, ":M:Wide") })
	wide := "typed." + reports[i].Name
	indexed, err := CreateIndex(t.Context(), Index{Database: viewsOf(database).Database, Template: "Wide", Path: "f7", Anyway: true}, testLogger(t))
	require.NoError(t, err)
	require.Equal(t, []string{wide}, indexed.Refresh)
	uses := func() string { return texts(t, database, "SELECT pg_get_viewdef($1::regclass)", wide)[0] }
	require.NotContains(t, uses(), "e.payload ->> 'f7'")
	again, err := RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
	require.NoError(t, err)
	require.Len(t, again, 14)
	for _, r := range again {
		require.Empty(t, r.Changes, r.Of)
	}
	require.Contains(t, uses(), "(e.payload ->> 'f7'::text) AS f7")
	require.Contains(t, uses(), "(once.value ->> 'f8'::text) AS f8")
}

// Versions that share no field, which the rules of upgrades forbid, leave a view that can be replaced: what was
// published stays, and what has no room is told.
func TestTypedViewsOfVersionsThatShareNothing(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	version := func(name, prefix string) daml.Package {
		list := fields(1000, daml.Text)
		for i := range list {
			list[i].Name = prefix + list[i].Name
		}
		return daml.Package{Name: "p", Version: name, Modules: []daml.Module{{
			Name: "M", Types: []daml.DataType{daml.Record("T", list...)}, Templates: []daml.Template{{Name: "T"}},
		}}}
	}
	database := storePackages(t, version("1.0", "a"))
	reports, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	published := reports[0].Columns
	id, content := version("2.0", "b").Encode()
	_, err = open(t, database).Exec(t.Context(), "INSERT INTO indexer.package_contents (package_id, package_name, package_version, language, needs, content) VALUES ($1, 'p', '2.0', '2.1', '{}', $2)", id, content)
	require.NoError(t, err)
	for range 2 {
		reports, err = RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
		require.NoError(t, err)
		require.Equal(t, 1600, reports[0].Columns)
		require.Contains(t, reports[0].Changes, fmt.Sprintf("%d fields have no column: a view has at most 1600, published ones included; drop the view and create it again", published+1000-1600))
	}
	_, err = open(t, database).Exec(t.Context(), "SELECT * FROM typed.p_t")
	require.NoError(t, err)
}

// A view is made beside what has its name, and put back where somebody dropped it. What somebody put into its place
// stays.
func TestTypedViewsBesideOthers(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	template := func(name string) daml.Package {
		return daml.Package{Name: "p", Version: "1.0", Modules: []daml.Module{{
			Name: name, Types: []daml.DataType{daml.Record("T", field("x", daml.Text))}, Templates: []daml.Template{{Name: "T"}},
		}}}
	}
	database := storePackages(t, template("M"), template("N"), template("O"), template("P"))
	execute(t, database, "CREATE SCHEMA typed; CREATE TABLE typed.p_m_t (mine text)")
	var names []string
	make := func() (reports []ViewReport, err error) {
		return CreateViews(t.Context(), viewsOf(database), testLogger(t))
	}
	reports, err := make()
	require.NoError(t, err)
	for i, r := range reports {
		require.Regexp(t, []string{"^p_m_t_[0-9a-f]{8}$", "^p_n_t$", "^p_o_t$", "^p_p_t$"}[i], r.Name)
		names = append(names, "typed."+r.Name)
	}
	require.Equal(t, []string{"mine"}, texts(t, database, "SELECT attname FROM pg_attribute WHERE attrelid = 'typed.p_m_t'::regclass AND attnum > 0"))

	var problem *ledger.Problem
	for foreign, says := range map[string]string{
		"CREATE VIEW %s AS SELECT 1 AS other":                "somebody replaced it: drop " + names[0],
		"CREATE TABLE %s (other text)":                       "somebody replaced it: drop " + names[0],
		"CREATE MATERIALIZED VIEW %s AS SELECT 'x' AS other": "somebody replaced it: drop " + names[0],
	} {
		execute(t, database, "DROP VIEW "+names[0], fmt.Sprintf(foreign, names[0]))
		_, err := make()
		require.ErrorAs(t, err, &problem, foreign)
		require.Equal(t, says+", and make it again", problem.Do)
		_, err = RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
		require.ErrorAs(t, err, &problem, foreign)
		require.Equal(t, []string{"other"}, texts(t, database, "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0", names[0]))
		_, dropped := DropViews(t.Context(), viewsOf(database), testLogger(t))
		if !strings.Contains(foreign, "CREATE VIEW") {
			require.ErrorAs(t, dropped, &problem, "what is no view is not dropped")
			kind := strings.TrimSuffix(strings.TrimPrefix(foreign[:strings.Index(foreign, "%")], "CREATE "), " ")
			execute(t, database, "DROP "+kind+" "+names[0])
		}
		reports, err = make()
		require.NoError(t, err, "somebody dropped it, and it is there again")
		require.Len(t, reports, 4)
		require.Zero(t, count(t, database, names[0]))
	}
}

// Commands of several processes leave what one of them would.
func TestTypedViewsAreChangedConcurrently(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for commands that run at the same time")
	var packages []daml.Package
	for i := range 5 {
		packages = append(packages, daml.Package{Name: fmt.Sprintf("p%d", i), Version: "1.0", Modules: []daml.Module{{
			Name: "M", Types: []daml.DataType{daml.Record("T", fields(20, daml.Int64)...), daml.Record("Go")},
			Templates: []daml.Template{{Name: "T", Choices: []daml.Choice{{Name: "Go", Argument: daml.Local("M:Go"), Result: daml.Unit}}}},
		}}})
	}
	database := storePackages(t, packages...)
	round := func(commands ...func() error) {
		errs := make([]error, len(commands))
		var running sync.WaitGroup
		for i, command := range commands {
			running.Go(func() { errs[i] = command() })
		}
		running.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	create := func() error { _, err := CreateViews(t.Context(), viewsOf(database), testLogger(t)); return err }
	refresh := func() error {
		_, err := RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
		return err
	}
	drop := func() error { _, err := DropViews(t.Context(), viewsOf(database), testLogger(t)); return err }
	const made, there = "SELECT view_name FROM indexer.typed_views ORDER BY 1", "SELECT viewname::text FROM pg_views WHERE schemaname = 'typed' ORDER BY 1"
	for range 3 {
		round(create, create, refresh, refresh)
		require.Len(t, texts(t, database, made), 10)
		require.Equal(t, texts(t, database, made), texts(t, database, there))
		round(drop, refresh, refresh)
		require.Empty(t, texts(t, database, made), "nothing that was dropped is made again by a refresh")
		require.Empty(t, texts(t, database, there))
		round(create, drop, refresh)
		require.Equal(t, texts(t, database, made), texts(t, database, there))
		require.NoError(t, drop())
	}
}

// A package can have so many templates that all their views in one transaction would take more locks than there are: on
// a server for few connections and locks that are not many.
func TestTypedViewsOfManyTemplates(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "makes very many views")
	const n = 200
	database := throwaway.LocalServer(t, throwaway.Options{Settings: map[string]string{ // which has room for less than 300 locks
		"max_connections": "10", "max_locks_per_transaction": "16", "max_wal_senders": "0", "max_worker_processes": "0", "autovacuum_max_workers": "1",
	}}).URL("")
	require.NoError(t, migrate(t.Context(), database))
	module := daml.Module{Name: "M", Types: []daml.DataType{daml.Record("Go", field("x", daml.Text))}}
	for i := range n {
		name := fmt.Sprintf("T%d", i)
		module.Types = append(module.Types, daml.Record(name, field("owner", daml.Party), field("amount", daml.Numeric(10))))
		module.Templates = append(module.Templates, daml.Template{Name: name, Choices: []daml.Choice{{Name: "Go", Argument: daml.Local("M:Go"), Result: daml.Unit}}})
	}
	storePackagesIn(t, database, daml.Package{Name: "p", Version: "1.0", Modules: []daml.Module{module}})
	reports, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	require.Len(t, reports, 2*n)
	require.Equal(t, 2*n, count(t, database, "pg_views WHERE schemaname = 'typed'"))
	dropped, err := DropViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	require.Len(t, dropped, 2*n)
	require.Zero(t, count(t, database, "pg_views WHERE schemaname = 'typed'"))
}
