package app

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"ledgerindexer/sandbox"
)

var (
	template = by("package_name", "module_name", "entity_name")
	ofBank   = both(is("package_name", "bank"), is("entity_name", "Holding"))
)

var contractAnswers = map[string]answer{
	"Which templates have active contracts, and how many?": {of: func(d *documented) [][]any {
		return tally(d.rows["active_contracts"], template, number)
	}},
	"Which versions of their packages do active contracts have?": {of: func(d *documented) [][]any {
		versions := map[any]string{}
		for _, p := range d.ledger.Packages() {
			versions[p.ID] = p.Version
		}
		return tally(d.rows["active_contracts"], func(r sandbox.Row) []any { return []any{r["package_name"], versions[r["package_id"]]} }, number)
	}},
	"Which choices are exercised, and what do they archive?": {of: func(d *documented) [][]any {
		return tally(d.rows["exercised_events"], by("package_name", "entity_name", "choice"), number, numberWhere(is("consuming", true)))
	}},
	"What happened last?": {of: func(d *documented) [][]any {
		return project(top(sorted(d.rows["created_events"], true, "ledger_offset", "node_id"), 20), "ledger_offset", "node_id", "entity_name", "contract_id")
	}},
	"Which active contracts have a field with a value?": {of: func(d *documented) (out [][]any) {
		for _, r := range only(d.rows["active_contracts"], is("entity_name", "Account")) {
			if within(r["payload"], "owner") == d.given["owner"] {
				out = append(out, []any{r["contract_id"], within(r["payload"], "number")})
			}
		}
		return out
	}},
	"What is the sum of a field, by another field?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["active_contracts"], ofBank), func(r sandbox.Row) []any { return []any{within(r["payload"], "holding", "instrument", "id")} },
			number, total(inside("payload", "holding", "amount", "initialAmount")))
	}},
	"Which contract has a key?": {of: func(d *documented) [][]any {
		return project(only(d.rows["created_events"], func(r sandbox.Row) bool {
			return r["origin"] == "transaction" && r["entity_name"] == "Account" && plain(r["contract_key"]) == plain(decoded(d.given["key"]))
		}), "contract_id", "ledger_offset")
	}},
	"What does a party hold?": {of: func(d *documented) [][]any {
		return project(only(d.rows["holdings"], both(is("owner", d.given["party"]), is("admin_signed", true))), "instrument_admin", "instrument", "amount", "locked", "contract_id")
	}},
	"Who holds most of an instrument?": {of: func(d *documented) [][]any {
		return project(top(sorted(d.amulets(d.rows["holding_totals"]), true, "amount"), 20), "owner", "amount", "locked_amount", "contracts")
	}},
	"Which instruments are there, and how much of each?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["holding_totals"], is("admin_signed", true)), by("instrument_admin", "instrument"), distinct("owner"), total(column("amount")))
	}},
	"Which holdings did the named administrator not sign?": {of: func(d *documented) [][]any {
		return project(only(d.rows["holdings"], is("admin_signed", false)), "owner", "instrument", "instrument_admin", "contract_id")
	}},
	"What is left of amulets after holding fees?": {of: func(d *documented) [][]any {
		round := d.newestRound()
		return tally(d.amulets(d.rows["holdings"]), by("owner"), total(func(r sandbox.Row) any {
			if r["amount"] == nil || r["created_round"] == nil || r["holding_fee_rate"] == nil {
				return nil
			}
			fees := new(big.Rat).Mul(rational(r["holding_fee_rate"]), big.NewRat(round-whole(r["created_round"]), 1))
			if left := fees.Sub(rational(r["amount"]), fees); left.Sign() > 0 {
				return left.RatString()
			}
			return "0"
		}))
	}},
	"Which locks end before a time?": {of: func(d *documented) [][]any {
		return project(only(d.rows["holdings"], func(r sandbox.Row) bool {
			return r["locked_until"] != nil && instantOf(r["locked_until"]).Before(instantOf("2026-01-08T00:00:00Z"))
		}), "owner", "instrument", "amount", "locked_until", "contract_id")
	}},
	"What does a contract look like through its interfaces?": {of: func(d *documented) [][]any {
		return project(only(d.rows["interface_views"], is("contract_id", d.given["viewed"])), "ledger_offset", "interface_id", "view_value")
	}},
	"What is a contract, and is it active?": {of: func(d *documented) [][]any {
		r := only(d.rows["created_events"], is("contract_id", d.given["contract"]))[0]
		return [][]any{{r["entity_name"], r["signatories"], r["created_at"], only(d.rows["archived_events"], is("contract_id", d.given["contract"]))[0]["ledger_offset"], []any{}}}
	}},
	"Which active contracts are the oldest?": {of: func(d *documented) [][]any {
		rows := slices.Clone(d.rows["active_contracts"])
		slices.SortFunc(rows, func(a, b sandbox.Row) int {
			return cmp.Or(instantOf(a["created_at"]).Compare(instantOf(b["created_at"])), strings.Compare(text(a["contract_id"]), text(b["contract_id"])))
		})
		return project(top(rows, 10), "contract_id", "entity_name", "created_at")
	}},
	"How many creations, and archivals, have no counterpart?": {of: func(d *documented) [][]any {
		created, archived := groups(d.rows["created_events"], by("contract_id")), groups(d.rows["archived_events"], by("contract_id"))
		return [][]any{{len(created) - len(archived), 0}} // from the beginning each archival has a creation
	}},
	"Of which active contracts is a party a stakeholder?": {of: func(d *documented) [][]any {
		return tally(only(d.rows["active_contracts"], func(r sandbox.Row) bool {
			return listing("signatories", d.given["party"])(r) || listing("observers", d.given["party"])(r)
		}), by("entity_name"), number)
	}},
	"Contracts through an interface, by owner": {of: func(d *documented) [][]any {
		active := map[string]bool{}
		for _, r := range d.rows["active_contracts"] {
			active[plainRow(columnsOf(r, "activated_offset", "activated_node_id"))] = true
		}
		return tally(only(d.rows["interface_views"], func(r sandbox.Row) bool {
			return r["package_name"] == "bank-api" && r["entity_name"] == "Holding" && whole(r["status_code"]) == 0 && active[plainRow(columnsOf(r, "ledger_offset", "node_id"))]
		}), func(r sandbox.Row) []any { return []any{within(r["view_value"], "owner")} }, number)
	}},
	"Where is a contract active now?": {of: func(d *documented) [][]any {
		return project(only(d.rows["active_contracts"], is("contract_id", d.given["moved"])), "synchronizer_id", "activated_offset", "reassignment_counter")
	}},
}

