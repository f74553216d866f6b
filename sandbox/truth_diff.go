package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// columns are the columns of the truth, by relation.
var columns = map[string][]string{
	"updates":          {"ledger_offset", "update_id", "kind", "synchronizer_id", "record_time", "effective_at", "workflow_id", "command_id", "trace_parent", "trace_state", "external_transaction_hash", "paid_traffic_cost"},
	"created_events":   {"ledger_offset", "node_id", "origin", "contract_id", "template_id", "package_id", "package_name", "module_name", "entity_name", "representative_package_id", "payload", "contract_key", "contract_key_hash", "signatories", "observers", "witness_parties", "created_at", "acs_delta", "created_event_blob", "workflow_id", "update_id", "synchronizer_id", "record_time"},
	"archived_events":  {"ledger_offset", "node_id", "contract_id", "template_id", "package_name", "module_name", "entity_name", "choice", "acting_parties", "witness_parties", "acs_delta", "implemented_interfaces", "update_id", "synchronizer_id", "record_time"},
	"exercised_events": {"ledger_offset", "node_id", "contract_id", "template_id", "package_name", "module_name", "entity_name", "interface_id", "choice", "choice_argument", "exercise_result", "acting_parties", "consuming", "last_descendant_node_id", "witness_parties", "acs_delta", "implemented_interfaces", "update_id", "synchronizer_id", "record_time"},
	"interface_views":  {"ledger_offset", "node_id", "contract_id", "interface_id", "package_name", "module_name", "entity_name", "view_value", "status_code", "status_message", "status_details", "implementation_package_id", "update_id", "synchronizer_id", "record_time"},
	"reassignments":    {"ledger_offset", "node_id", "kind", "contract_id", "template_id", "package_name", "module_name", "entity_name", "reassignment_id", "source_synchronizer_id", "target_synchronizer_id", "submitter", "reassignment_counter", "assignment_exclusivity", "witness_parties", "update_id", "synchronizer_id", "record_time"},
	"topology_events":  {"ledger_offset", "node_id", "kind", "party_id", "participant_id", "permission", "update_id", "synchronizer_id", "record_time"},
	"active_contracts": {"contract_id", "synchronizer_id", "template_id", "package_id", "package_name", "module_name", "entity_name", "payload", "contract_key", "signatories", "observers", "witness_parties", "created_at", "created_offset", "activated_offset", "activated_node_id", "reassignment_counter"},

	"transactions":                  {"seq", "event_id", "update_id", "kind", "date", "domain_id", "offset_text", "round"},
	"transfers":                     {"seq", "event_id", "update_id", "date", "round", "sender", "sender_change_fee", "sender_change_amount", "sender_fee", "holding_fees", "input_amount", "input_app_reward_amount", "input_validator_reward_amount", "input_sv_reward_amount", "input_validator_faucet_amount", "description", "transfer_kind", "instruction_receiver", "instruction_amount", "instruction_cid"},
	"transfer_receivers":            {"seq", "event_id", "ordinal", "party", "amount", "receiver_fee", "net_amount"},
	"balance_changes":               {"seq", "event_id", "ordinal", "date", "round", "party", "change_to_initial_amount_as_of_round_zero", "change_to_holding_fees_rate"},
	"mints":                         {"seq", "event_id", "date", "round", "owner", "amount"},
	"taps":                          {"seq", "event_id", "date", "round", "owner", "amount"},
	"aborted_transfer_instructions": {"seq", "event_id", "date", "instruction_cid", "abort_kind"},
	"unknown_transactions":          {"seq", "event_id", "raw"},

	"holdings":       {"owner", "instrument", "instrument_admin", "amount", "locked", "locked_until", "lock_holders", "contract_id", "created_at", "activated_offset", "created_round", "holding_fee_rate", "admin_signed", "template_id", "synchronizer_id"},
	"holding_totals": {"owner", "instrument", "instrument_admin", "admin_signed", "amount", "locked_amount", "unlocked_amount", "contracts"},

	"token_events":         {"ledger_offset", "node_id", "party", "instrument", "instrument_admin", "admin_signed", "label", "counterparties", "counterparty_amounts", "amount", "created_amount", "archived_amount", "locked_amount", "created_holdings", "archived_holdings", "burned_amount", "minted_amount", "reason", "standard", "choice", "instruction_id", "update_id", "record_time"},
	"pending_instructions": {"contract_id", "transfer_id", "pending", "status", "sender", "receiver", "instrument", "instrument_admin", "admin_signed", "amount", "execute_before", "choice", "created_offset", "created_node_id", "ended_offset", "ended_at"},
}

