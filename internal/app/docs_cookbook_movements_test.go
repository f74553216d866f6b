package app

import (
	"math/big"

	"ledgerindexer/sandbox"
)

// movementsOf are the model's movements between two offsets.
func (d *documented) movementsOf(low, high int64, fits func(sandbox.Row) bool) []sandbox.Row {
	return only(d.rows["token_events"], both(both(after(low, high), is("admin_signed", true)), fits))
}

var movementAnswers = map[string]answer{
	"What moved for a party?": {of: func(d *documented) [][]any {
		return project(d.movementsOf(d.n, d.m, is("party", d.given["party"])), "ledger_offset", "node_id", "label", "counterparties", "instrument", "amount", "reason")
	}},
	"How did a party's balance develop?": {of: func(d *documented) (out [][]any) {
		mine := is("owner", d.given["party"])
		balance := total(column("amount"))(append(only(d.amulets(d.at(d.n)["holdings"]), mine), sandbox.Row{"amount": "0"})).(*big.Rat)
		for _, r := range d.amulets(sorted(d.movementsOf(d.n, d.m, is("party", d.given["party"])), false, "ledger_offset", "node_id")) {
			balance = new(big.Rat).Add(balance, rational(r["amount"]))
			out = append(out, append(columnsOf(r, "ledger_offset", "node_id", "label", "counterparties", "amount"), balance))
		}
		return out
	}},
	"Who sent how much of an instrument to whom?": {of: func(d *documented) [][]any {
		var transfers []sandbox.Row
		for _, r := range d.movementsOf(d.n, d.m, both(is("label", "TransferOut"), is("instrument", "Amulet"))) {
			for i, receiver := range r["counterparties"].([]any) {
				transfers = append(transfers, sandbox.Row{"sender": r["party"], "receiver": receiver, "amount": r["counterparty_amounts"].([]any)[i]})
			}
		}
		return tally(transfers, by("sender", "receiver"), number, total(column("amount")))
	}},
	"What was burned, by kind?": {of: func(d *documented) [][]any {
		var burns []sandbox.Row // a participant's movements burn by choices of their own, except for dust
		for _, r := range d.movementsOf(d.n, d.m, is("label", "ExpireDust")) {
			burns = append(burns, sandbox.Row{"kind": "dust", "amount": r["archived_amount"]})
		}
		return tally(burns, by("kind"), number, total(column("amount")))
	}},
	"Which offered transfers wait for an answer?": {of: func(d *documented) [][]any {
		return project(only(d.ledger.TransferInstructions(d.scope, d.ledger.End()), is("pending", true)), "contract_id", "sender", "receiver", "amount", "execute_before")
	}},
}
