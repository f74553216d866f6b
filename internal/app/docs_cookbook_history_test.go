package app

import (
	"math/big"

	"ledgerindexer/sandbox"
)

// received are the receivers of transfers, with who sent.
func (d *documented) received() (rows []sandbox.Row) {
	transfers := map[any]sandbox.Row{}
	for _, t := range d.rows["transfers"] {
		transfers[t["seq"]] = t
	}
	for _, r := range d.rows["transfer_receivers"] {
		t := transfers[r["seq"]]
		rows = append(rows, sandbox.Row{"seq": r["seq"], "date": t["date"], "sender": t["sender"], "party": r["party"], "amount": r["amount"],
			"fee": r["receiver_fee"], "net": new(big.Rat).Sub(rational(r["amount"]), rational(r["receiver_fee"])).RatString()})
	}
	return rows
}

// transfersOf are a party's rows of ledger.party_transfers, the latest first.
func (d *documented) transfersOf(party string) []sandbox.Row {
	var rows []sandbox.Row
	receivers := map[any][]sandbox.Row{}
	for _, r := range d.received() {
		receivers[r["seq"]] = append(receivers[r["seq"]], r)
	}
	for _, t := range d.rows["transfers"] {
		of := receivers[t["seq"]]
		if t["sender"] == party {
			var to []any
			for _, g := range groups(of, by("party")) {
				to = append(to, g.key[0])
			}
			sent := sandbox.Row{"seq": t["seq"], "date": t["date"], "direction": "sent", "counterparties": to, "amount": new(big.Rat).RatString(),
				"fee": t["sender_fee"]}
			if len(of) > 0 {
				sent["amount"] = total(column("amount"))(of).(*big.Rat).RatString()
			}
			sent["net_amount"] = new(big.Rat).Neg(new(big.Rat).Add(rational(sent["amount"]), rational(sent["fee"]))).RatString()
			rows = append(rows, sent)
		}
		if got := only(of, is("party", party)); len(got) > 0 {
			received := sandbox.Row{"seq": t["seq"], "date": t["date"], "direction": "received", "counterparties": []any{t["sender"]}}
			for name, from := range map[string]string{"amount": "amount", "fee": "fee", "net_amount": "net"} {
				received[name] = total(column(from))(got).(*big.Rat).RatString()
			}
			rows = append(rows, received)
		}
	}
	return rows
}

// newestRound is the round that the history has come to.
func (d *documented) newestRound() (newest int64) {
	for _, r := range d.rows["transactions"] {
		if r["round"] != nil {
			newest = max(newest, whole(r["round"]))
		}
	}
	return newest
}

var historyAnswers = map[string]answer{
	"The latest transfers of a party": {of: func(d *documented) [][]any {
		return exact(top(sorted(d.transfersOf(d.given["party"]), true, "seq"), 20), []string{"date", "direction", "counterparties"}, "net_amount", "amount", "fee")
	}},
	"What did a party send and receive?": {of: func(d *documented) [][]any {
		return tally(d.transfersOf(d.given["party"]), by("direction"), number, total(column("net_amount")))
	}},
	"What moved in a day?": {of: func(d *documented) [][]any {
		return [][]any{{len(d.rows["transfers"]), len(d.received()), total(column("net"))(d.received())}} // the whole ledger is in that day
	}},
	"Who sent how much to whom?": {of: func(d *documented) [][]any {
		return tally(d.received(), by("sender", "party"), total(column("net")))
	}},
	"Which fees did each party pay?": {of: func(d *documented) [][]any {
		var paid []sandbox.Row
		for _, t := range d.rows["transfers"] {
			for _, fee := range []string{"sender_fee", "sender_change_fee", "holding_fees"} {
				paid = append(paid, sandbox.Row{"party": t["sender"], "fee": t[fee]})
			}
		}
		return tally(append(paid, d.received()...), by("party"), total(column("fee")))
	}},
	"What did parties get in other ways than by transfers?": {of: func(d *documented) [][]any {
		return tally(append(only(d.rows["taps"], func(sandbox.Row) bool { return true }), d.rows["mints"]...), by("owner"), total(column("amount")))
	}},
	"Which balances did the service report up to a round?": {of: func(d *documented) (out [][]any) {
		for _, of := range groups(only(d.rows["balance_changes"], func(r sandbox.Row) bool { return r["round"] != nil && whole(r["round"]) <= 40 }), by("party")) {
			amount := total(column("change_to_initial_amount_as_of_round_zero"))(of.rows).(*big.Rat)
			rate := total(column("change_to_holding_fees_rate"))(of.rows).(*big.Rat)
			var balance any
			if left := new(big.Rat).Sub(amount, rate.Mul(rate, big.NewRat(41, 1))); left.Sign() >= 0 {
				balance = left
			}
			out = append(out, []any{of.key[0], balance})
		}
		return out
	}},
	"Which transfer instructions were withdrawn or rejected?": {of: func(d *documented) (out [][]any) {
		for _, a := range d.rows["aborted_transfer_instructions"] {
			for _, t := range only(d.rows["transfers"], is("instruction_cid", a["instruction_cid"])) {
				out = append(out, []any{a["abort_kind"], t["sender"], t["instruction_receiver"], t["instruction_amount"]})
			}
		}
		return out
	}},
	"Which contracts did a record create?": {of: func(d *documented) [][]any {
		return project(only(d.rows["created_events"], is("update_id", d.given["recorded"])), "contract_id", "entity_name")
	}},
	"Which records belong to an update?": {of: func(d *documented) [][]any {
		return project(only(d.rows["transactions"], is("update_id", d.given["recorded"])), "seq", "kind")
	}},
}

// exact is project with numbers that the model has as fractions.
func exact(rows []sandbox.Row, columns []string, numbers ...string) (out [][]any) {
	for _, r := range rows {
		row := columnsOf(r, columns...)
		for _, n := range numbers {
			row = append(row, rational(r[n]))
		}
		out = append(out, row)
	}
	return out
}
