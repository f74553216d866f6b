package sandbox

import (
	"slices"
	"strconv"
)

// loggedAccount is what a movement changed of a party's account.
type loggedAccount struct {
	owner           uint16
	inputs, outputs []int32
	net             int64
	sides           []any // of the transfers that explain it
}

// logs returns the exercises by which the DSO, as version 2 of the token standard wants it, says what a movement
// changed: one for each account. Who is first to lose something, or to get it, sends to all others. What is left then
// was minted or is burned.
func (v *networkView) logs(m *movement) (list []networkChoice) {
	accounts := v.accounts(m)
	rest := int64(0)
	leg := func(of *loggedAccount, id, side string, other record, amount int64) {
		of.sides = append(of.sides, record{"transferLegId": id, "side": side, "otherside": other, "amount": figure(amount),
			"instrumentId": amuletName, "meta": noMeta()})
	}
	for i := range accounts {
		a := &accounts[i]
		if rest += a.net; i > 0 && a.net > 0 {
			id := "leg-" + strconv.Itoa(i)
			leg(&accounts[0], id, "SenderSide", v.accountOf(a.owner), a.net)
			leg(a, id, "ReceiverSide", v.accountOf(accounts[0].owner), a.net)
		}
	}
	special := func(id string) record { return record{"owner": nil, "provider": nil, "id": "cip-112/" + id} }
	switch {
	case rest > 0:
		leg(&accounts[0], "minted", "ReceiverSide", special("mint"), rest)
	case rest < 0:
		leg(&accounts[0], "burned", "SenderSide", special("burn"), -rest)
	}
	for i := range accounts {
		a := &accounts[i]
		log := v.onFactory("EventLog_HoldingsChange", interfaceAt("TransferEventsV2:EventLog"), v.dso,
			record{
				"admin": v.parties[v.dso], "account": v.accountOf(a.owner), "inputHoldingCids": v.idsOf(a.inputs),
				"outputHoldingCids": v.idsOf(a.outputs),
				"transferLegSides":  append([]any{}, a.sides...), "observers": []string{}, "extraArgs": v.extraArgs(),
			}, record{})
		log.from, log.over = m.count-1, -1
		list = append(list, log)
	}
	return list
}

// accounts returns the accounts that a movement changes, in the order in which it does.
func (v *view) accounts(m *movement) (list []loggedAccount) {
	for _, e := range v.events[m.first : m.first+m.count] {
		c := &v.contracts[e.contract]
		if !c.kind.holdsAmulet() {
			continue
		}
		at := slices.IndexFunc(list, func(a loggedAccount) bool { return a.owner == c.parties[1] })
		if at < 0 {
			at = len(list)
			list = append(list, loggedAccount{owner: c.parties[1]})
		}
		if a := &list[at]; e.choice < 0 {
			a.outputs, a.net = append(a.outputs, e.contract), a.net+c.amount
		} else {
			a.inputs, a.net = append(a.inputs, e.contract), a.net-c.amount
		}
	}
	return list
}
