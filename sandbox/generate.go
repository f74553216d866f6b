package sandbox

import "sync/atomic"

// generator makes the updates of a ledger, one after the other, from one stream of
// random numbers: its whole state is here, so growth can be cut anywhere.
type generator struct {
	*world
	tables
	opts    Options
	rng     rng
	record  int64
	pool    [2][]int32 // activations that a transaction may use, by synchronizer
	pending []pendingLeg
	foreign []int32      // divulged contracts, not yet archived
	created int          // contracts that were activated
	live    int          // of them, those still active
	early   bool         // the last reassignment began with its assignment
	offers  [2][]offered // by synchronizer
	scenes  int          // certain movements made so far
	far     far
}

// A pendingLeg is the second half of a reassignment, due at an update index.
type pendingLeg struct {
	due          int
	reassignment int32
}

func newGenerator(w *world, opts Options) generator {
	return generator{world: w, opts: opts, rng: derive(w.seed, domainGenerator, 0), record: genesis, far: newFar(w.seed)}
}

// At regular intervals an update certainly is a reassignment or a topology
// transaction, so that a ledger of a few hundred updates has some of everything.
// Every third time two reassignments overlap that begin with different halves.
const (
	reassignmentEvery = 50
	topologyEvery     = 60
)

// update adds one update.
func (g *generator) update() {
	index := len(g.updates)
	g.record += g.step()
	u := update{offset: g.nextOffset(), record: g.record}
	u.dealt = u.offset
	switch {
	case g.dueLegs(&u, index):
	case g.opts.Elsewhere && index%elsewhereEvery == elsewhereAt:
		g.elsewhere(&u, int32(index))
	case index%topologyEvery == 0:
		g.topologyTransaction(&u, index/topologyEvery)
	case index%reassignmentEvery == 17 && g.startReassignment(&u, index, g.rng.chance(25)):
	case index%(3*reassignmentEvery) == 19 && g.startReassignment(&u, index, !g.early):
	default:
		g.transaction(&u, int32(index))
	}
	g.updates = append(g.updates, u)
	g.ledgerEnd = u.offset
	if !g.opts.NoGaps && g.rng.chance(25) {
		g.ledgerEnd += int64(1 + g.rng.intn(3))
	}
}

func (g *generator) nextOffset() int64 {
	if len(g.updates) == 0 {
		return g.opts.FirstOffset
	}
	return g.ledgerEnd + 1
}

// step returns how much later the next record time is, in microseconds. Some land
// on whole milliseconds and seconds: times are served with 0, 3 or 6 digits.
func (g *generator) step() int64 {
	step := int64(1000 + g.rng.intn(2_000_000))
	next := g.record + step
	switch g.rng.intn(16) {
	case 0:
		next += 1_000_000 - next%1_000_000
	case 1:
		next += 1000 - next%1000
	}
	return next - g.record
}

// witnesses are the parties that see the children of an exercise.
type witnesses struct {
	parties [3]uint16
	n       uint8
}

func (w witnesses) with(parties ...uint16) witnesses {
	for _, p := range parties {
		if int(w.n) == len(w.parties) {
			break
		}
		known := false
		for _, q := range w.parties[:w.n] {
			known = known || p == q
		}
		if !known {
			w.parties[w.n] = p
			w.n++
		}
	}
	return w
}

// tx is a transaction being made.
type tx struct {
	index        int32
	synchronizer uint8
	first        int // of its events
	node         int32
	left         int // nodes still to make
}

func (g *generator) transaction(u *update, index int32) {
	t := &tx{index: index, first: len(g.events), left: 1 + g.rng.intn(2*g.opts.EventsPerUpdate-1)}
	if g.rng.chance(12) {
		t.synchronizer = 1
	}
	if index%movementEvery == movementAt {
		t.synchronizer = 0
		g.scene(t)
	}
	for t.left > 0 {
		g.action(t, witnesses{}, 0)
	}
	u.kind, u.synchronizer = kindTransaction, t.synchronizer
	u.first, u.count = int32(t.first), int32(len(g.events)-t.first)
}

// action adds a creation or an exercise with its children.
func (g *generator) action(t *tx, seen witnesses, depth int) {
	if g.rng.chance(8) {
		t.node++ // a node that is never served, as a fetch
	}
	pool := g.pool[t.synchronizer]
	wanted := float64(g.live)-20 > g.opts.ActiveShare*float64(g.created)
	switch {
	case len(g.offers[t.synchronizer]) > 2 && g.rng.chance(4):
		kinds := [...]movementKind{moveAccept, moveAccept, moveWithdraw, moveReject}
		g.settleOffer(t, seen, kinds[g.rng.intn(len(kinds))])
	case len(pool) > 0 && g.rng.chance(10):
		c := g.activations[pool[g.rng.intn(len(pool))]].contract
		if !g.contracts[c].kind.isAmulet() { // an amulet can only be consumed
			g.exercise(t, c, seen, depth, false, true)
			return
		}
		kinds := [...]movementKind{moveMint, moveTap}
		g.issue(t, seen, kinds[g.rng.intn(len(kinds))], -1, uint16(g.rng.intn(g.hosted)), g.issued())
	case len(pool) > 0 && (wanted && g.rng.chance(85) || g.rng.chance(6)):
		g.consume(t, seen, depth)
	case len(g.foreign) > 0 && seen.n > 0 && g.rng.chance(10):
		last := len(g.foreign) - 1
		c := g.foreign[last]
		g.foreign = g.foreign[:last]
		g.exercise(t, c, seen, depth, true, false)
	default:
		g.create(t, seen, depth)
	}
}

