package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// Of parties that are hosted elsewhere sums and balances are NULL, now and at an earlier offset, unless who administers
// the instrument is hosted here. Where the participant does not say whom it hosts, or not to this user, sums are of
// what is stored, and nothing fails.
func TestHoldingsOfPartiesHostedElsewhere(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 57})
	l.Grow(600)
	hosted := map[any]bool{}
	for _, party := range l.Parties() {
		hosted[party] = true
	}
	scope := defaultScope()
	scope.Shape, scope.Interfaces = "ledger-effects", everyMovement.Interfaces
	want := l.Holdings(everyMovement, l.End())
	const asked = "NOT EXISTS (SELECT FROM ledger.holdings h WHERE h.owner IS NOT NULL AND NOT EXISTS (SELECT FROM ledger.hosted_parties p WHERE p.party = h.owner)) AND EXISTS (SELECT FROM ledger.holdings)"

	silent := throwaway.Migrated(t, migrate)
	var log journal
	daemon := startLogged(t, indexerFor(silent, serve(t, l, sandbox.ServerOptions{}), scope), log.logger())
	waitUntil(t, silent, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'hosting' AND succeeded_at IS NOT NULL) AND (SELECT count(*) FROM ledger.holdings) = "+
		texts(t, silent, "SELECT $1::int::text", len(want["holdings"]))[0])
	eventually(t, "it is said", func() bool { return strings.Contains(log.all(), "does not say which parties it hosts") })
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(want, rowsOf(t, silent, []string{"holdings", "holding_totals"})))
	require.Equal(t, 0, count(t, silent, "indexer.tasks WHERE failed_at IS NOT NULL"))

	database := throwaway.Migrated(t, migrate)
	daemon = startIndexer(t, indexerFor(database, serve(t, l, sandbox.ServerOptions{Parties: true}), scope))
	waitUntil(t, database, asked)
	require.NoError(t, daemon.finish())
	require.Empty(t, texts(t, database, "SELECT party FROM ledger.hosted_parties WHERE hosted <> (party = ANY ($1))", l.Parties()))
	for _, total := range want["holding_totals"] {
		if !hosted[total["owner"]] && !(total["admin_signed"] == true && hosted[total["instrument_admin"]]) {
			total["amount"], total["locked_amount"], total["unlocked_amount"] = nil, nil, nil
		}
	}
	require.Empty(t, sandbox.Diff(want, rowsOf(t, database, []string{"holdings", "holding_totals"})))
	require.Empty(t, texts(t, database, `
		(TABLE ledger.holding_totals EXCEPT SELECT * FROM ledger.holding_totals_at(ledger.latest_offset()))
		UNION ALL (SELECT * FROM ledger.holding_totals_at(ledger.latest_offset()) EXCEPT TABLE ledger.holding_totals)`))
	require.Empty(t, texts(t, database, `
		SELECT t.owner FROM ledger.holding_totals t
		WHERE t.admin_signed AND t.owner IS NOT NULL AND ledger.balance_at_offset(t.owner, t.instrument, ledger.latest_offset(), t.instrument_admin) IS DISTINCT FROM t.amount`))

	// What moved is told as it was seen, without a balance.
	elsewhere := texts(t, database, "SELECT DISTINCT party FROM ledger.token_events WHERE party = ANY (ARRAY(SELECT h.party FROM ledger.hosted_parties h WHERE NOT h.hosted))")
	require.NotEmpty(t, elsewhere)
	const known = "SELECT party || ' ' || b FROM unnest($1::text[]) p (party) CROSS JOIN LATERAL ledger.balance_at_offset(party, 'Amulet', ledger.latest_offset()) b WHERE b IS NOT NULL"
	require.NotEmpty(t, texts(t, silent, known, elsewhere))
	require.Empty(t, texts(t, database, known, elsewhere))
	const statements = `SELECT DISTINCT (s.balance IS NOT NULL)::text FROM unnest($1::text[]) p (party)
		CROSS JOIN LATERAL ledger.party_statement(party, ledger.state_floor(), ledger.latest_offset()) s`
	require.Equal(t, []string{"true"}, texts(t, silent, statements, elsewhere))
	require.Equal(t, []string{"false"}, texts(t, database, statements, elsewhere))
	stay := texts(t, database, "SELECT party FROM ledger.hosted_parties WHERE hosted AND NOT onboarded")
	require.NotEmpty(t, stay)
	require.Equal(t, []string{"true"}, texts(t, database, statements, stay))
}
