package sandbox

import (
	"maps"
	"slices"
	"strings"
)

// content are the columns that are NULL where a contract, or an update, was redacted.
var content = map[string][]string{
	"created_events":   {"payload", "contract_key", "contract_key_hash", "created_event_blob"},
	"active_contracts": {"payload", "contract_key"},
	"exercised_events": {"choice_argument", "exercise_result"},
	"interface_views":  {"view_value", "status_message", "status_details"},
	"holdings": {"owner", "instrument", "instrument_admin", "amount", "locked", "locked_until", "lock_holders",
		"created_round", "holding_fee_rate"},
	"transfers": {"description"},

	"unknown_transactions": {"raw"},
}

// Redact returns what relations must hold of which contracts and updates were redacted: the truth without their
// content. An amulet is still a holding, of which nothing is known; anything else that is one by its interface view is
// none any more.
func Redact(truth map[string][]Row, contracts, updates map[string]bool) map[string][]Row {
	redacted := maps.Clone(truth)
	for relation, columns := range content {
		rows := slices.Clone(truth[relation])
		if relation == "holdings" {
			rows = slices.DeleteFunc(rows, func(r Row) bool {
				return contracts[r["contract_id"].(string)] && r["entity_name"] != "Amulet" && r["entity_name"] != "LockedAmulet"
			})
		}
		for i, row := range rows {
			if !concerns(row, contracts, updates) {
				continue
			}
			rows[i] = maps.Clone(row)
			for _, column := range columns {
				rows[i][column] = nil
			}
			if relation == "holdings" {
				rows[i]["admin_signed"] = false
			}
		}
		if _, compared := truth[relation]; compared {
			redacted[relation] = rows
		}
	}
	if _, compared := truth["holding_totals"]; compared {
		redacted["holding_totals"] = holdingTotals(redacted["holdings"])
	}
	return redacted
}

// concerns reports whether a row is of a contract or an update, or of a record that names one.
func concerns(row Row, contracts, updates map[string]bool) bool {
	is := func(ids map[string]bool, column string) bool {
		id, ok := row[column].(string)
		return ok && ids[id]
	}
	if is(contracts, "contract_id") || is(contracts, "instruction_cid") || is(updates, "update_id") {
		return true
	}
	if row["raw"] == nil {
		return false
	}
	raw := mustJSON(row["raw"])
	named := func(id string) bool { return strings.Contains(raw, id) }
	return slices.ContainsFunc(slices.Collect(maps.Keys(contracts)), named) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(updates)), named)
}