// consume archives an active contract, mostly a young one.
func (g *generator) consume(t *tx, seen witnesses, depth int) {
	pool := g.pool[t.synchronizer]
	i := g.rng.intn(len(pool))
	if g.rng.chance(70) {
		i = len(pool) - 1 - g.rng.intn(min(len(pool), 64))
	}
	if g.contracts[g.activations[pool[i]].contract].kind.isAmulet() {
		g.moveAmulet(t, seen, i)
		return
	}
	a := g.take(t, i)
	g.exercise(t, g.activations[a].contract, seen, depth, true, g.end(t, a))
}

// end records the end of an activation, and reports whether it is part of the ACS_DELTA shape: where the same
// transaction created the contract, neither its creation nor its end is.
func (g *generator) end(t *tx, activated int32) bool {
	a := &g.activations[activated]
	atomic.StoreInt32(&a.until, t.index)
	g.live--
	if a.update != t.index {
		return true
	}
	for i := range g.events[t.first:] {
		if e := &g.events[t.first+i]; e.contract == a.contract && e.choice < 0 {
			e.acs = false
		}
	}
	return false
}

// release takes the activation at position i out of a pool.
func (g *generator) release(synchronizer uint8, i int) {
	pool := g.pool[synchronizer]
	pool[i] = pool[len(pool)-1]
	g.pool[synchronizer] = pool[:len(pool)-1]
}

func (g *generator) push(t *tx, e event, seen witnesses) int {
	e.node, e.last = t.node, t.node
	e.extra, e.extras = seen.parties, seen.n
	t.node++
	t.left--
	g.events = append(g.events, e)
	return len(g.events) - 1
}

// exercise adds an exercise on a contract, with children that its signatories and
// its actor see as well.
func (g *generator) exercise(t *tx, number int32, seen witnesses, depth int, consuming, acs bool) {
	c := g.contracts[number]
	e := event{contract: number, served: c.kind, acs: consuming && acs, choice: g.pickChoice(c.kind, consuming)}
	if upgraded := kindOf(int(c.kind/2), 1); upgraded.exists() && g.rng.chance(30) {
		e.served = upgraded
	}
	e.actor = c.stakeholders()[g.rng.intn(len(c.stakeholders()))]
	i := g.push(t, e, seen)
	if depth < 4 {
		below := seen.with(c.parties[:c.signatories]...).with(e.actor)
		for children := g.rng.intn(4); children > 0 && t.left > 0; children-- {
			g.action(t, below, depth+1)
		}
	}
	g.events[i].last = t.node - 1
}

func (g *generator) pickChoice(k kind, consuming bool) int8 {
	choices := k.template().choices
	for {
		i := g.rng.intn(len(choices))
		if choices[i].consuming == consuming {
			return int8(i)
		}
	}
}

// create adds a creation: of a contract that stays for a while, of a transient one
// with its archival, or of one that is only divulged to the witnesses.
func (g *generator) create(t *tx, seen witnesses, depth int) {
	c := contract{created: t.index, kind: g.pickKind()}
	switch {
	case seen.n > 0 && g.rng.chance(5):
		c.flags = flagDivulged
	case t.left > 1 && g.rng.chance(8):
		c.flags = flagTransient
	}
	g.pickStakeholders(&c)
	number := int32(len(g.contracts))
	g.contracts = append(g.contracts, c)
	e := event{contract: number, choice: -1, served: c.kind, acs: c.flags == 0}
	node := t.node
	g.push(t, e, seen)
	switch c.flags {
	case flagTransient:
		g.exercise(t, number, seen, depth, true, false)
	case flagDivulged:
		g.foreign = append(g.foreign, number)
	default:
		g.activate(activation{contract: number, update: t.index, node: node, synchronizer: t.synchronizer})
		g.created++
		g.live++
	}
}

// activate records an activation and lets transactions use it.
func (g *generator) activate(a activation) int32 {
	a.until = -1
	n := int32(len(g.activations))
	g.activations = append(g.activations, a)
	g.pool[a.synchronizer] = append(g.pool[a.synchronizer], n)
	return n
}

func (g *generator) pickKind() kind {
	weights := [...]uint8{
		templateAccount, templateHolding, templateHolding, templateHolding, templateHolding,
		templateLockedHolding, templateLockedHolding, templateOffer, templateOffer, templateAgreement,
		templateAgreement, templateEntry,
	}
	k := kindOf(int(weights[g.rng.intn(len(weights))]), 0)
	if upgraded := k + 1; upgraded.exists() && g.rng.chance(40) {
		k = upgraded
	}
	return k
}

// pickStakeholders draws one or two signatories and up to two observers, never
// the same party twice. Where parties are few, there may be fewer.
func (g *generator) pickStakeholders(c *contract) {
	first, count := 0, g.hosted
	if c.flags&flagDivulged != 0 {
		first, count = g.hosted, remoteParties
	}
	want := 1 + g.rng.intn(2)
	observers := g.rng.intn(3)
	var picked witnesses
	draw := func() bool {
		before := picked.n
		picked = picked.with(uint16(first + g.rng.intn(count)))
		return picked.n > before
	}
	for range want {
		if draw() {
			c.signatories++
		}
	}
	for range observers {
		if draw() {
			c.observers++
		}
	}
	copy(c.parties[:], picked.parties[:picked.n])
	// Some have an observer that another participant hosts.
	if c.flags&flagDivulged == 0 && g.rng.chance(20) {
		c.parties[c.signatories+c.observers] = uint16(g.hosted + g.rng.intn(remoteParties))
		c.observers++
	}
}
