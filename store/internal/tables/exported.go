package tables

// Exported is a relation of analysts that `indexer export` writes: rows with their names, instead of numbers that mean nothing in another
// database.
type Exported struct {
	Relation string
	Of       []string // the tables whose rows it shows

	// Place is the column whose offset says which range a row belongs to, and Order what orders rows at one offset.
	Place string
	Order []string

	// Which chooses rows, as a condition; empty: all.
	Which string

	// Query reads what is no relation of the analysts, from the tables; empty: it is one.
	Query string

	// Left are the columns that are not exported: numbers of this database, and what a look-up per row finds in another exported relation.
	Left []string

	// Computed says that rows follow from those of other relations, also of earlier offsets: pruning may leave others.
	Computed bool
}

// InExport returns the relations that are exported, in the order in which they are written.
func InExport() []Exported {
	return []Exported{
		{Relation: "updates", Of: key("updates"), Place: offset},
		{Relation: "created_events", Of: key("created", "carried_created"), Place: offset, Order: key(node), Left: key("template_number")},
		{Relation: "archived_events", Of: key("archived", "exercised"), Place: offset, Order: key(node)},
		{Relation: "exercised_events", Of: key("exercised"), Place: offset, Order: key(node)},
		{Relation: "interface_views", Of: key("interface_views", "carried_interface_views"), Place: offset, Order: key(node, "ordinal")},
		{Relation: "reassignments", Of: key("reassignments", "carried_reassignments"), Place: offset, Order: key(node)},
		{Relation: "topology_events", Of: key("topology_events"), Place: offset, Order: key(node)},
		{Relation: "unknown_updates", Of: key("unknown_elements", "carried_unknown_elements"), Place: offset, Order: key(node, "kind", "raw")},
		{Relation: "exact_payloads", Of: key("exact_payloads", "carried_exact_payloads"), Place: offset, Order: key(node, "interface_id", seq, "field"),
			Which: `stream = 'updates' AND field NOT LIKE 'checkpoint\_%'`},
		{Relation: "contract_lifetimes", Of: key("lifetimes"), Place: "active_until", Order: key("active_from", "active_from_node_id"),
			Left: key("payload", "contract_key", "signatories", "observers", "witness_parties", "created_at", "active_before", "template_number")},
		{Relation: "token_events", Of: key("updates"), Place: offset, Order: key(node, "party", "instrument", "instrument_admin", "admin_signed"), Computed: true},
	}
}

// ExportedRecords returns what is exported of the transaction history, in the order in which it is written. Its ranges are of seqs.
func ExportedRecords() []Exported {
	return []Exported{
		{Relation: "transactions", Of: key("transactions"), Place: seq},
		{Relation: "transfers", Of: key("transfers"), Place: seq},
		{Relation: "transfer_receivers", Of: key("transfer_receivers"), Place: seq, Order: key("ordinal")},
		{Relation: "balance_changes", Of: key("balance_changes"), Place: seq, Order: key("ordinal")},
		{Relation: "mints", Of: key("mints"), Place: seq},
		{Relation: "taps", Of: key("taps"), Place: seq},
		{Relation: "aborted_transfer_instructions", Of: key("aborted_transfer_instructions"), Place: seq},
		{Relation: "unknown_transactions", Of: key("unknown_transactions"), Place: seq},
		{Relation: "exact_payloads", Of: key("record_exact_payloads"), Place: seq, Order: key("field"), Which: "stream = 'transactions'"},
	}
}

// ExportedBeside returns what is exported too, because an import could not make the database of the analysts' relations without it. Rows of a
// snapshot that are of an entry say which: a creation event is that of an active contract where it has a counter. Offset checkpoints may change after they
// were exported, so what their columns can't hold is here too, and not among the exact values.
func ExportedBeside() []Exported {
	return []Exported{
		{Relation: "offset_checkpoints", Place: offset, Order: key("ordinal", "synchronizer_id"), Query: `
SELECT o.ledger_offset, o.ordinal, s.synchronizer_id, o.record_time, o.extra, t.exact AS exact_time, x.exact AS exact_extra
FROM offset_checkpoints o JOIN synchronizers s ON s.synchronizer_ref = o.synchronizer_ref
LEFT JOIN checkpoint_exact_payloads t ON t.ledger_offset = o.ledger_offset AND t.field = 'checkpoint_time ' || s.synchronizer_id
LEFT JOIN checkpoint_exact_payloads x ON x.ledger_offset = o.ledger_offset AND x.field = 'checkpoint_extra ' || s.synchronizer_id`},
		{Relation: "unknown_elements", Place: offset, Order: key("ordinal"), Query: `
SELECT u.ledger_offset, u.ordinal, u.node_id, u.kind, u.raw FROM unknown_elements u`},
		{Relation: "snapshot_entries", Place: offset, Order: key("of", node, "ordinal"), Query: `
SELECT c.ledger_offset, 'created' AS of, c.node_id, NULL::integer AS ordinal, c.reassignment_counter, NULL::bigint AS created_offset,
    NULL::integer AS created_node_id, c.workflow_id, c.entry_extra, NULL::text AS kind, NULL::jsonb AS raw
FROM shown_created c
UNION ALL
SELECT r.ledger_offset, r.kind, r.node_id, NULL, NULL, r.created_offset, r.created_node_id, r.workflow_id, r.entry_extra, NULL, NULL
FROM shown_reassignments r
UNION ALL
SELECT u.ledger_offset, 'unknown', NULL, u.ordinal, NULL, NULL, NULL, u.workflow_id, u.entry_extra, u.kind, u.raw
FROM shown_unknown_elements u`},
	}
}

// ExportedView is a typed view, by its name in an export, its name in SQL, and its kind (typed_views). The whole values, and what is active, stand in
// other relations.
func ExportedView(name, view, kind string) Exported {
	left := map[string][]string{
		"template": key("active", "payload"), "interface": key("active", "view_value"), "argument": key("choice_argument", "exercise_result"),
	}
	return Exported{Relation: name, Place: offset, Order: key(node), Query: "SELECT * FROM " + view, Computed: true, Left: left[kind]}
}