// Relations returns the names of the relations that the truth of a ledger's updates has rows of.
func Relations() []string { return slices.Clone(relations) }

// mostDifferences limits the differences that are described for one relation.
const mostDifferences = 5

// Diff compares rows with the truth in any order and describes what differs; it
// returns "" if nothing does. It ignores relations that want does not have.
func Diff(want, got map[string][]Row) string {
	var out strings.Builder
	for _, relation := range slices.Concat(relations, historyRelations, holdingRelations, tokenRelations) {
		if rows, ok := want[relation]; ok {
			diffRelation(&out, relation, rows, got[relation])
		}
	}
	return out.String()
}

// identify returns the identity of a row, to find its counterpart. A record of the transaction history without its seq has
// no other than all its columns.
func identify(relation string, r Row) string {
	switch {
	case slices.Contains(historyRelations, relation) && r["seq"] == nil:
		return mustJSON(r)
	case relation == "token_events":
		return mustJSON([]any{r["ledger_offset"], r["node_id"], r["party"], r["instrument"], r["instrument_admin"], r["admin_signed"]})
	case relation == "holding_totals":
		return mustJSON([]any{r["owner"], r["instrument"], r["instrument_admin"], r["admin_signed"]})
	}
	key := []byte{'['}
	for i, column := range identity {
		if i > 0 {
			key = append(key, ',')
		}
		switch v := r[column].(type) { // without encoding/json, which would take a third of a comparison
		case nil:
			key = append(key, "null"...)
		case json.Number:
			key = append(key, v...)
		case string:
			key = strconv.AppendQuote(key, v)
		default:
			key = append(key, mustJSON(v)...)
		}
	}
	return string(append(key, ']'))
}

// identity are the columns that tell the rows of a relation apart, as far as it has them.
var identity = []string{
	"seq", "ordinal", "ledger_offset", "activated_offset", "node_id", "activated_node_id", "kind", "contract_id", "interface_id", "synchronizer_id", "origin",
}

// same reports whether two values are the same JSON: text, number as it is written, boolean or nil, or an array or object of such.
// Values of other types may still be equal JSON.
func same(a, b any) bool {
	switch a := a.(type) {
	case nil, string, json.Number, bool:
		return a == b
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	}
	return false
}

func diffRelation(out *strings.Builder, relation string, want, got []Row) {
	left := map[string][]Row{}
	for _, r := range got {
		key := identify(relation, r)
		left[key] = append(left[key], r)
	}
	shown := 0
	say := func(format string, args ...any) {
		if shown++; shown <= mostDifferences {
			fmt.Fprintf(out, relation+": "+format+"\n", args...)
		}
	}
	for _, w := range want {
		key := identify(relation, w)
		candidates := left[key]
		if len(candidates) == 0 {
			say("missing: %s", mustJSON(w))
			continue
		}
		g := candidates[0]
		left[key] = candidates[1:]
		for _, column := range columns[relation] {
			if same(w[column], g[column]) {
				continue
			}
			if a, b := mustJSON(w[column]), mustJSON(g[column]); a != b {
				say("row %s: column %s: want %s, got %s", key, column, a, b)
			}
		}
	}
	for key, rows := range left {
		if len(rows) > 0 {
			say("%d unexpected: %s", len(rows), key)
		}
	}
	if shown > mostDifferences {
		fmt.Fprintf(out, "%s: and %d more differences (%d rows wanted, %d there)\n", relation, shown-mostDifferences, len(want), len(got))
	}
}
