package app

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// everyMovement is a scope that shows all that the token standard's rules read.
var everyMovement = sandbox.Scope{Shape: sandbox.LedgerEffects, Interfaces: sandbox.InterfaceNames()}

// What moved, and what became of each offer, is what the model of the ledger decided; what a party's movements add up
// to is what it holds, at every offset.
func TestMovementsOfAnIndexedLedger(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads and adds up every movement of a ledger")
	l := sandbox.NewLedger(sandbox.Options{Seed: 47})
	l.Grow(600)
	scope := defaultScope()
	scope.Shape, scope.Interfaces = "ledger-effects", everyMovement.Interfaces
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, sandbox.ServerOptions{}), scope), testLogger(t)))

	want := map[string][]sandbox.Row{
		"token_events": l.TokenEvents(everyMovement, l.End()), "pending_instructions": l.TransferInstructions(everyMovement, l.End()),
	}
	got := rowsOf(t, database, []string{"token_events", "pending_instructions"})
	got["token_events"] = slices.DeleteFunc(got["token_events"], func(r sandbox.Row) bool { return !slices.Contains(l.Parties(), r["party"].(string)) })
	require.Empty(t, sandbox.Diff(want, got))
	labels, statuses := map[any]int{}, map[any]int{}
	for _, r := range want["token_events"] {
		labels[r["label"]]++
	}
	for _, r := range want["pending_instructions"] {
		statuses[r["status"]]++
	}
	for _, label := range []string{"TransferOut", "TransferIn", "MergeSplit", "Unlock", "ExpireDust", "Create", "Archive", "Assigned", "Unassigned"} {
		require.Positive(t, labels[label], label)
	}
	for _, status := range []string{"pending", "completed", "rejected", "withdrawn"} {
		require.Positive(t, statuses[status], status)
	}

	// One row per receiver of what the senders' rows say.
	require.Equal(t, []string{"0"}, texts(t, database, `
		WITH said AS (
			SELECT e.ledger_offset, e.node_id, e.party, c.receiver, c.amount FROM ledger.token_events e
			CROSS JOIN LATERAL unnest(e.counterparties, e.counterparty_amounts) c (receiver, amount) WHERE e.label = 'TransferOut'),
		listed AS (SELECT ledger_offset, node_id, sender, receiver, amount FROM ledger.token_transfers)
		SELECT ((SELECT count(*) FROM (TABLE said EXCEPT ALL TABLE listed) x) + (SELECT count(*) FROM (TABLE listed EXCEPT ALL TABLE said) x))::text`))

	requireMovementsAddUp(t, database, l)
}

// requireMovementsAddUp holds what parties' movements add up to against what they hold, at every offset.
func requireMovementsAddUp(t *testing.T, database string, l *sandbox.Ledger) {
	t.Helper()
	// A contract counts until it is archived, wherever it is still to be unassigned.
	require.Empty(t, texts(t, database, `
		WITH held AS (
			SELECT h.owner, h.instrument, h.instrument_admin, h.admin_signed, h.amount, unnest(range_agg(int8range(h.activated_offset, least(h.active_until,
				(SELECT min(a.ledger_offset) FROM ledger.archived_events a WHERE a.contract_id = h.contract_id))))) AS life
			FROM ledger.holding_lifetimes h WHERE h.owner = ANY ($1) GROUP BY h.contract_id, 1, 2, 3, 4, 5),
		changes AS (
			SELECT owner, instrument, instrument_admin, admin_signed, lower(life) AS ledger_offset, amount FROM held
			UNION ALL SELECT owner, instrument, instrument_admin, admin_signed, upper(life), -amount FROM held WHERE NOT upper_inf(life)
			UNION ALL SELECT party, instrument, instrument_admin, admin_signed, ledger_offset, -amount FROM ledger.token_events WHERE party = ANY ($1))
		SELECT ledger_offset || ' ' || owner || ' ' || instrument || ' ' || sum(amount) FROM changes
		GROUP BY owner, instrument, instrument_admin, admin_signed, ledger_offset HAVING sum(amount) <> 0`, l.Parties()))

	// The model's own sums, at some offsets, against balances.
	for i := 0; i < l.Len(); i += 40 {
		at := l.Offset(i)
		var owners, instruments, admins, amounts []string
		for _, total := range l.Holdings(everyMovement, at)["holding_totals"] {
			if total["admin_signed"] == true {
				owners, instruments = append(owners, total["owner"].(string)), append(instruments, total["instrument"].(string))
				admins, amounts = append(admins, total["instrument_admin"].(string)), append(amounts, fmt.Sprint(total["amount"]))
			}
		}
		require.Empty(t, texts(t, database, `
			SELECT w.owner || ' ' || w.instrument || ' ' || w.amount FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) w (owner, instrument, admin, amount)
			WHERE ledger.balance_at_offset(w.owner, w.instrument, $5, w.admin) IS DISTINCT FROM w.amount::numeric
				OR ledger.balance_at(w.owner, w.instrument, (SELECT max(record_time) FROM ledger.updates WHERE ledger_offset <= $5), w.admin) IS DISTINCT FROM w.amount::numeric`, owners, instruments, admins, amounts, at), at)
	}

	// Statements end there, but for contracts that are still to be unassigned.
	require.Empty(t, texts(t, database, `
		WITH statement AS (SELECT p.party, s.* FROM unnest($1::text[]) p (party) CROSS JOIN LATERAL ledger.party_statement(p.party, $2, $3) s),
		last AS (
			SELECT DISTINCT ON (party, instrument_admin, instrument) * FROM statement
			ORDER BY party, instrument_admin, instrument, ledger_offset DESC, node_id DESC)
		SELECT 'ends at ' || balance || ' ' || instrument FROM last
		WHERE balance IS DISTINCT FROM ledger.balance_at_offset(party, instrument, $3, instrument_admin)
			AND NOT EXISTS (SELECT FROM ledger.holdings h JOIN ledger.archived_events a USING (contract_id) WHERE h.owner = last.party)
		UNION ALL SELECT 'does not add up at ' || ledger_offset FROM statement WHERE amount <> transferred + minted - burned + unexplained OR minted * burned <> 0
		UNION ALL SELECT 'has no fees' WHERE NOT EXISTS (SELECT FROM statement WHERE label = 'TransferOut' AND burned > 0)`,
		l.Parties(), l.Offset(0), l.End()))
}
