package sandbox

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
)

// TokenEvents returns what ledger.token_events must hold, of the parties that are hosted here, after a database has
// indexed every update from genesis to an offset in a scope with exercises. They come from the ledger's decisions: a
// movement that an exercise begins is one event for each owner, and every other change of a holding is one for itself.
func (l *Ledger) TokenEvents(scope Scope, upTo int64) []Row {
	t := &tokenTruth{truth: l.newTruth(scope), known: map[int32]bool{}, active: map[int32]int{},
		archived: map[int32]bool{}}
	for i := range t.after(upTo) {
		switch u := &t.view.updates[i]; u.kind {
		case kindTransaction:
			t.transaction(i, u)
		case kindReassignment:
			t.reassignment(i, u)
		}
	}
	return t.rows
}

// TransferInstructions returns what ledger.pending_instructions must hold: as TokenEvents.
func (l *Ledger) TransferInstructions(scope Scope, upTo int64) []Row {
	t := l.newTruth(scope)
	rows := map[int32]Row{}
	var order []int32
	for i := range t.after(upTo) {
		u := &t.view.updates[i]
		if u.kind != kindTransaction {
			continue
		}
		for j := range t.events[u.first : u.first+u.count] {
			e := &t.events[int(u.first)+j]
			c := &t.contracts[e.contract]
			if s := t.sightOf(t.filter, e); c.kind/2 != templateTransferInstruction || !s.match {
				continue
			}
			if e.choice < 0 {
				id := string(t.contractID(nil, e.contract))
				rows[e.contract] = Row{
					"contract_id": id, "transfer_id": id, "pending": true, "status": "pending", "sender": t.parties[c.parties[1]],
					"receiver":   t.parties[c.parties[2]],
					"instrument": amuletName, "instrument_admin": t.parties[t.dso], "admin_signed": true, "amount": decimal(c.amount),
					"execute_before": instant(u.effective() + 86_400_000_000), "created_offset": number(u.offset),
					"created_node_id": number(e.node),
					"choice":          nil, "ended_offset": nil, "ended_node_id": nil, "ended_at": nil,
					"requested_at": instant(u.effective()), "created_at": instant(u.effective()),
					"reason": nil, "waits_for": nil, "next_contract_id": nil,
				}
				order = append(order, e.contract)
			} else if r := rows[e.contract]; r != nil {
				choice := e.served.template().choices[e.choice].name
				r["pending"], r["choice"], r["ended_offset"], r["ended_node_id"], r["ended_at"] = false, choice, number(u.offset),
					number(e.node), instant(u.record)
				r["status"] = map[string]string{
					"TransferInstruction_Accept": "completed", "TransferInstruction_Withdraw": "withdrawn",
					"TransferInstruction_Reject": "rejected",
				}[choice]
			}
		}
	}
	list := make([]Row, len(order))
	for i, contract := range order {
		list[i] = rows[contract]
	}
	return list
}

// tokenTruth follows holdings through updates.
type tokenTruth struct {
	*truth
	known    map[int32]bool // contracts whose creation was shown
	active   map[int32]int  // on how many synchronizers
	archived map[int32]bool
	rows     []Row
}

// changeOf is a change of a holding.
type changeOf struct {
	contract int32
	created  bool
}

// tokenEvent collects the changes of one event of one owner.
type tokenEvent struct {
	node       int32
	movement   int // number, or -1
	holding    holdingView
	signed     bool
	label      string // of what no movement explains
	changes    []changeOf
	made, used sum
	locked     sum
}

// sum is a sum as PostgreSQL writes it: 0 if there is nothing to add.
type sum struct {
	total big.Rat
	some  bool
}

func (s *sum) add(amount *big.Rat) {
	s.total.Add(&s.total, amount)
	s.some = true
}

func (s *sum) number() json.Number {
	if !s.some {
		return "0"
	}
	return exactly(&s.total)
}

