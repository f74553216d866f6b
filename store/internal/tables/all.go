package tables

import (
	"slices"

	"ledgerindexer/ledger"
)

// The columns that say where rows belong.
const (
	offset = "ledger_offset"
	node   = "node_id"
	seq    = "seq"
)

// Nodes from 2^30 on are no events: what a resync took in begins there.
const (
	ofEvents = "s.node_id < 1073741824"
	ofResync = "s.node_id >= 1073741824"
)

// What projections follow from.
const activations = "active_holdings(@floor, @watermark, @floor)"

func key(columns ...string) []string { return columns }

var (
	contentOfCreated = key("payload", "contract_key", "contract_key_hash", "created_event_blob", "extra", "exact",
		"entry_extra")
	contentOfViews = key("view_value", "status_message", "status_details", "extra", "exact")
)

// facts are the tables of facts. What the others say of them follows from it.
var facts = []Table{
	{Name: "updates", Family: Facts, Seen: seenByList("seen_by_ref", "seen_also_by_ref", "seen_by_others_ref"),
		Content: key("extra", "exact"), Key: key(offset), Place: offset, Partitioned: true, Reset: Remove, Pruned: true},
	{Name: "created", Family: Facts, Which: ofEvents, Seen: seenByList("stakeholders_ref", "witness_parties_ref"),
		Content: contentOfCreated, Key: key(offset, node), Place: offset, Partitioned: true, Reset: Remove, Pruned: true,
		Element: true, Activity: true, Contract: true,
		Export:   Exported{Relation: "created_events", Left: key("template_number")},
		Snapshot: key("reassignment_counter", "served_offset", "served_node_id", "workflow_id", "entry_extra")},
	{Name: "archived", Family: Facts, Seen: seenByList("witness_parties_ref"), Content: key("extra", "exact"),
		Key: key(offset, node), Place: offset, Partitioned: true, Reset: Remove, Pruned: true, Element: true, Activity: true,
		Contract: true, Export: Exported{Relation: "archived_events", Of: key("exercised")}},
	{Name: "exercised", Family: Facts, Seen: seenByList("witness_parties_ref"), Content: key("choice_argument",
		"exercise_result", "extra", "exact"), Key: key(offset, node), Place: offset, Partitioned: true, Reset: Remove,
		Pruned: true, Element: true, Activity: true, Contract: true, Export: Exported{Relation: "exercised_events"}},
	{Name: "interface_views", Family: Facts, Which: ofEvents, Seen: seenByList("seen_by_ref"), Content: contentOfViews,
		Key: key(offset, node, "ordinal"), Place: offset, Partitioned: true, Reset: Remove, Pruned: true,
		Snapshot: []string{}},
	{Name: "reassignments", Family: Facts, Seen: seenByList("witness_parties_ref"),
		Content: key("extra", "exact", "entry_extra"),
		Key:     key(offset, node), Place: offset, Partitioned: true, Reset: Remove, Pruned: true, Element: true,
		Activity: true, Contract: true, Snapshot: key("created_offset", "created_node_id", "workflow_id", "entry_extra")},
	{Name: "topology_events", Family: Facts, Seen: ofMyParty, Content: key("extra", "exact"), Key: key(offset, node),
		Place:       offset,
		Partitioned: true, Reset: Remove, Pruned: true, Element: true},
	{Name: "unknown_elements", Family: Facts, Seen: Nobody, Content: key("raw", "exact", "entry_extra"),
		Key: key(offset, "ordinal"), Place: offset, Reset: Remove, Pruned: true, Element: true,
		Export:   Exported{Relation: "unknown_updates", Order: key(node, "kind", "raw")},
		Snapshot: key("workflow_id", "entry_extra")},
}

