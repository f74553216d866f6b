package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/store/internal/storetest"
)

// fillHoldings puts active contracts into a database whose stream has begun: of every per contracts one is an amulet
// and one a token, which has views of both versions. As many holdings have been archived since. Offsets are 4, 8, ….
func (d *testDB) fillHoldings(active, per int) {
	d.T.Helper()
	for _, table := range []string{"created", "interface_views", "lifetimes"} {
		d.Exec("CREATE TABLE indexer." + table + "_all PARTITION OF indexer." + table + " DEFAULT")
	}
	d.Exec("INSERT INTO indexer.synchronizers (synchronizer_ref, synchronizer_id) VALUES (1, 'sync::1')")
	d.Exec(`INSERT INTO indexer.templates (template_ref, template_id, package_id, package_name, module_name, entity_name)
		SELECT i, 'p:M:T' || i, 'p', 'p', 'M', 'T' || i FROM generate_series(3, 60) i
		UNION ALL VALUES (1, 'a:Splice.Amulet:Amulet', 'a', 'splice-amulet', 'Splice.Amulet', 'Amulet'), (2, 'p:M:Token', 'p', 'p', 'M', 'Token')`)
	d.Exec("INSERT INTO indexer.template_interfaces (template_ref, interface_id) VALUES (2, $1), (2, $2)", storetest.HoldingV1, holdingV2)
	d.Exec(`CREATE TEMPORARY TABLE made AS
		SELECT i * 4 AS ledger_offset, '00' || md5(i::text) || md5('a' || i) || 'ca11' || md5('b' || i) || md5('c' || i) AS contract_id,
			'party-' || i % 1000 || '::1220' || md5((i % 1000)::text) || md5('p' || i % 1000) AS owner,
			CASE i % $2 WHEN 0 THEN 1 WHEN 1 THEN 2 ELSE 3 + i % 58 END AS template_ref, i > $1 AS archived
		FROM generate_series(1, $1::integer * 2) i WHERE i <= $1 OR i % $2 < 2`, active, per)
	d.Exec("INSERT INTO indexer.party_lists SELECT row_number() OVER (), ARRAY[owner, 'dso'] FROM made GROUP BY owner")
	d.Exec(`INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref, synchronizer_ref, created_at, payload, signatories_ref)
		SELECT ledger_offset, 0, 'transaction', contract_id, template_ref, 1, now(), CASE template_ref WHEN 1
			THEN jsonb_build_object('owner', owner, 'dso', 'dso', 'amount', jsonb_build_object('initialAmount', (ledger_offset * 0.0000000001)::text,
				'createdAt', jsonb_build_object('number', ledger_offset::text), 'ratePerRound', jsonb_build_object('rate', '0.0038051800')))
			ELSE jsonb_build_object('owner', owner, 'note', repeat('x', 300)) END, l.party_list_ref FROM made JOIN indexer.party_lists l ON l.parties = ARRAY[owner, 'dso']`)
	d.Exec(`INSERT INTO indexer.interface_views (ledger_offset, node_id, ordinal, contract_id, interface_id, view_value, status_code)
		SELECT ledger_offset, 0, v, contract_id, 'pkg-v' || v || ':Splice.Api.Token.HoldingV' || v || ':Holding', jsonb_build_object('owner', owner,
			'account', jsonb_build_object('owner', owner, 'id', '', 'provider', null), 'amount', (ledger_offset * 0.0000000001)::text, 'lock', null,
			'instrumentId', jsonb_build_object('id', 'Token', 'admin', 'dso')), 0 FROM made, generate_series(1, 2) v WHERE template_ref = 2`)
	d.Exec(`INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
		SELECT contract_id, 1, template_ref, ledger_offset, 0, 0 FROM made WHERE NOT archived`)
	d.Exec(`INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, reassignment_counter, synchronizer_ref, template_ref, contract_id)
		SELECT ledger_offset + 1, ledger_offset, 0, 0, 1, template_ref, contract_id FROM made WHERE archived`)
	// What contracts hold, which the indexer computes in Go.
	d.Exec("INSERT INTO indexer.positions SELECT * FROM indexer.held_positions")
	for _, table := range []string{"active_contracts", "lifetimes"} {
		d.Exec("UPDATE indexer." + table + ` a SET (position_id, amount, locked) = (
			SELECT h.position_id, h.amount, h.locked FROM indexer.holding_events h
			WHERE h.ledger_offset = a.activated_offset AND h.node_id = a.activated_node_id LIMIT 1)
		WHERE a.template_ref = ANY (ARRAY(SELECT k.template_ref FROM indexer.holding_templates k))`)
	}
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = $1", active*8+1)
	d.Exec("VACUUM ANALYZE")
}

// A few holdings among many active contracts are found by index, and one contract by its id.
func TestHoldingsReadFewActiveContracts(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "writes very many rows")
	d := newDatabase(t)
	d.started()
	d.fillHoldings(20_000, 200)
	require.Equal(t, "200 400", d.Row("SELECT count(*), (SELECT count(*) FROM ledger.created_events WHERE entity_name IN ('Amulet', 'Token')) FROM ledger.holdings"))
	require.Equal(t, "201", d.Row("SELECT count(*) FROM ledger.holdings_at(80800)"), "the 200 and the first of those archived since")
	for _, query := range []string{"SELECT * FROM ledger.holdings", "SELECT * FROM ledger.holding_totals WHERE owner = 'x'"} {
		plan := d.plan(query)
		require.Contains(t, plan, "active_contracts_position", query)
		require.NotContains(t, plan, "Seq Scan on active_contracts", query)
		require.NotContains(t, plan, "Seq Scan on created_all", query)
		require.NotContains(t, plan, "Seq Scan on interface_views_all", query)
	}
	plan := d.plan("SELECT * FROM ledger.holdings WHERE contract_id = 'x'")
	require.Contains(t, plan, "active_contracts_contract_id")
	require.NotContains(t, plan, "active_contracts_position")
}
