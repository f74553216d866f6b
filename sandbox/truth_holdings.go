package sandbox

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
)

// Holdings returns what ledger.holdings and ledger.holding_totals must hold after a database has indexed every update
// from genesis to an offset in a scope: amulets by their payload where that is shown, and else, as anything that
// implements the token standard's Holding interface, by the view.
func (l *Ledger) Holdings(scope Scope, at int64) map[string][]Row {
	t := l.newTruth(scope)
	t.updates(0, t.after(at))
	latest := map[int32]stay{}
	for s := range t.active {
		if other, ok := latest[s.contract]; !ok || activatedBefore(t.active[other], t.active[s]) {
			latest[s.contract] = s
		}
	}
	numbers := make([]int32, 0, len(latest))
	for n := range latest {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	rows := map[string][]Row{"holdings": {}, "holding_totals": {}}
	for _, n := range numbers {
		if row := t.holding(n, t.active[latest[n]]); row != nil {
			rows["holdings"] = append(rows["holdings"], row)
		}
	}
	rows["holding_totals"] = holdingTotals(rows["holdings"])
	return rows
}

func activatedBefore(a, b Row) bool {
	at := func(r Row, column string) int64 {
		n, _ := r[column].(json.Number).Int64() // made by number
		return n
	}
	return cmp.Or(cmp.Compare(at(a, "activated_offset"), at(b, "activated_offset")),
		cmp.Compare(at(a, "activated_node_id"), at(b, "activated_node_id"))) < 0
}

// holding returns the row of an active contract, or nil if it is no holding. An amulet without payload and view has a
// row without details.
func (t *truth) holding(n int32, active Row) Row {
	c := &t.contracts[n]
	amulet := c.kind/2 == templateAmulet || c.kind/2 == templateLockedAmulet
	s := t.holdersSight(t.filter.transactions, c)
	viewed := s.views&(1<<ifaceTokenHolding) != 0 && !t.viewFails(n, ifaceTokenHolding)
	if !amulet && !viewed {
		return nil
	}
	r := Row{
		"owner": nil, "instrument": nil, "instrument_admin": nil, "amount": nil, "locked": nil, "locked_until": nil,
		"lock_holders": nil,
		"contract_id":  active["contract_id"], "created_at": active["created_at"],
		"activated_offset": active["activated_offset"],
		"created_round":    nil, "holding_fee_rate": nil, "admin_signed": false, "synchronizer_id": active["synchronizer_id"],
		"unread_amount":     nil,
		"activated_node_id": active["activated_node_id"], "template_id": active["template_id"],
		"package_id":   active["package_id"],
		"package_name": active["package_name"], "module_name": active["module_name"], "entity_name": active["entity_name"],
	}
	if !viewed && !s.arguments {
		return r
	}
	h := t.tokenHolding(n)
	r["owner"], r["instrument"], r["instrument_admin"] = t.parties[h.owner], h.instrument, t.parties[h.admin]
	amount, _ := new(big.Rat).SetString(h.amount)
	r["amount"], r["locked"] = exactly(amount), h.holder >= 0
	r["admin_signed"] = slices.Contains(c.parties[:c.signatories], h.admin)
	if h.holder >= 0 {
		r["lock_holders"] = []any{t.parties[h.holder]}
	}
	if h.expires != 0 {
		r["locked_until"] = instant(h.expires)
	}
	if amulet {
		r["created_round"], r["holding_fee_rate"] = number(t.round(c)), decimal(feeRate(t.round(c)))
		if !s.arguments { // the view's text has no trailing zeros
			r["holding_fee_rate"] = json.Number(trimmedRate(t.round(c)))
		}
	}
	return r
}

// holdingTotals adds holdings up, in the order in which their owners and instruments come.
func holdingTotals(holdings []Row) []Row {
	type total struct {
		row             Row
		all, locked     *big.Rat
		held, free, any int
		unread          int // amounts that are not known
	}
	totals := map[string]*total{}
	var order []string
	for _, h := range holdings {
		key := mustJSON([]any{h["owner"], h["instrument"], h["instrument_admin"], h["admin_signed"]})
		t := totals[key]
		if t == nil {
			t = &total{all: new(big.Rat), locked: new(big.Rat), row: Row{
				"owner": h["owner"], "instrument": h["instrument"], "instrument_admin": h["instrument_admin"],
				"admin_signed": h["admin_signed"],
			}}
			totals[key] = t
			order = append(order, key)
		}
		t.any++
		text, ok := h["amount"].(json.Number)
		if !ok {
			t.unread++
			continue
		}
		amount, _ := new(big.Rat).SetString(text.String()) // a decimal
		t.all.Add(t.all, amount)
		if h["locked"] == true {
			t.held++
			t.locked.Add(t.locked, amount)
		} else {
			t.free++
		}
	}
	rows := make([]Row, 0, len(order))
	sum := func(n *big.Rat, of int) json.Number {
		if of == 0 {
			return "0"
		}
		return json.Number(n.FloatString(10))
	}
	for _, key := range order {
		t := totals[key]
		t.row["contracts"], t.row["unread_amounts"] = number(t.any), number(t.unread)
		t.row["amount"], t.row["locked_amount"], t.row["unlocked_amount"] = nil, nil, nil
		if t.unread == 0 { // of those without an amount nobody knows whether they are locked
			t.row["amount"], t.row["locked_amount"] = sum(t.all, t.any), sum(t.locked, t.held)
			t.row["unlocked_amount"] = sum(new(big.Rat).Sub(t.all, t.locked), t.free)
		}
		rows = append(rows, t.row)
	}
	return rows
}