var all = slices.Concat(facts, []Table{
	{Name: "created", Family: Resynced, Which: ofResync, Content: contentOfCreated, Key: key(offset, node),
		Place: offset, Partitioned: true, Reset: Remove, Contract: true},
	{Name: "interface_views", Family: Resynced, Which: ofResync, Content: contentOfViews,
		Key: key(offset, node, "ordinal"), Place: offset, Partitioned: true, Reset: Remove},

	{Name: "transactions", Family: Records, Seen: ofHistory, Content: key("extra", "exact"), Key: key(seq), Place: seq,
		Reset: Remove},
	{Name: "transfers", Family: Records, Seen: ofHistory, Content: key("description", "sender_extra", "extra"),
		Key: key(seq), Place: seq, Reset: Remove, Kind: ledger.RecordTransfer},
	{Name: "transfer_receivers", Family: Records, Seen: ofHistory, Content: key("extra"), Key: key(seq, "ordinal"),
		Place: seq, Reset: Remove, Count: "receivers"},
	{Name: "balance_changes", Family: Records, Seen: ofHistory, Content: key("extra"), Key: key(seq, "ordinal"),
		Place: seq, Reset: Remove, Count: "balance_changes"},
	{Name: "mints", Family: Records, Seen: ofHistory, Content: key("extra"), Key: key(seq), Place: seq, Reset: Remove,
		Kind: ledger.RecordMint},
	{Name: "taps", Family: Records, Seen: ofHistory, Content: key("extra"), Key: key(seq), Place: seq, Reset: Remove,
		Kind: ledger.RecordTap},
	{Name: "aborted_transfer_instructions", Family: Records, Seen: ofHistory, Content: key("extra"), Key: key(seq),
		Place: seq, Reset: Remove, Kind: ledger.RecordAbort},
	{Name: "unknown_transactions", Family: Records, Seen: ofHistory, Content: key("raw"), Key: key(seq), Place: seq,
		Reset: Remove, Kind: ledger.RecordUnknown},

	{Name: "party_transfers", Family: Totals, Seen: ofHistory, Key: key("party", "date", seq, "sent"), Place: seq,
		Reset: Remove, Follows: "transfer_parties"},
	{Name: "balance_totals", Family: Totals, Seen: ofHistory, Key: key("party", "round"),
		Follows: "running_totals"},
	{Name: "latest_totals", Family: Totals, Seen: ofHistory, Key: key("party"), Follows: "running_totals",
		Of: "w.latest"},
	{Name: "balance_rounds", Family: Totals, Seen: ofHistory, Key: key("only_row"), Follows: "wanted_rounds"},

	{Name: "offset_checkpoints", Family: State, Seen: Everyone, Key: key(offset, "synchronizer_ref"), Place: offset,
		Reset: Remove, Pruned: true},

	{Name: "resync_deactivations", Family: State, Seen: ofSeenCreation, Key: key(offset, node), Place: offset,
		Reset: Remove, Pruned: true},
	{Name: "resyncs", Family: State, Key: key(offset, node), Place: offset, Reset: Remove, Pruned: true},
	{Name: "resync_created", Family: State, Key: key(node), Place: offset, Reset: Remove, Pruned: true},
	{Name: "resync_interface_views", Family: State, Key: key(node, "ordinal"), Place: offset, Reset: Remove, Pruned: true},
	{Name: "resync_shown", Family: State, Key: key(node)},

	// In this order: what is held follows from the interfaces too, and a contract that a reset makes active again was not
	// active before.
	{Name: "template_interfaces", Family: Projections, Seen: Everyone, Key: key("template_ref", "interface_id"),
		Follows:   "shown_interfaces(@floor, @watermark)",
		Undecided: "EXISTS (SELECT FROM templates t WHERE t.template_ref = s.template_ref)"},
	{Name: "positions", Family: Projections, Seen: ofMyPosition, Key: key("position_id"),
		Follows: "held_positions", Undecided: "s.position_id = position_of(s.owner, s.instrument, s.instrument_admin, " +
			"s.admin_signed)"},
	{Name: "position_stakeholders", Family: Projections, Seen: ofMyPosition, Key: key("position_id", "stakeholders_ref"),
		Follows: "held_stakeholders", Undecided: "EXISTS (SELECT FROM positions p WHERE p.position_id = s.position_id) AND " +
			"EXISTS (SELECT FROM party_lists l WHERE l.party_list_ref = s.stakeholders_ref)"},
	{Name: "active_contracts", Family: Projections, Seen: seenByList("stakeholders_ref"), Key: key("activated_offset",
		"activated_node_id"), Place: "activated_offset", Reset: Remove,
		Follows: activations, Of: "w.deactivated_offset IS NULL", Named: key("contract_id", "synchronizer_ref")},
	{Name: "lifetimes", Family: Projections, Seen: seenByList("stakeholders_ref"), Content: key("position_id", "amount",
		"locked", "locked_until"), Key: key("deactivated_offset", "activated_offset", "activated_node_id"),
		Place: "deactivated_offset", Partitioned: true, Reset: Reopen, Pruned: true,
		Follows: activations, Of: "w.deactivated_offset IS NOT NULL"},
	{Name: "lookups", Family: Projections, Seen: ofLookup,
		Content: key("payload", "contract_key", "contract_key_hash", "exact"),
		Key:     key(offset, node), Place: offset, Reset: Remove, Pruned: true, Moved: true,
		Follows: "wanted_lookups(@floor, @watermark)", Named: key("contract_id")},
	{Name: "reader_lists", Family: Projections, Key: key("reader", "chunk"), Follows: "wanted_reader_lists"},

	{Name: "verifications", Family: State, Seen: Nobody, Key: key("stream", "from_exclusive"),
		Which: "s.stream = 'updates'", Place: "to_inclusive", Reset: Remove},
	{Name: "verifications", Family: State, Key: key("stream", "from_exclusive"), Which: "s.stream <> 'updates'",
		Place: "to_inclusive"},
	{Name: "pruned_verifications", Family: State, Key: key("stream", "from_exclusive", "verified_at")},
	{Name: "coverage", Family: State, Seen: Everyone, Key: key("stream", "from_exclusive"), Reset: Cut},

	{Name: "templates", Family: Dictionaries, Seen: Everyone, Key: key("template_ref")},
	{Name: "synchronizers", Family: Dictionaries, Seen: Everyone, Key: key("synchronizer_ref")},
	{Name: "party_lists", Family: Dictionaries, Seen: besideEvents, Key: key("party_list_ref")},

	{Name: "redactions", Family: State, Seen: seenRedaction(facts), Key: key("redaction")},
	{Name: "redacted_records", Family: State, Key: key("update_id")},
	{Name: "participant", Family: State, Seen: Everyone, Key: key("only_row")},
	{Name: "network", Family: State, Key: key("only_row")},
	{Name: "scopes", Family: State, Key: key("scope")},
	{Name: "leadership", Family: State, Key: key("lease")},
	{Name: "checkpoints", Family: State, Seen: ofUpdates + " OR " + ofHistory, Key: key("stream")},
	{Name: "floors", Family: State, Seen: Everyone, Key: key("stream")},
	{Name: "snapshots", Family: State, Key: key("snapshot_offset")},
	{Name: "transactions_position", Family: State, Seen: Everyone, Key: key("only_row")},
	{Name: "progress", Family: State, Key: key("stream")},
	{Name: "tasks", Family: State, Key: key("task")},
	{Name: "hosting", Family: State, Seen: "EXISTS (SELECT FROM my_parties m WHERE m.party = s.party)", Key: key("party")},
	{Name: "packages", Family: State, Seen: Everyone, Key: key("package_id")},
	{Name: "package_contents", Family: State, Seen: Everyone, Key: key("package_id")},
	{Name: "package_tries", Family: State, Seen: Everyone, Key: key("package_id")},
	{Name: "package_definitions", Family: State, Seen: Everyone, Key: key("package_id", "module_name", "entity_name")},
	{Name: "package_choices", Family: State, Seen: Everyone, Key: key("package_id", "module_name", "entity_name",
		"choice")},
	{Name: "package_fields", Family: State, Seen: Everyone, Key: key("package_id", "module_name", "entity_name", "part",
		"choice", "ordinal")},
	{Name: "typed_views", Family: State, Seen: Everyone, Key: key("view_schema", "view_name")},
	{Name: "vetting_states", Family: State, Seen: Everyone, Key: key("synchronizer_ref")},
	{Name: "vetted_packages", Family: State, Seen: Everyone, Key: key("synchronizer_ref", "package_id")},
	{Name: "vetting_changes", Family: State, Seen: Everyone, Key: key(seq, "synchronizer_ref", "package_id")},
	{Name: "rewrites", Family: State, Seen: Everyone, Key: key("rewrite")},
	{Name: "readers", Family: State, Key: key("reader")},
	{Name: "reader_parties", Family: State, Key: key("reader", "party")},
	{Name: "unlimited", Family: State, Seen: Nobody, Key: key("only_row")},
	{Name: "schema_version", Family: State, Key: key("id")},
})
