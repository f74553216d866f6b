package app

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

func migrate(ctx context.Context, url string) error {
	db, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}

// serve starts a participant and returns its URL.
func serve(t *testing.T, l sandbox.History, options sandbox.ServerOptions) string {
	t.Helper()
	server := httptest.NewServer(sandbox.NewServer(l, options))
	t.Cleanup(server.Close)
	return server.URL
}

// indexerFor is a configuration that indexes a scope until current, without a listener.
func indexerFor(databaseURL, ledgerURL string, scope config.Scope) Indexer {
	return Indexer{
		Database: config.Database{DatabaseURL: databaseURL},
		Ledger:   config.Ledger{LedgerURL: ledgerURL},
		Scope:    scope,
		Run:      config.Run{Start: "genesis", UntilCurrent: true, Migrate: true},
	}
}

func defaultScope() config.Scope {
	return config.Scope{Shape: "acs-delta", Reassignments: true, Topology: true}
}

func testLogger(t *testing.T) *slog.Logger {
	t.Helper()
	level := slog.LevelWarn
	if os.Getenv("TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
}

// relations reads every relation that the sandbox knows the truth of, in an order of its own, so that equal relations are
// equal lists whatever plan the database chooses.
func relations(t *testing.T, databaseURL string) map[string][]sandbox.Row {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	got := map[string][]sandbox.Row{}
	for _, relation := range sandbox.Relations() {
		rows, err := conn.Query(t.Context(), "SELECT to_jsonb(r) FROM ledger."+relation+" r ORDER BY to_jsonb(r)::text")
		require.NoError(t, err)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		require.NoError(t, err)
		for _, text := range texts {
			row, err := sandbox.DecodeRow(relation, text)
			require.NoError(t, err)
			got[relation] = append(got[relation], row)
		}
	}
	return got
}
