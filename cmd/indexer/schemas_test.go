package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// Two participants' ledgers, and the updates of a network, lie side by side in one database, and every command works on
// the one that it is told.
func TestASecondLedgerInTheDatabase(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs the daemon, and command after command beside it")
	database := throwaway.Migrated(t, migrate)
	environ := map[string]string{"INDEXER_DATABASE_URL": database}
	ends := map[string]int64{}
	for name, c := range map[string]struct {
		updates int
		flags   []string
	}{
		"first":   {20, nil},
		"second":  {30, []string{"--tables-schema=second_tables", "--views-schema=second_views"}},
		"network": {40, []string{"--network"}},
	} {
		l := sandbox.NewLedger(sandbox.Options{Seed: uint64(c.updates)})
		l.Grow(c.updates)
		url := "--ledger-url=" + participantOf(t, l, sandbox.ServerOptions{})
		run := []string{"run", "--until-current", "--listen=", url}
		ends[name] = l.End()
		id, contract := l.UpdateID(l.Len()-1), ""
		if name == "network" {
			scan := sandbox.NewScan(l, sandbox.ScanOptions{})
			server := httptest.NewServer(scan)
			t.Cleanup(server.Close)
			url = "--scan-url=" + server.URL
			run = []string{"run", "--until-current", "--listen=", "--scan-history=updates", url}
			updates := scan.NetworkTruth()["updates"]
			id, contract = fmt.Sprint(updates[len(updates)-1]["update_id"]), fmt.Sprint(scan.NetworkTruth()["created_events"][0]["contract_id"])
			end, err := updates[len(updates)-1]["ledger_offset"].(json.Number).Int64()
			require.NoError(t, err)
			ends[name] = end
		}
		code, _, stderr := command(t, environ, append([]string{"migrate"}, c.flags...)...)
		require.Zero(t, code, stderr)
		_, _, stderr = command(t, environ, append([]string{"reset", "--to-offset=5"}, c.flags...)...)
		require.Equal(t, name == "network", strings.Contains(stderr, "`indexer run` or `backfill network`"), stderr)
		for _, args := range [][]string{
			append(run, "--migrate=check"), {"verify", "--all", url}, {"check", url}, {"reset", "--to-offset=5"},
		} {
			code, stdout, stderr := command(t, environ, append(args, c.flags...)...)
			require.Equal(t, config.ExitDone, code, "%s: %s: %s%s", name, args, stdout, stderr)
		}
		code, stdout, stderr := command(t, environ, append([]string{"status"}, c.flags...)...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, fmt.Sprint(ends[name]))
		code, stdout, stderr = command(t, environ, append([]string{"update", id, url}, c.flags...)...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "stored as the ledger shows it")
		if contract != "" {
			code, stdout, stderr = command(t, environ, append([]string{"contract", contract}, c.flags...)...)
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, "a Scan service can't be asked for a contract")
			require.Contains(t, stdout, contract)
			code, _, stderr = command(t, environ, append([]string{"update", id}, c.flags...)...)
			require.Equal(t, config.ExitUsage, code)
			require.Contains(t, stderr, "--scan-url is missing")
		}
	}
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	var one, other, network int64
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT ledger.latest_offset(), second_views.latest_offset(), network.latest_offset()").Scan(&one, &other, &network))
	require.NotEqual(t, one, other)
	require.Equal(t, ends, map[string]int64{"first": one, "second": other, "network": network})
	for _, flags := range [][]string{
		{"--tables-schema=second_tables"}, {"--views-schema=second_views"}, {"--tables-schema=third_tables", "--views-schema=third_views"},
	} {
		code, _, stderr := command(t, environ, append([]string{"status"}, flags...)...)
		require.Equal(t, config.ExitProblem, code, stderr)
	}
	for _, flag := range []string{"--tables-schema=Second", "--views-schema=indexer", "--views-schema=pg_catalog"} {
		code, _, stderr := command(t, environ, "migrate", flag)
		require.Equal(t, config.ExitUsage, code, stderr)
		require.Contains(t, stderr, "--tables-schema and --views-schema")
	}
}
