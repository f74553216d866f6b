package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
)

// newRole makes a role with a hostile name, with options of CREATE ROLE.
func newRole(t *testing.T, database, name, options string) string {
	t.Helper()
	owner := connect(t, database)
	var role string
	require.NoError(t, owner.QueryRow(t.Context(), "SELECT current_database() || $1", name).Scan(&role))
	quoted := pgx.Identifier{role}.Sanitize()
	_, err := owner.Exec(t.Context(), "CREATE ROLE "+quoted+" "+options)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, database)
		require.NoError(t, err)
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "DROP OWNED BY "+quoted+"; DROP ROLE "+quoted)
		require.NoError(t, err)
	})
	return role
}

// as runs a query as a role, and returns the only value.
func as(t *testing.T, database, role, query string) (value string, err error) {
	t.Helper()
	conn := connect(t, database)
	_, err = conn.Exec(t.Context(), "SET ROLE "+pgx.Identifier{role}.Sanitize())
	require.NoError(t, err)
	err = conn.QueryRow(t.Context(), query).Scan(&value)
	return value, err
}

// Roles are let read, limited, listed, and read nothing when it is taken away; what is made later they read too. Where
// nobody is limited, no table has a policy.
func TestGrantAndRevoke(t *testing.T) {
	t.Parallel()
	slow.Long(t, "runs command after command")
	environ := verifiable(t)
	database := environ["INDEXER_DATABASE_URL"]
	owner := connect(t, database)
	var party, all string
	require.NoError(t, owner.QueryRow(t.Context(), "SELECT signatories[1], (SELECT count(*)::text FROM ledger.created_events) FROM ledger.created_events LIMIT 1").Scan(&party, &all))
	policies := func() (n int) {
		require.NoError(t, owner.QueryRow(t.Context(), "SELECT count(*) FROM pg_policy").Scan(&n))
		return n
	}
	limited, analyst := newRole(t, database, `_"limi'ted; DROP`, ""), newRole(t, database, "_analyst", "")
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, environ, args...)
		require.Equal(t, want, code, "%s: %s", args, stderr)
		return stdout + stderr
	}
	require.Contains(t, run(0, "grants"), "nothing was granted")
	require.Contains(t, run(0, "grant", analyst, "--all-parties"), "sees everything")
	require.Zero(t, policies(), "nobody is limited")
	count := "SELECT count(*)::text FROM ledger.created_events"
	got, err := as(t, database, analyst, count)
	require.NoError(t, err)
	require.Equal(t, all, got)
	_, err = as(t, database, limited, count)
	require.ErrorContains(t, err, "permission denied")

	require.Contains(t, run(0, "grant", limited, "--parties", party+",nobody::00", "--anyway"), "nothing that is stored names party nobody::00")
	require.Positive(t, policies())
	var want string
	require.NoError(t, owner.QueryRow(t.Context(), "SELECT count(*)::text FROM ledger.created_events WHERE $1 = ANY (signatories || observers || witness_parties)", party).Scan(&want))
	got, err = as(t, database, limited, count)
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = as(t, database, analyst, count)
	require.NoError(t, err)
	require.Equal(t, all, got, "who sees everything still does")
	list := run(0, "grants")
	require.Contains(t, list, party)
	require.Contains(t, list, "nobody::00")
	require.Contains(t, list, "everything")

	// A name that the ledger has not shown is refused, and what was granted stays.
	hint, _, _ := strings.Cut(party, "::")
	for _, misspelt := range []string{hint, hint + "::1220", hint + "x", strings.ToUpper(hint)} {
		said := run(config.ExitProblem, "grant", limited, "--parties", misspelt)
		require.Contains(t, said, "nothing that is stored names party "+strconv.Quote(misspelt)+":")
		require.Contains(t, said, party)
		require.Contains(t, said, "--anyway")
	}
	require.Contains(t, run(config.ExitProblem, "grant", limited, "--parties", "zzzzzzzz"), "names are whole")
	require.Contains(t, run(config.ExitProblem, "grant", limited, "--parties", "zzzzzzzz,yyyyyyyy"),
		`names any of the parties "yyyyyyyy", "zzzzzzzz": the role would see nothing of them`)
	got, err = as(t, database, limited, count)
	require.NoError(t, err)
	require.Equal(t, want, got)

	// The schema of the Participant Query Store is made later.
	run(0, "pqs", "enable")
	run(0, "pqs", "enable")
	got, err = as(t, database, limited, "SELECT (count(*) < (SELECT "+all+"))::text FROM pqs.creates()")
	require.NoError(t, err)
	require.Equal(t, "true", got)

	// Who becomes a member of a role that sees everything is told.
	_, err = owner.Exec(t.Context(), fmt.Sprintf("GRANT %s TO %s", pgx.Identifier{analyst}.Sanitize(), pgx.Identifier{limited}.Sanitize()))
	require.NoError(t, err)
	require.Contains(t, run(0, "grants"), "may read by a grant of its own")
	require.Contains(t, run(config.ExitProblem, "grant", limited, "--parties", party), "it is a member of")
	_, err = owner.Exec(t.Context(), fmt.Sprintf("REVOKE %s FROM %s", pgx.Identifier{analyst}.Sanitize(), pgx.Identifier{limited}.Sanitize()))
	require.NoError(t, err)

	require.Contains(t, run(0, "revoke", limited), "reads nothing any more")
	require.Contains(t, run(0, "revoke", limited), "nothing was granted")
	require.Zero(t, policies())
	_, err = as(t, database, limited, count)
	require.ErrorContains(t, err, "permission denied")
	got, err = as(t, database, analyst, count)
	require.NoError(t, err)
	require.Equal(t, all, got)
	run(0, "revoke", analyst)
	_, err = as(t, database, analyst, "SELECT count(*)::text FROM pqs.creates()")
	require.ErrorContains(t, err, "permission denied")
}

