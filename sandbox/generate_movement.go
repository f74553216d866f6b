package sandbox

import "slices"

// At regular intervals an update certainly has a movement, cycling through all kinds, so that the history of a few
// hundred updates has some of everything. Reassignments and topology transactions are in other updates.
const (
	movementEvery = 20
	movementAt    = 4
)

// An offered transfer: the instruction and the amulet that is locked for it. They are never reassigned, as nothing but
// what settles them may use them.
type offered struct{ instruction, locked int32 } // activations

// scenes is the cycle of the certain movements: a transfer by default, and a tap where nobody has an amulet to move.
var scenes = [...]movementKind{
	0: moveTap, 1: moveMint, 2: moveOffer, 4: moveOffer, 6: moveOffer, 7: moveAccept, 8: movePreapproved, 9: moveWithdraw,
	10: moveOffer, 11: moveReject, 12: moveTraffic,
}

// wrappedScene is the one with two transfers below an exercise.
const wrappedScene = 5

func (g *generator) scene(t *tx) {
	number := g.scenes % len(scenes)
	g.scenes++
	position, ok := g.amuletIn(t)
	switch kind := scenes[number]; {
	case kind == moveMint:
		g.wrap(t, func(below witnesses, node int32) { g.twins(t, below, node) })
	case (kind == moveAccept || kind == moveWithdraw || kind == moveReject) && len(g.offers[t.synchronizer]) > 0:
		g.settleOffer(t, witnesses{}, kind)
	case kind == moveTap || !ok:
		g.issue(t, witnesses{}, moveTap, -1, uint16(g.rng.intn(g.hosted)), g.issued())
	case number == wrappedScene:
		g.wrap(t, func(below witnesses, node int32) {
			g.spend(t, below, position, kind, node)
			if position, ok := g.amuletIn(t); ok {
				g.spend(t, below, position, kind, node)
			}
		})
	case kind == moveTraffic || kind.isTransfer() && kind != moveAccept:
		g.spend(t, witnesses{}, position, kind, -1)
	default: // no offer to settle
		g.spend(t, witnesses{}, position, moveOffer, -1)
	}
}

// amuletIn finds an amulet that is not locked among the younger contracts that the transaction may use.
func (g *generator) amuletIn(t *tx) (position int, ok bool) {
	pool := g.pool[t.synchronizer]
	for i := len(pool) - 1; i >= max(0, len(pool)-256); i-- {
		if g.contracts[g.activations[pool[i]].contract].kind/2 == templateAmulet {
			return i, true
		}
	}
	return 0, false
}

// wrap adds an exercise that archives nothing, with the events of inner below it. Records are named after its node. If
// no contract can be exercised, inner is not wrapped, and node is -1.
func (g *generator) wrap(t *tx, inner func(below witnesses, node int32)) {
	pool := g.pool[t.synchronizer]
	for i := len(pool) - 1; i >= max(0, len(pool)-256); i-- {
		c := g.activations[pool[i]].contract
		if g.contracts[c].kind.isAmulet() {
			continue
		}
		e := event{contract: c, served: g.contracts[c].kind, choice: g.pickChoice(g.contracts[c].kind, false),
			actor: g.contracts[c].parties[0]}
		at := g.push(t, e, witnesses{})
		inner(witnesses{}.with(g.contracts[c].parties[:g.contracts[c].signatories]...), g.events[at].node)
		g.events[at].last = t.node - 1
		return
	}
	inner(witnesses{}, -1)
}

// twins are two mints that are equal in everything, and a tap.
func (g *generator) twins(t *tx, seen witnesses, node int32) {
	owner, amount := uint16(g.rng.intn(g.hosted)), g.issued()
	for range 2 {
		g.issue(t, seen, moveMint, node, owner, amount)
	}
	g.issue(t, seen, moveTap, node, uint16(g.rng.intn(g.hosted)), g.issued())
}

func (g *generator) issued() int64 {
	return int64(1+g.rng.intn(100_000))*unit + int64(g.rng.intn(int(unit)))
}

// issue mints or taps an amulet. The record is named after node, or, if that is -1, after the creation.
func (g *generator) issue(t *tx, seen witnesses, kind movementKind, node int32, owner uint16, amount int64) {
	m := g.begin(t, kind, node)
	g.amulet(t, seen, amount, owner)
	g.finish(m)
}

// begin starts a movement with the next event; finish ends it with the last one.
func (g *generator) begin(t *tx, kind movementKind, node int32) movement {
	if node < 0 {
		node = t.node
	}
	return movement{update: t.index, node: node, first: int32(len(g.events)), kind: kind}
}

func (g *generator) finish(m movement) {
	m.count = int32(len(g.events)) - m.first
	g.movements = append(g.movements, m)
}

