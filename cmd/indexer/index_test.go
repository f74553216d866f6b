package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

func TestIndex(t *testing.T) {
	slow.Long(t, "builds indexes while the indexer runs")
	l := grown(300)
	environ := map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": participantOf(t, l, sandbox.ServerOptions{}), "INDEXER_LISTEN": "",
	}
	_, stderr := printed(t, config.ExitProblem, environ, "index", "create", "Account", "owner")
	require.Contains(t, stderr, "no package is stored")
	stdout, _ := printed(t, config.ExitDone, environ, "index", "list")
	require.Equal(t, "no index was made\n", stdout)

	p := start(t, environ, "run")
	db := connect(t, environ["INDEXER_DATABASE_URL"])
	for known := false; !known; time.Sleep(20 * time.Millisecond) {
		require.NoError(t, db.QueryRow(t.Context(), `SELECT count(DISTINCT package_name) = 2 AND bool_and(types IS NOT DISTINCT FROM 'known') AND
			EXISTS (SELECT FROM ledger.created_events WHERE package_name = 'bank') FROM ledger.packages WHERE package_name IN ('bank', 'registry')`).Scan(&known))
	}
	stdout, _ = printed(t, config.ExitDone, environ, "index", "create", "bank:Bank.Account:Account", "owner")
	require.Regexp(t, `^made index created_field_owner_[0-9a-f]{12} of owner \(text\) of payloads: [0-9.]+ [kM]B in 1 partitions, in .*s\nit serves conditions with = and IN\n$`, stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "index", "create", "#bank:Bank.Account:Account", "owner")
	require.Regexp(t, `^owner \(text\) of payloads has the index created_field_owner_`, stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "index", "create", "bank:Bank.Account:Account", "limit")
	require.Contains(t, stdout, "it serves conditions with =, IN, <, >, BETWEEN\n")
	stdout, _ = printed(t, config.ExitDone, environ, "index", "create", "--of=lifetimes")
	require.Regexp(t, `^made index lifetimes_field_\S+ of lifetimes by template: .*\nit serves conditions on the template in ledger.active_at`, stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "index", "create", "--of=exercises")
	require.Regexp(t, `^made index exercised_field_\S+ of exercises by choice: .*\nit serves conditions on the choice\n$`, stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "index", "create", "--of=keys")
	require.Regexp(t, `^made index created_field_key_\S+ of contract keys: .*\nit serves ledger.created_with_key\n$`, stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "index", "list")
	require.Regexp(t, `(?m)^created_field_owner_\w+ +owner \(text\) of payloads +[0-9]+ kB +complete$`, stdout)
	require.Regexp(t, `(?m)^lifetimes_field_template_\w+ +lifetimes by template +[0-9]+ kB +complete$`, stdout)
	require.Regexp(t, `(?m)^created_field_key_\w+ +contract keys +[0-9]+ kB +complete$`, stdout)
	require.Equal(t, 6, strings.Count(stdout, "\n"))

	for says, args := range map[string][]string{
		"there is no template or interface \"Nothing\"": {"create", "Nothing", "owner"}, "there is no such field; there are owner": {"create", "bank:Bank.Account:Account", "ownr"},
		"is the name of several: bank-api:Bank.Api.HoldingV1:Holding, bank:Bank.Cash:Holding": {"create", "Holding", "owner"}, "there is no such field": {"create", "bank:Bank.Account:Account", `x"'); DROP TABLE created; --`},
		"name a template or an interface": {"create", "", "owner"}, "no index \"created_pkey\" was made: `indexer index list`": {"drop", "created_pkey"},
		"has no choice \"Settle\"; it has: ": {"create", "Account", "owner", "--choice=Settle"}, "a field, or say --of": {"create", "Account"},
		"name none with it": {"create", "Account", "owner", "--of=keys"}, "must be one of": {"create", "--of=everything"},
		"there is no such field; there are actor, amount, at": {"create", "Account", "owner", "--choice=Account_Statement"},
	} {
		_, stderr := printed(t, config.ExitUsage, environ, append([]string{"index"}, args...)...)
		require.Contains(t, stderr, says)
	}
	for _, name := range regexp.MustCompile(`(?m)^\w+_field_\w+`).FindAllString(stdout, -1) {
		stdout, _ = printed(t, config.ExitDone, environ, "index", "drop", name)
		require.Equal(t, "dropped index "+name+"\n", stdout)
	}
	stdout, _ = printed(t, config.ExitDone, environ, "index", "list")
	require.Equal(t, "no index was made\n", stdout)
	p.signal(syscall.SIGTERM)
	require.Equal(t, config.ExitDone, p.wait())
}