// holdingOf returns what a contract holds, if its template and the scope let it be seen.
func (t *tokenTruth) holdingOf(n int32) (h holdingView, ok bool) {
	c := &t.contracts[n]
	amulet := c.kind/2 == templateAmulet || c.kind/2 == templateLockedAmulet
	seen := t.filter.transactions.any
	if !amulet && (!c.kind.template().implements(ifaceTokenHolding) || t.viewFails(n, ifaceTokenHolding) || seen == nil ||
		seen[c.kind].views&(1<<ifaceTokenHolding) == 0) {
		return h, false
	}
	return t.tokenHolding(n), true
}

func (t *tokenTruth) transaction(i int, u *update) {
	movements := map[int32]int{} // by event
	for n := range t.movements {
		m := &t.movements[n]
		head := &t.events[m.first]
		if int(m.update) != i || head.choice < 0 {
			continue
		}
		if s := t.sightOf(t.filter, head); s.match {
			for e := m.first; e < m.first+m.count; e++ {
				movements[e] = n
			}
		}
	}
	var events []*tokenEvent
	for j := u.first; j < u.first+u.count; j++ {
		e := &t.events[j]
		s := t.sightOf(t.filter, e)
		if !s.match {
			continue
		}
		created := e.choice < 0
		switch {
		case created:
			t.known[e.contract] = true
			if s.acs {
				t.active[e.contract]++
			}
		case !e.served.template().choices[e.choice].consuming:
			continue
		default:
			t.archived[e.contract] = true
			if !t.known[e.contract] {
				continue
			}
		}
		h, ok := t.holdingOf(e.contract)
		if !ok {
			continue
		}
		number, moved := movements[j]
		if !moved {
			number = -1
		}
		label := map[bool]string{true: "Create", false: "Archive"}[created]
		node := e.node
		if moved {
			node = t.events[t.movements[number].first].node
		}
		events = t.add(events, node, number, label, h, changeOf{e.contract, created})
	}
	t.finish(i, u, events)
}

func (t *tokenTruth) reassignment(i int, u *update) {
	var events []*tokenEvent
	for _, l := range t.legs[u.first : u.first+u.count] {
		r := &t.reassignments[l.reassignment]
		s := t.holdersSight(t.filter.reassignments, &t.contracts[r.contract])
		if !s.match {
			continue
		}
		before := t.active[r.contract]
		label, changes := "Unassigned", before == 1
		if t.active[r.contract]--; l.assign {
			t.known[r.contract] = true
			t.active[r.contract] += 2
			label, changes = "Assigned", before == 0
		}
		h, ok := t.holdingOf(r.contract)
		if !ok || !changes || t.archived[r.contract] {
			continue
		}
		events = t.add(events, l.node, -1, label, h, changeOf{r.contract, l.assign})
	}
	t.finish(i, u, events)
}

// add adds a change to the event of its owner, instrument and node.
func (t *tokenTruth) add(events []*tokenEvent, node int32, movement int, label string, h holdingView,
	change changeOf) []*tokenEvent {
	c := &t.contracts[change.contract]
	signed := slices.Contains(c.parties[:c.signatories], h.admin)
	at := slices.IndexFunc(events, func(e *tokenEvent) bool {
		return e.node == node && e.holding.owner == h.owner && e.holding.instrument == h.instrument &&
			e.holding.admin == h.admin && e.signed == signed
	})
	if at < 0 {
		at = len(events)
		events = append(events, &tokenEvent{node: node, movement: movement, holding: h, signed: signed, label: label})
	}
	e := events[at]
	e.changes = append(e.changes, change)
	amount, _ := new(big.Rat).SetString(h.amount)
	if change.created {
		e.made.add(amount)
	} else {
		e.used.add(amount)
		amount = new(big.Rat).Neg(amount)
	}
	if h.holder >= 0 {
		e.locked.add(amount)
	}
	return events
}