// moveAmulet uses the amulet, or the locked one, at a position of the pool.
func (g *generator) moveAmulet(t *tx, seen witnesses, position int) {
	c := g.activations[g.pool[t.synchronizer][position]].contract
	switch locked := g.contracts[c].kind/2 == templateLockedAmulet; {
	case locked && g.rng.chance(40):
		g.unlock(t, seen, position)
	case locked || t.left < 2 || g.rng.chance(40):
		g.expire(t, seen, position)
	default:
		kinds := [...]movementKind{
			moveTransfer, moveTransfer, moveTransfer, moveTransfer, movePreapproved, movePreapproved, moveOffer, moveOffer,
			moveTraffic,
		}
		g.spend(t, seen, position, kinds[g.rng.intn(len(kinds))], -1)
	}
}

// take releases the contract at a position of the pool and returns its activation.
func (g *generator) take(t *tx, position int) int32 {
	a := g.pool[t.synchronizer][position]
	g.release(t.synchronizer, position)
	return a
}

// consumed adds the exercise that archives an activation. It returns the number of the event.
func (g *generator) consumed(t *tx, seen witnesses, activated int32, choice int8, actor uint16) int {
	c := g.activations[activated].contract
	e := event{contract: c, served: g.contracts[c].kind, acs: g.end(t, activated), choice: choice, actor: actor}
	if upgraded := kindOf(int(e.served/2), 1); g.rng.chance(30) {
		e.served = upgraded
	}
	return g.push(t, e, seen)
}

func (g *generator) expire(t *tx, seen witnesses, position int) {
	a := g.take(t, position)
	m := g.begin(t, moveExpire, -1)
	g.consumed(t, seen, a, choiceExpire, g.dso)
	g.finish(m)
}

// unlock makes a locked amulet one that its owner may use.
func (g *generator) unlock(t *tx, seen witnesses, position int) {
	a := g.take(t, position)
	c := g.contracts[g.activations[a].contract]
	m := g.begin(t, moveUnlock, -1)
	at := g.consumed(t, seen, a, choiceUnlock, c.parties[c.signatories-1])
	g.amulet(t, seen.with(c.parties[:c.signatories]...), c.amount, c.parties[1])
	g.events[at].last = t.node - 1
	g.finish(m)
}

// worth returns the value of an amulet in the current update.
func (g *generator) worth(c *contract) int64 {
	return c.amount - holdingFee(c.amount, g.createdRound(c), g.round())
}

// usable returns what a transfer has of an amulet.
func (g *generator) usable(q *terms, c *contract) int64 {
	if q.free {
		return c.amount
	}
	return g.worth(c)
}

func (g *generator) round() int64 { return roundOf(&update{record: g.record}) }

func (g *generator) createdRound(c *contract) int64 {
	if int(c.created) == len(g.updates) { // the current one
		return g.round()
	}
	return roundOf(&g.updates[c.created])
}

// inputs returns positions of the pool, the highest first: the given one, and up to two amulets of the same owner.
func (g *generator) inputs(t *tx, position int) []int {
	pool := g.pool[t.synchronizer]
	first := &g.contracts[g.activations[pool[position]].contract]
	list := []int{position}
	for i := len(pool) - 1; i >= max(0, len(pool)-24) && len(list) < 3; i-- {
		c := &g.contracts[g.activations[pool[i]].contract]
		if i != position && c.kind/2 == templateAmulet && c.parties[1] == first.parties[1] && g.rng.chance(50) {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return b - a })
	return list
}

// spend makes a transfer or an offer of amulets of one owner. Amulets worth too little expire instead.
func (g *generator) spend(t *tx, seen witnesses, position int, kind movementKind, node int32) {
	q := g.termsOf(len(g.movements), kind, formOfTerms)
	positions := g.inputs(t, position)
	var available int64
	for _, p := range positions {
		available += g.usable(&q, &g.contracts[g.activations[g.pool[t.synchronizer][p]].contract])
	}
	if available < leastTransfer {
		g.expire(t, seen, position)
		return
	}
	taken := make([]int32, len(positions))
	for i, p := range positions {
		taken[i] = g.take(t, p)
	}
	sender := g.contracts[g.activations[taken[0]].contract].parties[1]
	d := q.settle(available + q.rewarded())
	m := g.begin(t, kind, node)
	at := g.consumed(t, seen, taken[0], choiceTransfer, sender)
	below := seen.with(g.dso, sender)
	for _, a := range taken[1:] {
		g.consumed(t, below, a, choiceArchive, sender)
	}
	for i := range d.receivers {
		switch receiver := g.receiver(sender, kind); {
		case kind == moveTraffic: // is burned
		case kind == moveTransfer && q.direct:
			g.amulet(t, below, d.sent[i], sender)
		case kind == moveOffer:
			locked := g.lockedAmulet(t, below, d.sent[i], sender, g.dso)
			instruction := g.instruction(t, below, d.sent[i], sender, receiver)
			g.offers[t.synchronizer] = append(g.offers[t.synchronizer], offered{instruction: instruction, locked: locked})
		case d.locked[i]:
			g.pool[t.synchronizer] = append(g.pool[t.synchronizer], g.lockedAmulet(t, below, d.sent[i]-d.fees[i], receiver,
				sender))
		default:
			g.amulet(t, below, d.sent[i]-d.fees[i], receiver)
		}
	}
	if d.change > 0 {
		g.amulet(t, below, d.change, sender)
	}
	g.events[at].last = t.node - 1
	g.finish(m)
}

