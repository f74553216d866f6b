package tables

import "cmp"

// Exported is a relation of analysts that `indexer export` writes: rows with their names, instead of numbers that mean
// nothing in another database.
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

	// Left are the columns that are not exported: numbers of this database, and what a look-up per row finds in another
	// exported relation.
	Left []string

	// Computed says that rows follow from those of other relations, also of earlier offsets: pruning may leave others.
	Computed bool
}

// InExport returns the relations that are exported, in the order in which they are written: one for each table of facts
// (see Table.Export), and what is shown of several.
func InExport() []Exported {
	var list []Exported
	for _, t := range In(Facts) {
		e := t.Export
		e.Relation, e.Of, e.Place = cmp.Or(e.Relation, t.Name), append(key(t.Name), e.Of...), offset
		if e.Order == nil {
			e.Order = t.Key[1:]
		}
		list = append(list, e)
	}
	return append(list,
		Exported{Relation: "exact_payloads", Of: Names(In(Facts)), Place: offset,
			Order: key(node, "interface_id", seq, "field"),
			Which: `stream = 'updates' AND field NOT LIKE 'checkpoint\_%'`},
		Exported{Relation: "contract_lifetimes", Of: key("lifetimes"), Place: "active_until",
			Order: key("active_from", "active_from_node_id"),
			Left: key("payload", "contract_key", "signatories", "observers", "witness_parties", "created_at", "active_before",
				"template_number")},
		Exported{Relation: "token_events", Of: key("updates"), Place: offset, Order: key(node, "party", "instrument",
			"instrument_admin", "admin_signed"), Computed: true},
	)
}

// ExportedRecords returns what is exported of the transaction history, in the order in which it is written. Its ranges
// are of seqs.
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
		{Relation: "exact_payloads", Of: key("transactions"), Place: seq, Order: key("field"),
			Which: "stream = 'transactions'"},
	}
}

// ExportedView is a typed view, by its name in an export, its name in SQL, and its kind (typed_views). The whole
// values, and what is active, stand in other relations.
func ExportedView(name, view, kind string) Exported {
	left := map[string][]string{
		"template": key("active", "contract_key", "payload"), "interface": key("active", "view_value"),
		"choice": key("choice_argument", "exercise_result"),
	}
	return Exported{Relation: name, Place: offset, Order: key(node), Query: "SELECT * FROM " + view, Computed: true,
		Left: left[kind]}
}
