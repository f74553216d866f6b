package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// commandsOf are the indented lines of a section of the runbook, those of SQL joined up to their semicolons.
func commandsOf(t *testing.T, heading string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if command, is := strings.CutPrefix(line, "       "); is {
			command, _, _ = strings.Cut(strings.TrimSpace(command), "   #")
			lines = append(lines, command)
		}
	}
	return lines
}

// query returns the rows of a query as texts.
func query(t *testing.T, database, statement string) (rows []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	found, err := conn.Query(t.Context(), "SELECT x::text FROM ("+statement+") x ORDER BY 1")
	require.NoError(t, err, statement)
	rows, err = pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err, statement)
	return rows
}

// A database that began in the middle of a ledger is replaced by one that begins where the ledger does, by the steps of
// the runbook as they are written: who reads it sees what he saw, and the older updates.
func TestAnotherPastByTheRunbook(t *testing.T) {
	t.Parallel()
	slow.Long(t, "starts a server, and indexes a ledger twice")
	l := grown(300)
	ledgerURL := participantOf(t, l, sandbox.ServerOptions{})
	server := throwaway.LocalServer(t, throwaway.Options{Settings: map[string]string{"wal_level": "logical"}})
	administrator := connect(t, server.URL("postgres"))
	execute := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			_, err := administrator.Exec(t.Context(), statement)
			require.NoError(t, err, statement)
		}
	}
	as := func(role, database string) string { return server.URL(database) + "&user=" + role }
	execute("CREATE ROLE indexer LOGIN", "CREATE ROLE analyst LOGIN", "CREATE ROLE customer LOGIN",
		"CREATE DATABASE ledger OWNER indexer")
	old := as("indexer", "ledger")
	environ := map[string]string{"INDEXER_DATABASE_URL": old, "INDEXER_LEDGER_URL": ledgerURL, "INDEXER_LISTEN": "",
		"INDEXER_INTERFACES": strings.Join(sandbox.InterfaceNames(), ",")}
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, environ, args...)
		require.Equal(t, config.ExitDone, code, "%v: %s%s", args, stdout, stderr)
		return stdout
	}

	floor := l.Offset(l.Len() / 2)
	for i := l.Len() / 2; l.InFlight(floor); i++ {
		floor = l.Offset(i)
	}
	_, err := app.RunBackfill(t.Context(), app.Backfill{
		Database: config.Database{DatabaseURL: old}, Ledger: config.Ledger{LedgerURL: ledgerURL},
		Scope: config.Scope{Shape: "ledger-effects", Contracts: config.Contracts{Interfaces: sandbox.InterfaceNames()},
			Reassignments: true, Topology: true},
		Snapshot: config.Snapshot{AtOffset: &floor},
	}, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	run("run", "--until-current")
	party := query(t, old, "SELECT signatories[1] FROM ledger.created_events ORDER BY ledger_offset DESC LIMIT 1")[0]
	party = strings.Trim(party, "()\"")
	doomed := strings.Trim(query(t, old, "SELECT contract_id FROM ledger.archived_events JOIN ledger.created_events c USING (contract_id) "+
		"WHERE c.payload IS NOT NULL LIMIT 1")[0], "()\"")
	run("redact", "--contract", doomed, "--reason", "request 17", "--apply")
	run("views", "create", "--all")
	run("views", "create", "--template", "Entry", "--schema", "mart")
	// A view that was made when a field had another name keeps that.
	_, err = connect(t, old).Exec(t.Context(), `UPDATE indexer.typed_views SET columns = replace(columns::text, '"name": "note"', '"name": "remark"')::jsonb
		WHERE view_schema = 'mart' AND view_name = 'registry_entry'`)
	require.NoError(t, err)
	run("index", "create", "Account", "owner", "--anyway")
	run("index", "create", "--of", "keys")
	run("index", "create", "--of", "lifetimes")
	run("pqs", "enable")
	run("publication", "enable")
	run("grant", "analyst", "--all-parties")
	run("grant", "customer", "--parties", party)
	questions := map[string][]string{}
	for role, list := range map[string][]string{
		"analyst": {"SELECT * FROM typed.bank_account WHERE ledger_offset > %", "SELECT contract_id, name, payload FROM mart.registry_entry WHERE active",
			"SELECT contract_id, payload FROM pqs.active()", "SELECT * FROM ledger.holdings", "SELECT kind, id, reason FROM ledger.redactions"},
		"customer": {"SELECT contract_id FROM typed.bank_account WHERE active", "SELECT contract_id, payload FROM ledger.active_contracts"},
	} {
		for _, question := range list {
			questions[role+"\x00"+strings.ReplaceAll(question, "%", "(SELECT "+fmt.Sprint(floor)+"::bigint)")] = nil
		}
	}
	ask := func(question string) []string {
		role, statement, _ := strings.Cut(question, "\x00")
		return query(t, as(role, "ledger"), statement)
	}
	lists := func() []string { // what hangs on it, without when it was made
		list := query(t, old, "SELECT r.reader, r.all_parties, p.party FROM indexer.readers r LEFT JOIN indexer.reader_parties p USING (reader)")
		list = append(list, query(t, old, "SELECT * FROM ledger.typed_views")...)
		list = append(list, query(t, old, "SELECT pubname FROM pg_publication")...)
		return append(list, query(t, old, "SELECT c.relname, c.relkind, obj_description(c.oid) FROM pg_class c "+
			"WHERE c.relname LIKE '%\\_field\\_%' AND c.relkind = 'I'")...)
	}
	before := lists()

	for _, line := range commandsOf(t, "Another past") {
		line = strings.ReplaceAll(line, "postgres://indexer@db.example.com/ledger", "INDEXER:ledger")
		switch words := strings.Fields(line); words[0] {
		case "export":
			name, value, _ := strings.Cut(words[1], "=")
			environ[name] = as("indexer", strings.TrimPrefix(value, "INDEXER:"))
		case "indexer":
			for i, word := range words {
				if database, is := strings.CutPrefix(word, "INDEXER:"); is {
					words[i] = as("indexer", database)
				} else if word == "''" {
					words[i] = ""
				}
			}
			if words[1] == "verify" { // the daemon of the old database goes on
				l.Grow(20)
				filled := environ["INDEXER_DATABASE_URL"]
				environ["INDEXER_DATABASE_URL"] = old
				run("run", "--until-current")
				for question := range questions {
					questions[question] = ask(question)
					require.NotEmpty(t, questions[question], question)
				}
				environ["INDEXER_DATABASE_URL"] = filled
			}
			said := run(words[1:]...)
			if words[1] == "copy-setup" {
				require.Regexp(t, `(?s)^redaction contract `+doomed+` made\npqs pqs made\nindex .*\ngrant customer made\n$`, said)
				require.NotContains(t, said, "was there")
				require.Equal(t, strings.ReplaceAll(said, " made\n", " was there\n"), run(words[1:]...))
			}
		default:
			execute(line)
		}
	}

	environ["INDEXER_DATABASE_URL"] = old
	run("run", "--until-current")
	require.Equal(t, "(0)", query(t, old, "SELECT ledger.oldest_offset()")[0])
	require.Equal(t, before, lists())
	require.NotEmpty(t, query(t, old, "SELECT remark FROM mart.registry_entry"))
	for question, answer := range questions {
		now := ask(question)
		for _, row := range answer {
			require.Contains(t, now, row, question)
		}
	}
}

