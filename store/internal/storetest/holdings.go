package storetest

// KeepHoldings computes what contracts hold for rows of the active set that a test wrote in SQL. The indexer computes
// it in Go.
func (d *DB) KeepHoldings() {
	d.T.Helper()
	d.Exec("INSERT INTO indexer.positions SELECT * FROM indexer.held_positions")
	for _, table := range []string{"active_contracts", "lifetimes"} {
		d.Exec("UPDATE indexer." + table + ` a SET (position_id, amount, locked) = (
			SELECT h.position_id, h.amount, h.locked FROM indexer.holding_events h
			WHERE h.ledger_offset = a.activated_offset AND h.node_id = a.activated_node_id LIMIT 1)
		WHERE a.template_ref = ANY (ARRAY(SELECT k.template_ref FROM indexer.holding_templates k))`)
	}
}
