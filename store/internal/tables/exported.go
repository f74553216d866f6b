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

	// Left are the columns that are not exported: numbers of this database, and what a look-up per row finds in another exported relation.
	Left []string
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
		{Relation: "exact_payloads", Of: key("exact_payloads", "carried_exact_payloads"), Place: offset, Order: key(node, "interface_id", seq, "field"), Which: "stream = 'updates'"},
		{Relation: "contract_lifetimes", Of: key("lifetimes"), Place: "active_until", Order: key("active_from", "active_from_node_id"),
			Left: key("payload", "contract_key", "signatories", "observers", "witness_parties", "created_at", "active_before")},
	}
}
