package app

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"ledgerindexer/sandbox"
)

// decoded is a JSON text as the model has JSON.
func decoded(value string) (v any) {
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		panic(err) // of a key that was encoded here
	}
	return v
}

func day(r sandbox.Row) any { return text(r["record_time"])[:10] }

func after(low, high int64) func(sandbox.Row) bool {
	return func(r sandbox.Row) bool { return whole(r["ledger_offset"]) > low && whole(r["ledger_offset"]) <= high }
}

var eventAnswers = map[string]answer{
	"How many transactions were there in each hour?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["updates"], is("kind", "transaction")), func(r sandbox.Row) []any { return []any{text(r["record_time"])[:13] + ":00:00Z"} }, number)
	}},
	"How many contracts were created on each day?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["created_events"], is("origin", "transaction")), func(r sandbox.Row) []any { return []any{day(r), r["entity_name"]} }, number)
	}},
	"What was created and archived in a period?": {of: func(d *documented) [][]any {
		var moves []sandbox.Row
		for relation, began := range map[string]bool{"created_events": true, "archived_events": false, "reassignments": false} {
			for _, r := range only(d.rows[relation], after(d.n, d.m)) {
				if r["acs_delta"] == true || relation == "reassignments" && r["kind"] == "unassigned" {
					moves = append(moves, sandbox.Row{"entity_name": r["entity_name"], "began": began})
				}
			}
		}
		return tally(moves, by("entity_name"), numberWhere(is("began", true)), numberWhere(is("began", false)))
	}},
	"What happened in a period of time?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["events"], after(d.offsetAt("2026-01-01T00:05:00Z"), d.offsetAt("2026-01-01T00:10:00Z"))), by("kind"), number)
	}},
	"What was created and archived by the same transaction?": {of: func(d *documented) [][]any {
		archived := map[string]bool{}
		for _, r := range d.rows["archived_events"] {
			archived[plainRow(columnsOf(r, "contract_id", "ledger_offset"))] = true
		}
		return tally(only(d.rows["created_events"], func(r sandbox.Row) bool { return archived[plainRow(columnsOf(r, "contract_id", "ledger_offset"))] }), by("entity_name"), number)
	}},
	"What traffic did each day cost?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["updates"], func(r sandbox.Row) bool { return r["paid_traffic_cost"] != nil }), func(r sandbox.Row) []any { return []any{day(r)} },
			total(column("paid_traffic_cost")))
	}},
	"What came of a command or a workflow?": {of: func(d *documented) (out [][]any) {
		for _, u := range only(d.rows["updates"], is("workflow_id", d.given["workflow"])) {
			out = append(out, project(only(d.rows["events"], is("ledger_offset", u["ledger_offset"])), "ledger_offset", "kind", "entity_name")...)
		}
		return out
	}},
	"Which choice ended a contract, and who exercised it?": {of: func(d *documented) [][]any {
		return project(only(d.rows["archived_events"], is("contract_id", d.given["contract"])), "ledger_offset", "choice", "acting_parties")
	}},
	"How long do contracts live, by template?": {of: func(d *documented) (out [][]any) {
		ended := map[any]any{}
		for _, r := range d.rows["archived_events"] {
			ended[r["contract_id"]] = r["record_time"]
		}
		for _, g := range groups(only(d.rows["created_events"], func(r sandbox.Row) bool {
			return r["origin"] == "transaction" && r["acs_delta"] == true && ended[r["contract_id"]] != nil
		}), by("entity_name")) {
			var lived []*big.Rat
			for _, r := range g.rows {
				lived = append(lived, between(r["created_at"], ended[r["contract_id"]]))
			}
			out = append(out, []any{g.key[0], len(lived), mean(lived)})
		}
		return out
	}},
	"The last exercises of a party": {of: func(d *documented) [][]any {
		return project(top(sorted(only(d.rows["exercised_events"], listing("acting_parties", d.given["party"])), true, "ledger_offset", "node_id"), 20),
			"ledger_offset", "node_id", "entity_name", "choice")
	}},
	"Who exercised a choice, and how often?": {of: func(d *documented) [][]any {
		return tally(unnested(only(d.rows["exercised_events"], both(is("package_name", "trade"), is("choice", "Offer_Quote"))), "acting_parties"), by("party"), number)
	}},
	"Which exercises have an argument with a value?": {of: func(d *documented) [][]any {
		return project(only(d.rows["exercised_events"], func(r sandbox.Row) bool {
			return r["choice"] == "Offer_Quote" && rational(within(r["choice_argument"], "amount")).Cmp(big.NewRat(1_000_000, 1)) > 0
		}), "ledger_offset", "node_id", "contract_id")
	}},
	"By which choices do contracts of a template end?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["archived_events"], ofBank), by("choice"), number)
	}},
	"Which exercises came through an interface?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["exercised_events"], func(r sandbox.Row) bool { return r["interface_id"] != nil }), func(r sandbox.Row) []any {
			return []any{strings.Split(text(r["interface_id"]), ":")[2], r["choice"]}
		}, number)
	}},
	"A transaction as a tree": {of: func(d *documented) [][]any {
		return project(only(d.rows["events"], func(r sandbox.Row) bool { return text(r["ledger_offset"]) == d.given["o"] }), "node_id", "parent_node_id", "kind", "entity_name", "choice")
	}},
	"Everything below one exercise": {of: func(d *documented) [][]any {
		first := only(d.rows["exercised_events"], func(r sandbox.Row) bool { return text(r["ledger_offset"]) == d.given["o"] })[0]
		return project(only(d.rows["events"], func(r sandbox.Row) bool {
			return text(r["ledger_offset"]) == d.given["o"] && whole(r["node_id"]) > 0 && whole(r["node_id"]) <= whole(first["last_descendant_node_id"])
		}), "node_id", "kind", "entity_name", "choice")
	}},
	"Which exercise created a contract?": {of: func(d *documented) [][]any {
		created := only(d.rows["events"], both(is("contract_id", d.given["child"]), is("kind", "created")))[0]
		x := only(d.rows["exercised_events"], func(r sandbox.Row) bool {
			return r["ledger_offset"] == created["ledger_offset"] && r["node_id"] == created["parent_node_id"]
		})[0]
		return project([]sandbox.Row{x}, "contract_id", "choice", "acting_parties")
	}},
	"Which transactions have the most events?": {of: func(d *documented) [][]any {
		sizes := groups(d.rows["events"], by("ledger_offset"))
		slices.SortFunc(sizes, func(a, b grouped) int {
			if len(a.rows) != len(b.rows) {
				return len(b.rows) - len(a.rows)
			}
			return int(whole(a.key[0]) - whole(b.key[0]))
		})
		var out [][]any
		for _, s := range sizes[:5] {
			out = append(out, []any{s.key[0], len(s.rows)})
		}
		return out
	}},
	"How many contracts moved, from where to where?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["reassignments"], is("kind", "assigned")), by("source_synchronizer_id", "target_synchronizer_id"), number)
	}},
	"How long did moves take?": {of: func(d *documented) [][]any {
		arrived := map[any]any{}
		for _, r := range only(d.rows["reassignments"], is("kind", "assigned")) {
			arrived[r["reassignment_id"]] = r["record_time"]
		}
		var took []*big.Rat
		for _, r := range only(d.rows["reassignments"], is("kind", "unassigned")) {
			if at := arrived[r["reassignment_id"]]; at != nil {
				took = append(took, between(r["record_time"], at))
			}
		}
		return [][]any{{len(took), mean(took)}}
	}},
	"Which contracts are on their way?": {empty: true, of: func(d *documented) [][]any {
		return project(only(d.rows["reassignments"], func(r sandbox.Row) bool {
			return r["kind"] == "unassigned" && len(only(d.rows["reassignments"], both(is("kind", "assigned"), is("reassignment_id", r["reassignment_id"])))) == 0
		}), "contract_id", "target_synchronizer_id")
	}},
}

