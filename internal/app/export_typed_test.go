package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/store"
)

// Typed views are exported with their types, also of ranges that were exported before they were made, and not of those
// that were pruned.
func TestTypedViewsAreExported(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, _, _ := typedWorld.indexed(t)
	cfg := Export{Database: config.Database{DatabaseURL: database}, To: t.TempDir(), Options: export.Options{Updates: 150}}
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	ranges := len(wrote)
	require.Greater(t, ranges, 2)
	end := wrote[ranges-1].To

	before := filesOf(t, cfg.To)
	stays := func() {
		t.Helper()
		after := filesOf(t, cfg.To)
		for name, content := range before {
			if !strings.HasPrefix(name, "manifests/") {
				require.True(t, after[name] == content, "%s stays", name)
			}
		}
	}
	_, err = CreateViews(t.Context(), viewsOf(database, "bank:Bank.Account:Account", "Agreement", "splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"), testLogger(t))
	require.NoError(t, err)
	again, err := exported(t, cfg)
	require.NoError(t, err)
	require.Len(t, again, ranges)
	stays()
	rows := requireExported(t, database, "ledger", cfg.To, end)
	for _, view := range []string{"typed_bank_account", "typed_trade_agreement", "typed_splice_api_token_holding_v1_holding"} {
		require.Positive(t, rows[view], view)
	}
	requireTables(t, cfg, "ledger")
	require.Equal(t, []string{"DECIMAL(38,10)\tDATE"}, duck(t, fmt.Sprintf("SELECT DISTINCT typeof(notional), typeof(trade_date) FROM read_parquet('%s/typed_trade_agreement/*.parquet')", cfg.To)))
	sum := fmt.Sprintf("SELECT sum(notional)::text FROM %s", "typed.trade_agreement")
	require.Equal(t, texts(t, database, sum), duck(t, fmt.Sprintf("SELECT sum(notional)::text FROM read_parquet('%s/typed_trade_agreement/*.parquet')", cfg.To)))
	none, err := exported(t, cfg)
	require.NoError(t, err)
	require.Empty(t, none)

	// A range whose file has fewer columns, and one whose file is of another template: of a view that was dropped, and had
	// the same name and columns.
	account := fileOf(t, again[1], "typed_bank_account")
	require.Equal(t, "template bank:Bank.Account:Account", account.Of)
	for is, was := range map[string]string{
		account.Columns: account.Columns[:strings.LastIndex(account.Columns, ",")],
		account.Of:      "template bank:Bank.Other:Account",
	} {
		manifest, text := filepath.Join(cfg.To, wrote[1].Name()), readText(t, cfg.To, wrote[1].Name())
		require.Contains(t, text, is)
		require.NoError(t, os.WriteFile(manifest, []byte(strings.Replace(text, is, was, 1)), 0o600))
		again, err = exported(t, cfg)
		require.NoError(t, err)
		require.Len(t, again, 2, "without the file, and with another one")
		made := fileOf(t, again[1], "typed_bank_account")
		require.Equal(t, account.Of, made.Of)
		require.Equal(t, account.Columns, made.Columns)
		stays()
	}
	require.Equal(t, rows, requireExported(t, database, "ledger", cfg.To, end))
	requireTables(t, cfg, "ledger")

	plan, _, err := RunPruneExported(t.Context(), cfg.Database, &store.PruneBefore{Offset: new(wrote[0].To + 1)}, cfg.To, true, testLogger(t))
	require.NoError(t, err)
	require.Equal(t, wrote[0].To, plan.Floor)
	left := filepath.Join(cfg.To, "typed_bank_account", strings.TrimSuffix(filepath.Base(wrote[0].Name()), ".json")+".left.parquet") // by an export that was killed before
	require.NoError(t, os.WriteFile(left, []byte("whole"), 0o600))
	_, err = CreateViews(t.Context(), viewsOf(database, "Offer"), testLogger(t))
	require.NoError(t, err)
	again, err = exported(t, cfg)
	require.NoError(t, err)
	require.Len(t, again, ranges-1, "what was pruned stays as it is")
	require.NoFileExists(t, left)
	require.Equal(t, wrote[0].To, again[0].From)
	require.Equal(t, end, again[len(again)-1].To)

	metadata := func() []string {
		names, err := filepath.Glob(filepath.Join(cfg.To, "typed_*offer", "metadata", "*"))
		require.NoError(t, err)
		return names
	}
	require.NotEmpty(t, metadata())
	_, err = DropViews(t.Context(), viewsOf(database, "Offer"), testLogger(t))
	require.NoError(t, err)
	none, err = exported(t, cfg)
	require.NoError(t, err)
	require.Empty(t, none)
	require.Empty(t, metadata(), "engines would find a table whose files go")
}
