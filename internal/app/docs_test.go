package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// mayBeEmpty are the beginnings of examples that answer nothing where all is well.
var mayBeEmpty = []string{
	"SELECT a.ledger_offset, a.record_time, c.entity_name, c.created_at",
	"SELECT c.contract_id, convert_from(x.exact", "SELECT a.synchronizer_id, a.package_name, count(*)", "SELECT stream, from_exclusive",
	"SELECT rewrite, stream, from_exclusive", "LISTEN ledger",
	"SELECT synchronizer_id, package_name, package_version, valid_from, valid_until\nFROM (SELECT DISTINCT ON", // as of a minute ago
}

// section is the text of a document between two lines, or to its end.
func section(t *testing.T, path, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), from)
	require.True(t, found, "%s has no %q", path, from)
	part, _, found := strings.Cut(rest, to)
	require.True(t, found, "%s has no %q after %q", path, to, from)
	return part
}

// statements are the SQL that stands indented in a document.
func statements(text string) (list []string) {
	var code strings.Builder
	for line := range strings.Lines(text) {
		if statement, indented := strings.CutPrefix(line, "    "); indented {
			comment := strings.Index(statement, "--")
			if comment >= 0 {
				statement = statement[:comment] + "\n"
			}
			code.WriteString(strings.ReplaceAll(statement, `\gset`, ";"))
		}
	}
	for statement := range strings.SplitSeq(code.String(), ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			list = append(list, statement)
		}
	}
	return list
}

// reader makes the role that docs/operations.md describes and returns a connection of it.
func reader(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	role, as := throwaway.Login(t, database, "")
	owner, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer owner.Close(context.WithoutCancel(t.Context()))
	recipe := statements(section(t, "../../docs/operations.md", "Analysts get a role", "A session can set"))
	require.Contains(t, recipe[0], "CREATE ROLE analyst LOGIN")
	db, err := store.Open(store.Config{URL: database})
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Grant(t.Context(), store.Reader{Role: role, AllParties: true}) // as the command beside these statements does
	require.NoError(t, err)
	for _, statement := range recipe[1:] {
		statement = strings.ReplaceAll(statement, "analyst", pgx.Identifier{role}.Sanitize())
		_, err := owner.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	conn, err := pgx.Connect(t.Context(), as)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// migrateWithoutPublic makes the schemas in a database in which PUBLIC may use no function, type or schema.
func migrateWithoutPublic(ctx context.Context, database string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `ALTER DEFAULT PRIVILEGES REVOKE ALL ON ROUTINES FROM PUBLIC;
		ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC`)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	return migrate(ctx, database)
}

// begunInTheMiddle returns a ledger, and a database that is indexed from a snapshot of its middle on, with everything
// that the examples ask for.
func begunInTheMiddle(t *testing.T) (l *sandbox.Ledger, database string, floor int64) {
	t.Helper()
	l = sandbox.NewLedger(sandbox.Options{Seed: 51})
	l.Grow(1500)
	floor = quietOffset(t, l)
	return l, throwaway.Prepared(t, migrateWithoutPublic, "begun in the middle", func(ctx context.Context, database string) error {
		participant := httptest.NewServer(sandbox.NewServer(l, sandbox.ServerOptions{}))
		defer participant.Close()
		scan := httptest.NewServer(sandbox.NewScan(l, sandbox.ScanOptions{BalanceChanges: true}))
		defer scan.Close()
		logger, cfg := slog.New(slog.DiscardHandler), indexerFor(database, participant.URL, effects())
		cfg.ScanURL, cfg.PackagesInterval = []string{scan.URL}, time.Minute
		if _, err := RunBackfill(ctx, backfillFor(database, participant.URL, effects(), floor), logger, nil); err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, database)
		if err != nil {
			return err
		}
		for known := false; err == nil && !known; { // packages are read beside the stream
			if err = RunIndexer(ctx, cfg, logger); err == nil {
				err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM ledger.vetted_packages)").Scan(&known)
			}
		}
		return errors.Join(err, conn.Close(ctx))
	}), floor
}