func (e *tokenEvent) net() *big.Rat { return new(big.Rat).Sub(&e.made.total, &e.used.total) }

func exactly(n *big.Rat) json.Number { return json.Number(n.FloatString(10)) }

// finish adds the rows of an update.
func (t *tokenTruth) finish(i int, u *update, events []*tokenEvent) {
	slices.SortStableFunc(events, func(a, b *tokenEvent) int { return cmp.Compare(a.node, b.node) })
	for _, e := range events {
		if int(e.holding.owner) >= t.hosted {
			continue
		}
		made, used := []any{}, []any{}
		for _, change := range e.changes {
			id := string(t.contractID(nil, change.contract))
			if change.created {
				made = append(made, id)
			} else {
				used = append(used, id)
			}
		}
		r := Row{
			"ledger_offset": number(u.offset), "node_id": number(e.node), "party": t.parties[e.holding.owner],
			"instrument":       e.holding.instrument,
			"instrument_admin": t.parties[e.holding.admin], "admin_signed": e.signed, "label": e.label,
			"counterparties": []any{}, "counterparty_amounts": nil,
			"amount": exactly(e.net()), "created_amount": e.made.number(), "archived_amount": e.used.number(),
			"locked_amount":    e.locked.number(),
			"created_holdings": made, "archived_holdings": used, "burned_amount": nil, "minted_amount": nil, "reason": nil,
			"standard": nil, "choice": nil,
			"instruction_id": nil, "meta": map[string]any{}, "legs": nil, "update_id": t.updateIDOf(i),
			"record_time": instant(u.record),
		}
		if e.movement >= 0 {
			t.explained(r, e, events)
		}
		t.rows = append(t.rows, r)
	}
}

// explained adds what a movement says of an owner's changes.
func (t *tokenTruth) explained(r Row, e *tokenEvent, events []*tokenEvent) {
	m := &t.movements[e.movement]
	head := &t.events[m.first]
	r["standard"], r["choice"] = "V1", head.served.template().choices[head.choice].name
	if reason := t.reasonOf(e.movement); reason != "" && reason != `""` {
		r["reason"] = value([]byte(reason))
	}
	for _, made := range t.events[m.first : m.first+m.count] {
		if t.contracts[made.contract].kind/2 == templateTransferInstruction {
			r["instruction_id"] = string(t.contractID(nil, made.contract))
		}
	}
	switch m.kind {
	case moveUnlock:
		r["label"] = "Unlock"
		return
	case moveExpire:
		r["label"] = "ExpireDust"
		return
	}
	burned := big.NewRat(t.burnedBy(e.movement), unit)
	minted := new(big.Rat).Set(burned)
	var receivers, received []any
	others := slices.SortedFunc(slices.Values(events), func(a, b *tokenEvent) int {
		return cmp.Compare(t.parties[a.holding.owner], t.parties[b.holding.owner])
	})
	sender := t.senderOf(m)
	for _, o := range others {
		if o.node != e.node || o.movement != e.movement {
			continue
		}
		minted.Add(minted, o.net())
		if o.holding.owner != sender && slices.ContainsFunc(o.changes, func(c changeOf) bool { return c.created }) {
			receivers, received = append(receivers, t.parties[o.holding.owner]), append(received, o.made.number())
		}
	}
	r["burned_amount"], r["minted_amount"] = exactly(burned), exactly(minted)
	switch {
	case m.kind == moveTraffic:
		r["label"] = "Burn"
	case !m.kind.isTransfer() || receivers == nil:
		r["label"] = "MergeSplit"
	case e.holding.owner == sender:
		r["label"], r["counterparties"], r["counterparty_amounts"] = "TransferOut", receivers, received
	default:
		r["label"], r["counterparties"] = "TransferIn", []any{t.parties[sender]}
		r["burned_amount"], r["minted_amount"] = json.Number("0"), json.Number("0")
	}
}