var partyAnswers = map[string]answer{
	"Which parties occur?": {of: func(d *documented) [][]any {
		var named []sandbox.Row
		for _, relation := range []string{"created_events", "archived_events", "exercised_events", "reassignments"} {
			for _, list := range []string{"signatories", "observers", "witness_parties", "acting_parties"} {
				named = append(named, unnested(d.rows[relation], list)...)
			}
		}
		return tally(named, by("party"))
	}},
	"How many active contracts did each party sign?": {of: func(d *documented) [][]any {
		return tally(unnested(d.rows["active_contracts"], "signatories"), by("party"), number)
	}},
	"Who hosts a party?": {of: func(d *documented) (out [][]any) {
		for _, g := range groups(only(d.rows["topology_events"], is("party_id", d.given["hosted"])), by("participant_id", "synchronizer_id")) {
			last := sorted(g.rows, true, "ledger_offset", "node_id")[0]
			out = append(out, columnsOf(last, "participant_id", "synchronizer_id", "kind", "permission"))
		}
		return out
	}},
	"Which fields does a template have?": {of: func(*documented) [][]any {
		return [][]any{{"_1", "Party"}, {"_2", "Text"}}
	}},
	"Which templates implement an interface?": {of: func(*documented) [][]any {
		return [][]any{{"bank", "Holding"}, {"bank", "LockedHolding"}, {"splice-amulet", "Amulet"}, {"splice-amulet", "LockedAmulet"}}
	}},
	"What can be done with contracts of a template?": {of: func(*documented) [][]any {
		return [][]any{{"Archive", true}, {"Holding_Check", false}, {"Holding_Transfer", true}, {"Lockable_Remaining", false}, {"Lockable_Unlock", true}, {"LockedHolding_Expire", true}}
	}},
	"Which views could the participant not compute?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["interface_views"], func(r sandbox.Row) bool { return whole(r["status_code"]) != 0 }), by("entity_name", "status_code"), number)
	}},
	"Which values do not fit their type?": {empty: true, of: func(*documented) [][]any { return nil }},
}