// Every example of the documents runs as the role that they describe, and answers something.
func TestExamplesOfTheDocuments(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs the examples of the documents")
	l, database, floor := begunInTheMiddle(t)
	conn := reader(t, database)
	ctx := t.Context()
	var contract, party, event, update string
	require.NoError(t, conn.QueryRow(ctx, "SELECT contract_id FROM archived_events ORDER BY ledger_offset DESC LIMIT 1").Scan(&contract))
	require.NoError(t, conn.QueryRow(ctx, `SELECT p.party, p.event_id, u.update_id FROM updates u JOIN transfers t USING (update_id) JOIN party_transfers p USING (seq)
		JOIN holdings h ON h.owner = p.party WHERE p.direction = 'received' AND reported_balance_at(p.party, 40) IS NOT NULL ORDER BY t.seq LIMIT 1`).Scan(&party, &event, &update))
	values := strings.NewReplacer(":'contract'", "'"+contract+"'", ":'party'", "'"+party+"'", "alice::1220...", party, ":'event'", "'"+event+"'",
		":'update'", "'"+update+"'", ":'dso'", "'"+l.DSO()+"'", "::n", "::n", ":n", fmt.Sprint(floor), ":m", fmt.Sprint(l.End()),
		"network.", "ledger.") // both have the same relations
	_, as := limitedRole(t, database, "_limited", store.Reader{Parties: []string{party}, History: true})
	limited, err := pgx.Connect(ctx, as)
	require.NoError(t, err)
	defer limited.Close(context.WithoutCancel(ctx))
	_, err = limited.Exec(ctx, "SET search_path = ledger")
	require.NoError(t, err)
	run := func(query string) (answers int) {
		_, err := limited.Exec(ctx, values.Replace(query))
		require.NoError(t, err, "as a limited role: %s", query)
		rows, err := conn.Query(ctx, values.Replace(query))
		require.NoError(t, err, query)
		for rows.Next() {
			answers++
		}
		require.NoError(t, rows.Err(), query)
		return answers
	}
	examples := append(statements(section(t, "../../docs/sql.md", "\n## Contracts from before the start\n", "\n## What is fast\n")),
		statements(section(t, "../../README.md", "\n## The first queries\n", "\nEvery relation"))...)
	require.Greater(t, len(examples), 20)
	for _, query := range examples {
		require.NotRegexp(t, regexp.MustCompile(`:'?[a-z]+`), regexp.MustCompile(`::[a-z]+|'[^']*'`).ReplaceAllString(values.Replace(query), ""), "a variable that the test does not know")
		answers, empty := run(query), false
		for _, beginning := range mayBeEmpty {
			empty = empty || strings.HasPrefix(query, beginning)
		}
		if !empty {
			require.Positive(t, answers, query)
		}
	}

	_, err = conn.Exec(ctx, "CREATE TEMPORARY TABLE mine ()")
	var refusal *pgconn.PgError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, "25006", refusal.Code, "the role reads only")
}

// What was active at an offset is what the model says, and an error where that is not known. Keys hold with rows of a
// snapshot, too.
func TestThePastOfTheDocuments(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "indexes a ledger, and runs queries of the documents")
	l, database, floor := begunInTheMiddle(t)
	conn := reader(t, database)
	(&documented{conn: conn}).keysHold(t)
	query := recipeOf(t, "What was active at an offset, by template?")
	at := func(offset int64) (map[string]int64, error) {
		rows, err := conn.Query(t.Context(), strings.ReplaceAll(query, ":n", fmt.Sprint(offset)))
		require.NoError(t, err)
		got := map[string]int64{}
		var packageName, module, entity string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&packageName, &module, &entity, &n}, func() error {
			got[packageName+":"+module+":"+entity] = n
			return nil
		})
		return got, err
	}
	for _, offset := range []int64{floor, l.Offset(1200), l.End()} {
		want := map[string]int64{}
		for _, r := range l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects, Interfaces: sandbox.InterfaceNames()}, offset)["active_contracts"] {
			want[fmt.Sprint(r["package_name"], ":", r["module_name"], ":", r["entity_name"])]++
		}
		got, err := at(offset)
		require.NoError(t, err)
		require.Equal(t, want, got, "at %d", offset)
	}
	for _, offset := range []int64{floor - 1, l.End() + 1} {
		_, err := at(offset)
		require.ErrorContains(t, err, fmt.Sprint("offset ", offset))
	}
}