// A role that sees more by other rights is refused, with the reason.
func TestGrantRefusesWhoCannotBeLimited(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	database := throwaway.Migrated(t, migrate)
	environ := map[string]string{"INDEXER_DATABASE_URL": database}
	owner := connect(t, database)
	for n, refused := range []struct{ options, rights, says string }{
		{"BYPASSRLS", "", "has BYPASSRLS"},
		{"CREATEROLE", "", "has CREATEROLE"},
		{"REPLICATION", "", "has REPLICATION"},
		{"SUPERUSER", "", "is a superuser"},
		{"IN ROLE pg_read_all_data", "", "pg_read_all_data"},
		{"", "GRANT USAGE ON SCHEMA indexer TO %s", "may use schema indexer"},
		{"", "GRANT TRIGGER ON indexer.created TO %s", "has rights to "},
		{"", "GRANT SELECT ON indexer.scopes TO %s", "has rights to "},
	} {
		role := newRole(t, database, fmt.Sprint("_refused", n), refused.options)
		if refused.rights != "" {
			_, err := owner.Exec(t.Context(), fmt.Sprintf(refused.rights, pgx.Identifier{role}.Sanitize()))
			require.NoError(t, err)
		}
		code, _, stderr := command(t, environ, "grant", role, "--parties", "alice::00")
		require.Equal(t, config.ExitProblem, code, stderr)
		require.Contains(t, stderr, refused.says)
	}
	for _, wrong := range [][]string{
		{"grant", "x"}, {"grant", "x", "--parties", ""}, {"grant", "x", "--parties", "a", "--all-parties"}, {"grant", "x", "--all-parties", "--with-transaction-history"},
		{"grant", "x", "--parties", strings.Repeat("x", 1001)},
	} {
		code, _, stderr := command(t, environ, wrong...)
		require.Equal(t, config.ExitUsage, code, "%s: %s", wrong, stderr)
	}
	code, _, stderr := command(t, environ, "grant", `no"body`, "--parties", "alice::00")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, `CREATE ROLE "no""body" LOGIN`)
}

// Who reads by SQL and runs a command is told that it is not for him, and not to have more granted.
func TestReadersAskInSQL(t *testing.T) {
	t.Parallel()
	database := throwaway.Migrated(t, migrate)
	role, reader := throwaway.Login(t, database, "")
	readers := map[string]string{"INDEXER_DATABASE_URL": reader, "INDEXER_LEDGER_URL": "http://127.0.0.1:1", "INDEXER_LISTEN": ""}
	code, _, stderr := command(t, readers, "status")
	require.Equal(t, config.ExitProblem, code, stderr)
	require.Contains(t, stderr, "What to do: grant what is missing")
	for _, grant := range [][]string{{"--all-parties"}, {"--parties", "alice::00", "--anyway"}} {
		code, _, stderr = command(t, map[string]string{"INDEXER_DATABASE_URL": database}, append([]string{"grant", role}, grant...)...)
		require.Equal(t, config.ExitDone, code, stderr)
		for _, run := range []string{"status", "verify", "run"} {
			code, _, stderr = command(t, readers, run)
			require.Equal(t, config.ExitProblem, code, stderr)
			require.Contains(t, stderr, "database user "+role+" reads schema ledger")
			require.Contains(t, stderr, "What to do: ask in SQL (docs/sql.md), or run the command as the role that runs the indexer, or one with its rights.\n")
		}
	}
}