// What can't be made is named with the reason, and the rest is made; a second time it stays.
func TestCopySetupSaysWhatItCanNot(t *testing.T) {
	t.Parallel()
	slow.Long(t, "runs command after command")
	environ := verifiable(t)
	from, to := environ["INDEXER_DATABASE_URL"], throwaway.Migrated(t, migrate)
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, environ, args...)
		require.Equal(t, want, code, "%s: %s%s", args, stdout, stderr)
		return stdout + stderr
	}
	owner := connect(t, from)
	reader := newRole(t, from, "_reader", "")
	var contract string
	require.NoError(t, owner.QueryRow(t.Context(), "SELECT contract_id FROM ledger.archived_events LIMIT 1").Scan(&contract))
	run(0, "redact", "--contract", contract, "--reason", "request 17", "--apply")
	run(0, "pqs", "enable")
	dar := filepath.Join(t.TempDir(), "packages.dar")
	require.NoError(t, os.WriteFile(dar, sandbox.Archive(), 0o600))
	run(0, "views", "create", "--template", "Entry", "--dar", dar)
	run(0, "index", "create", "Entry", "name", "--anyway", "--dar", dar)
	run(0, "grant", reader, "--parties", "alice::1220", "--anyway")
	_, err := owner.Exec(t.Context(), "INSERT INTO indexer.readers (reader, all_parties, history) VALUES ('nobody\\of this', true, false)")
	require.NoError(t, err)

	run(config.ExitUsage, "copy-setup", "--from-database-url", from)
	environ["INDEXER_DATABASE_URL"] = to
	other := connect(t, to)
	_, err = other.Exec(t.Context(), "INSERT INTO indexer.participant (participant_id) VALUES ('another::1220')")
	require.NoError(t, err)
	require.Contains(t, run(config.ExitProblem, "copy-setup", "--from-database-url", from), "holds the ledger of")
	_, err = other.Exec(t.Context(), "DELETE FROM indexer.participant")
	require.NoError(t, err)
	run(config.ExitUsage, "copy-setup")
	for _, state := range []string{"made", "was there"} {
		done := run(config.ExitFailed, "copy-setup", "--from-database-url", from)
		require.Regexp(t, `(?m)^redaction contract `+contract+` can't be made: .*knows no contract`, done)
		require.Regexp(t, `(?m)^view typed.registry_entry, of template registry:Registry.Entry:Entry can't be made: `, done)
		require.Regexp(t, `(?m)^index created_field_name_\w+ `+state+`$`, done)
		require.Regexp(t, `(?m)^pqs pqs `+state+`$`, done)
		require.Regexp(t, `(?m)^grant `+reader+` can't be made: a redaction before it can't be made`, done)
		require.Regexp(t, `(?m)^grant nobody\\\\of this can't be made: a redaction before it can't be made`, done)
		require.Contains(t, done, "6 of 8 parts can't be made")
	}
	require.Empty(t, query(t, to, "SELECT reader FROM indexer.readers"))

	target := connect(t, to)
	execute := func(statement string) {
		t.Helper()
		_, err := target.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	execute("CREATE SCHEMA typed CREATE VIEW registry_entry AS SELECT 1 AS x")
	execute("INSERT INTO indexer.typed_views VALUES ('typed', 'registry_entry', 'template', 'registry', 'Registry', 'Entry', '', '[]')")
	const taken = `(?m)^view typed.registry_entry, .* can't be made: view typed.registry_entry there is of `
	require.Regexp(t, taken+"template .*, or has other columns", run(config.ExitFailed, "copy-setup", "--from-database-url", from))
	execute("UPDATE indexer.typed_views SET kind = 'choice', choice = 'Other'")
	require.Regexp(t, taken+"choice .*Other", run(config.ExitFailed, "copy-setup", "--from-database-url", from))

	// Grants don't need what views do.
	_, err = owner.Exec(t.Context(), "DELETE FROM indexer.redactions")
	require.NoError(t, err)
	execute("ALTER TABLE indexer.package_contents RENAME package_version TO damaged")
	done := run(config.ExitFailed, "copy-setup", "--from-database-url", from)
	require.Contains(t, done, "the typed views can't be made: list the stored packages")
	require.Contains(t, done, "grant "+reader+" made\n")
	require.Regexp(t, `(?m)^grant nobody\\\\of this can't be made: .*CREATE ROLE "nobody\\of this"`, done)

	// Nothing is said of what an operator stops.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	parts := 0
	err = app.CopySetup(ctx, app.SetupCopy{Database: config.Database{DatabaseURL: to}, FromDatabase: config.FromDatabase{FromDatabaseURL: from}},
		slog.New(slog.DiscardHandler), func(app.SetupPart) { parts++; stop() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, parts)

	execute("DROP OWNED BY " + pgx.Identifier{reader}.Sanitize()) // so that it can be dropped
}
