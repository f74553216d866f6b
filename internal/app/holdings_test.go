package app

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// What is held, now and at an earlier offset, is what the model of the ledger says, whatever the scope shows of it.
func TestHoldingsOfAnIndexedLedger(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 41})
	l.Grow(600)
	some := l.Parties()[:3]
	for name, of := range map[string]sandbox.Scope{
		"payloads":     {Shape: sandbox.ACSDelta},
		"some parties": {Shape: sandbox.LedgerEffects, Interfaces: sandbox.InterfaceNames(), Parties: some},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			scope := defaultScope()
			scope.Interfaces, scope.Parties = of.Interfaces, of.Parties
			if of.Shape == sandbox.LedgerEffects {
				scope.Shape = "ledger-effects"
			}
			database := throwaway.Migrated(t, migrate)
			require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, sandbox.ServerOptions{}), scope), testLogger(t)))
			want := l.Holdings(of, l.End())
			require.NotEmpty(t, want["holdings"])
			require.Empty(t, sandbox.Diff(want, rowsOf(t, database, []string{"holdings", "holding_totals"})))

			middle := l.Offset(300)
			var got []sandbox.Row
			for _, text := range collect[[]byte](t, database, "SELECT to_jsonb(h) FROM ledger.holdings_at($1) h", middle) {
				row, err := sandbox.DecodeRow("holdings", text)
				require.NoError(t, err)
				got = append(got, row)
			}
			then := l.Holdings(of, middle)["holdings"]
			require.NotEmpty(t, then)
			require.Empty(t, sandbox.Diff(map[string][]sandbox.Row{"holdings": then}, map[string][]sandbox.Row{"holdings": got}))
		})
	}
}

// What the receivers of a transfer get is what the amulets that it makes for them hold.
func TestWhatReceiversGetIsWhatTheyHold(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "indexes a ledger of many transfers")
	l := sandbox.NewLedger(sandbox.Options{Seed: 43})
	l.Grow(1000)
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.ScanURL = []string{serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{}))}
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	pairs := collect[[]string](t, database, `
		SELECT ARRAY[p.net_amount, r.net_amount, c.amount, p.amount]::text[]
		FROM (
			SELECT x.ledger_offset, x.update_id, x.payload->>'owner' AS owner, sum((x.payload->'amount'->>'initialAmount')::numeric) AS amount
			FROM (
				SELECT e.ledger_offset, e.update_id, CASE e.entity_name WHEN 'Amulet' THEN e.payload ELSE e.payload->'amulet' END AS payload
				FROM ledger.created_events e WHERE e.entity_name IN ('Amulet', 'LockedAmulet')) x
			GROUP BY 1, 2, 3) c
		JOIN ledger.transactions t ON t.event_id LIKE '#' || c.update_id || ':%'
		JOIN ledger.party_transfers p ON p.seq = t.seq AND p.direction = 'received' AND p.party = c.owner AND p.fee > 0
		JOIN ledger.transfer_receivers r ON r.seq = t.seq AND r.party = p.party
		WHERE NOT EXISTS (SELECT FROM ledger.transactions o WHERE o.event_id LIKE '#' || c.update_id || ':%' AND o.seq <> t.seq)`)
	require.Greater(t, len(pairs), 10)
	for _, pair := range pairs {
		require.Equal(t, pair[2], pair[0], "of the party's transfers")
		require.Equal(t, pair[2], pair[1], "of the transfer's receivers")
		require.NotEqual(t, pair[2], pair[3], "without the fee")
	}
}

// collect reads the only column of a query.
func collect[T any](t *testing.T, databaseURL, query string, args ...any) []T {
	t.Helper()
	rows, err := sessions(t, databaseURL).Query(t.Context(), query, args...)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return list
}