// receiver draws another party than the sender. Some transfers go to one that is hosted elsewhere.
func (g *generator) receiver(sender uint16, kind movementKind) uint16 {
	if kind == movePreapproved && g.rng.chance(20) {
		return uint16(g.hosted + g.rng.intn(remoteParties))
	}
	party := uint16(g.rng.intn(g.hosted - 1))
	if party >= sender {
		party++
	}
	return party
}

// settleOffer accepts one of the offered transfers, or aborts it.
func (g *generator) settleOffer(t *tx, seen witnesses, kind movementKind) {
	offers := g.offers[t.synchronizer]
	i := g.rng.intn(len(offers))
	o := offers[i]
	locked, instruction := g.contracts[g.activations[o.locked].contract],
		g.contracts[g.activations[o.instruction].contract]
	sender, receiver := instruction.parties[1], instruction.parties[2]
	if kind == moveAccept && g.worth(&locked) < unit {
		kind = moveReject
	}
	offers[i] = offers[len(offers)-1]
	g.offers[t.synchronizer] = offers[:len(offers)-1]
	m := g.begin(t, kind, -1)
	choice, actor := int8(choiceAccept), receiver
	switch kind {
	case moveWithdraw:
		choice, actor = choiceWithdraw, sender
	case moveReject:
		choice = choiceReject
	}
	at := g.consumed(t, seen, o.instruction, choice, actor)
	below := seen.with(g.dso, sender, actor)
	g.consumed(t, below, o.locked, choiceUnlock, g.dso)
	if kind == moveAccept {
		q := g.termsOf(len(g.movements), kind, formOfTerms)
		d := q.settle(g.usable(&q, &locked))
		g.amulet(t, below, d.sent[0]-d.fees[0], receiver)
	} else {
		g.amulet(t, below, locked.amount, sender)
	}
	g.events[at].last = t.node - 1
	g.finish(m)
}

// amulet adds the creation of an amulet. Only those of parties that are hosted here may be used again.
func (g *generator) amulet(t *tx, seen witnesses, amount int64, owner uint16) {
	c := contract{amount: amount, signatories: 2, parties: [4]uint16{g.dso, owner}}
	if int(owner) >= g.hosted {
		c.flags = flagDivulged
		g.adopt(t, seen, templateAmulet, c)
		return
	}
	g.pool[t.synchronizer] = append(g.pool[t.synchronizer], g.adopt(t, seen, templateAmulet, c))
}

// lockedAmulet adds the creation of a locked amulet and returns its activation.
func (g *generator) lockedAmulet(t *tx, seen witnesses, amount int64, owner, holder uint16) int32 {
	c := contract{amount: amount, signatories: 2, parties: [4]uint16{g.dso, owner}}
	if holder != g.dso {
		c.signatories, c.parties[2] = 3, holder
	}
	return g.adopt(t, seen, templateLockedAmulet, c)
}

// instruction adds the creation of an offered transfer, right after that of the amulet that is locked for it.
func (g *generator) instruction(t *tx, seen witnesses, amount int64, sender, receiver uint16) int32 {
	return g.adopt(t, seen, templateTransferInstruction, contract{
		amount: amount, signatories: 2, observers: 1, parties: [4]uint16{g.dso, sender, receiver},
	})
}

// adopt adds a creation, and its activation if it has a stakeholder here, which it returns.
func (g *generator) adopt(t *tx, seen witnesses, template int, c contract) int32 {
	c.created, c.kind = t.index, kindOf(template, 0)
	if g.rng.chance(40) {
		c.kind++
	}
	number := int32(len(g.contracts))
	g.contracts = append(g.contracts, c)
	node := t.node
	g.push(t, event{contract: number, choice: -1, served: c.kind, acs: c.flags == 0}, seen)
	if c.flags != 0 {
		return -1
	}
	g.created++
	g.live++
	g.activations = append(g.activations, activation{
		contract: number, update: t.index, node: node, until: -1, synchronizer: t.synchronizer,
	})
	return int32(len(g.activations) - 1)
}