// Contracts of the snapshot have lived, too.
func TestLifetimesOfTheCookbook(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, database, _ := begunInTheMiddle(t)
	conn := reader(t, database)
	read := func(query string) (n int64) {
		t.Helper()
		require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n), query)
		return n
	}
	require.Positive(t, read("SELECT count(*) FROM archived_events a JOIN created_events c USING (contract_id) WHERE c.origin = 'snapshot'"))
	require.Equal(t, read(`SELECT count(DISTINCT contract_id) FROM archived_events a WHERE acs_delta IS NOT FALSE
		AND EXISTS (SELECT FROM created_events c WHERE c.contract_id = a.contract_id AND c.origin <> 'assignment')`),
		read("SELECT sum(a.ended)::bigint FROM ("+recipeOf(t, "How long do contracts live, by template?")+") a"))
}

// Every section of docs/interface.md that the code names is one.
func TestCitationsOfTheInterface(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/interface.md")
	require.NoError(t, err)
	headings := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(document), -1) {
		headings[heading[1]] = true
		if number, _, isEndpoint := strings.Cut(heading[1], ":"); isEndpoint {
			headings[strings.ToLower(number)] = true
		}
	}
	citation := regexp.MustCompile(`interface\.md[,(\s/]+(endpoint \d|"[^"]+")`)
	cited := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, file fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if !bytes.Contains(text, []byte("interface.md")) {
			return nil // before what takes long
		}
		for _, section := range citation.FindAllStringSubmatch(regexp.MustCompile(`\n\s*// ?`).ReplaceAllString(string(text), " "), -1) {
			cited++
			require.True(t, headings[strings.Trim(section[1], `"`)], "%s cites section %s, which docs/interface.md does not have", path, section[1])
		}
		return nil
	}))
	require.Positive(t, cited)
}

// Every link of a document leads to a file that is there, and to a heading of it.
func TestLinksOfTheDocuments(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInAnchors := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	known := map[string][]string{}
	anchors := func(path string) (list []string) {
		if list, found := known[path]; found {
			return list
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if heading, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && line[0] == '#' {
				list = append(list, strings.ReplaceAll(strings.ToLower(notInAnchors.ReplaceAllString(strings.TrimSpace(heading), "")), " ", "-"))
			}
		}
		known[path] = list
		return list
	}
	links := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, file fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			links++
			target, anchor, _ := strings.Cut(found[1], "#")
			if target = filepath.Join(filepath.Dir(path), target); strings.HasPrefix(found[1], "#") {
				target = path
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", path, found[1])
			if anchor != "" {
				require.Contains(t, anchors(target), anchor, "%s links to %s", path, found[1])
			}
		}
		return nil
	}))
	require.Greater(t, links, 100)
}

// Every test that a document names is one. A name that ends in … is the beginning of some.
func TestTestsOfTheDocuments(t *testing.T) {
	t.Parallel()
	var documents, tests strings.Builder
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		into := &tests
		switch {
		case err != nil:
			return err
		case filepath.Ext(path) == ".md":
			into = &documents
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		into.Write(text)
		return err
	}))
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+…?`).FindAllString(documents.String(), -1)
	require.Greater(t, len(named), 100)
	for _, name := range named {
		declared := "\nfunc " + name + "("
		if beginning, several := strings.CutSuffix(name, "…"); several {
			declared = "\nfunc " + beginning
		}
		require.True(t, strings.Contains(tests.String(), declared), "documents name %s, which no file has", name)
	}
}
