package sandbox

import "sync/atomic"

// startReassignment makes the first half of one to three reassignments: mostly the
// unassignment, but if assign is true the other one, and then the contract is active
// on both synchronizers until the unassignment comes. It reports whether there was a
// contract to move.
func (g *generator) startReassignment(u *update, index int, assign bool) bool {
	source := uint8(g.rng.intn(2))
	if len(g.pool[source]) == 0 {
		source = 1 - source
	}
	if len(g.pool[source]) == 0 {
		return false
	}
	target := 1 - source
	first := len(g.legs)
	delay := 1 + g.rng.intn(5)
	if g.rng.chance(5) {
		delay = 20 + g.rng.intn(40)
	}
	for n := 1 + g.rng.intn(3); n > 0 && len(g.pool[source]) > 0; n-- {
		i := g.rng.intn(len(g.pool[source]))
		from := g.pool[source][i]
		if g.moving(g.activations[from].contract) {
			continue
		}
		g.release(source, i)
		g.live--
		a := g.activations[from]
		r := reassignment{
			contract: a.contract, from: from, to: -1, unassigned: -1, assigned: -1,
			counter: a.counter + 1, source: source, target: target,
			submitter: int32(g.contracts[a.contract].parties[0]), exclusive: g.rng.chance(60),
		}
		if g.rng.chance(10) {
			r.submitter = -1
		}
		number := int32(len(g.reassignments))
		g.reassignments = append(g.reassignments, r)
		g.half(number, index, first, assign)
		g.pending = append(g.pending, pendingLeg{due: index + delay, reassignment: number})
	}
	if len(g.legs) == first {
		return false
	}
	g.early = assign
	g.finishLegs(u, first)
	return true
}

// moving reports whether a reassignment of the contract is incomplete. It must not
// be moved again before: it could come back to where it still is active.
func (g *generator) moving(contract int32) bool {
	for _, p := range g.pending {
		if g.reassignments[p.reassignment].contract == contract {
			return true
		}
	}
	return false
}

// dueLegs makes the second halves that are due, one synchronizer at a time. It
// reports whether there were any.
func (g *generator) dueLegs(u *update, index int) bool {
	first := len(g.legs)
	var synchronizer uint8
	rest := g.pending[:0]
	for _, p := range g.pending {
		r := &g.reassignments[p.reassignment]
		assign := r.assigned < 0
		on := r.source
		if assign {
			on = r.target
		}
		if p.due > index || len(g.legs) > first && (on != synchronizer || assign != g.legs[first].assign) {
			rest = append(rest, p)
			continue
		}
		synchronizer = on
		g.half(p.reassignment, index, first, assign)
	}
	g.pending = rest
	if len(g.legs) == first {
		return false
	}
	g.finishLegs(u, first)
	return true
}

// half adds one half of a reassignment to the update being made.
func (g *generator) half(number int32, index, first int, assign bool) {
	r := &g.reassignments[number]
	node := int32(len(g.legs) - first)
	g.legs = append(g.legs, leg{reassignment: number, node: node, assign: assign})
	if !assign {
		r.unassignedNode = node
		atomic.StoreInt32(&g.activations[r.from].until, int32(index))
		atomic.StoreInt32(&r.unassigned, int32(index))
		return
	}
	to := g.activate(activation{
		contract: r.contract, update: int32(index), node: node, counter: r.counter, synchronizer: r.target,
	})
	g.live++
	atomic.StoreInt32(&r.to, to)
	atomic.StoreInt32(&r.assigned, int32(index))
}

func (g *generator) finishLegs(u *update, first int) {
	l := g.legs[first]
	r := &g.reassignments[l.reassignment]
	u.kind, u.synchronizer = kindReassignment, r.source
	if l.assign {
		u.synchronizer = r.target
	}
	u.first, u.count = int32(first), int32(len(g.legs)-first)
}

// topologyTransaction makes the n-th topology transaction: the first one adds some
// parties, the later ones change, onboard, revoke and add in turn.
func (g *generator) topologyTransaction(u *update, n int) {
	first := len(g.topology)
	u.kind, u.synchronizer = kindTopology, uint8(n%2)
	if n == 0 {
		for p := range min(g.hosted, 8) {
			g.topology = append(g.topology, topologyEvent{party: uint16(p), permission: 1})
		}
	} else {
		kinds := [...]topologyKind{topologyChanged, topologyOnboarding, topologyRevoked, topologyAdded}
		for range 1 + g.rng.intn(2) {
			g.topology = append(g.topology, topologyEvent{
				party: uint16(g.rng.intn(len(g.parties))), kind: kinds[n%len(kinds)],
				permission: uint8(1 + g.rng.intn(3)), elsewhere: g.rng.chance(50),
			})
		}
	}
	u.first, u.count = int32(first), int32(len(g.topology)-first)
}