var pastAnswers = map[string]answer{
	"What was active at an offset, by template?": {of: func(d *documented) [][]any {
		return tally(d.at(d.n)["active_contracts"], template, number)
	}},
	"What was active at a time?": {of: func(d *documented) [][]any {
		return tally(d.at(d.offsetAt("2026-01-01T00:10:00Z"))["active_contracts"], by("entity_name"), number)
	}},
	"What was the sum of a field at an offset?": {of: func(d *documented) [][]any {
		return tally(only(d.at(d.n)["active_contracts"], ofBank), func(r sandbox.Row) []any { return []any{within(r["payload"], "holding", "instrument", "id")} },
			total(inside("payload", "holding", "amount", "initialAmount")))
	}},
	"Who held what at an offset?": {of: func(d *documented) [][]any {
		return tally(d.amulets(d.at(d.n)["holdings"]), by("owner"), total(column("amount")))
	}},
	"What did a party hold at a time?": {of: func(d *documented) [][]any {
		return [][]any{{total(column("amount"))(only(d.amulets(d.at(d.offsetAt("2026-01-01T00:10:00Z"))["holdings"]), is("owner", d.given["party"])))}}
	}},
	"How did holdings change between two offsets?": {of: func(d *documented) (out [][]any) {
		var rows []sandbox.Row
		for sign, offset := range map[int64]int64{-1: d.n, 1: d.m} {
			for _, r := range d.amulets(d.at(offset)["holdings"]) {
				rows = append(rows, sandbox.Row{"owner": r["owner"], "amount": new(big.Rat).Mul(rational(r["amount"]), big.NewRat(sign, 1)).RatString()})
			}
		}
		for _, row := range tally(rows, by("owner"), total(column("amount"))) {
			if change, _ := row[1].(*big.Rat); change.Sign() != 0 {
				out = append(out, row)
			}
		}
		return out
	}},
	"How much of an instrument was there at the end of each period?": {of: func(d *documented) (out [][]any) {
		for _, end := range periods {
			out = append(out, []any{end, total(column("amount"))(d.amulets(d.at(d.offsetAt(end))["holdings"]))})
		}
		return out
	}},
	"How many contracts of each template were there at the end of each period?": {of: func(d *documented) (out [][]any) {
		for _, end := range periods {
			active := d.at(d.offsetAt(end))["active_contracts"]
			for _, of := range groups(only(d.rows["created_events"], is("acs_delta", true)), by("entity_name")) {
				out = append(out, []any{of.key[0], end, len(only(active, is("entity_name", of.key[0])))})
			}
		}
		return out
	}},
	"Everything that happened to a contract": {of: func(d *documented) [][]any {
		return project(only(d.rows["events"], is("contract_id", d.given["contract"])), "ledger_offset", "kind", "choice", "acting_parties")
	}},
	"How far do the data go?": {of: func(d *documented) [][]any {
		last := d.rows["updates"][len(d.rows["updates"])-1]
		return [][]any{{d.ledger.End(), last["record_time"]}}
	}},
	"Which offset belongs to a time, and which time to an offset?": {of: func(d *documented) [][]any {
		return [][]any{{d.offsetAt("2026-01-01T00:10:00Z"), only(d.rows["updates"], func(r sandbox.Row) bool { return whole(r["ledger_offset"]) == d.n })[0]["record_time"]}}
	}},
	"What is new since an offset?": {of: func(d *documented) [][]any {
		return project(only(d.rows["created_events"], func(r sandbox.Row) bool { return whole(r["ledger_offset"]) > d.n }), "ledger_offset", "node_id", "contract_id")
	}},
	"The next page of a long list": {of: func(d *documented) [][]any {
		return project(top(only(sorted(d.rows["created_events"], false, "ledger_offset", "node_id"), func(r sandbox.Row) bool {
			return whole(r["ledger_offset"]) > d.n || whole(r["ledger_offset"]) == d.n && whole(r["node_id"]) > 0
		}), 100), "ledger_offset", "node_id", "contract_id")
	}},
	"What changed behind a reader?":                              {empty: true, of: func(*documented) [][]any { return nil }},
	"Is a range complete?":                                       {of: func(*documented) [][]any { return [][]any{{true, false}} }},
	"Up to where was everything compared with the ledger?":       {of: func(*documented) [][]any { return [][]any{{true, true}} }},
	"Which windows differed when they were compared?":            {empty: true, of: func(*documented) [][]any { return nil }},
	"Is there anything that is not understood, or stored apart?": {of: func(*documented) [][]any { return [][]any{{0, 0, 0}} }},
}
