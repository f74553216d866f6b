package sandbox

import (
	"cmp"
	"slices"
)

// Row is a row of a relation of schema ledger, by column. Numbers are json.Number,
// times RFC 3339 text in UTC with microseconds, bytes the text '\x…', text arrays
// []any; jsonb is decoded, and NULL is nil.
type Row map[string]any

// Truth returns what the relations of schema ledger must hold after a database has
// indexed every update from genesis to upTo in a scope: updates, created_events,
// archived_events, exercised_events, interface_views, reassignments,
// topology_events and active_contracts. Rows stand in the order of the ledger. It
// panics on a scope that a server would refuse.
func (l *Ledger) Truth(scope Scope, upTo int64) map[string][]Row {
	t := l.newTruth(scope)
	t.updates(0, t.after(upTo))
	return t.finish()
}

// TruthFromSnapshot returns what the relations must hold after a database took a
// snapshot at an offset and then indexed the updates up to upTo. The snapshot's
// contracts, active or in flight, are created_events of origin snapshot; its
// incomplete reassignments are in reassignments. Where a contract that had moved by
// then was created is not known.
func (l *Ledger) TruthFromSnapshot(scope Scope, at, upTo int64) map[string][]Row {
	t := l.newTruth(scope)
	n := t.after(at)
	t.snapshot(n)
	t.updates(n, t.after(upTo))
	return t.finish()
}

// truth builds the truth from the generator's decisions.
type truth struct {
	*view
	filter *updateFilter
	feat   *features
	rows   map[string][]Row
	active map[stay]Row
	born   map[int32]int64   // the offsets of the creations that were shown, by contract
	seen   map[[2]int64]bool // created_events rows of a snapshot
}

// stay is what active_contracts has one row of.
type stay struct {
	contract     int32
	synchronizer uint8
}

func (l *Ledger) newTruth(scope Scope) *truth {
	t := &truth{
		view: l.view(), filter: scope.compiled(l.names()), feat: scope.features(),
		rows: map[string][]Row{}, active: map[stay]Row{}, born: map[int32]int64{}, seen: map[[2]int64]bool{},
	}
	for _, name := range relations {
		t.rows[name] = []Row{}
	}
	return t
}

func (t *truth) add(relation string, r Row) { t.rows[relation] = append(t.rows[relation], r) }

func (t *truth) finish() map[string][]Row {
	stays := make([]stay, 0, len(t.active))
	for s := range t.active {
		stays = append(stays, s)
	}
	slices.SortFunc(stays, func(a, b stay) int {
		return cmp.Or(cmp.Compare(a.contract, b.contract), cmp.Compare(a.synchronizer, b.synchronizer))
	})
	for _, s := range stays {
		t.add("active_contracts", t.active[s])
	}
	return t.rows
}

func (t *truth) updates(from, to int) {
	for i := from; i < to; i++ {
		switch u := &t.view.updates[i]; u.kind {
		case kindTransaction:
			t.transaction(i, u)
		case kindReassignment:
			t.reassignment(i, u)
		case kindTopology:
			t.topologyUpdate(i, u)
		}
	}
}

func (t *truth) reassignment(i int, u *update) {
	if t.filter.reassignments == nil {
		return
	}
	shown := false
	for _, l := range t.legs[u.first : u.first+u.count] {
		r := &t.reassignments[l.reassignment]
		s := t.holdersSight(t.filter.reassignments, &t.contracts[r.contract])
		if !s.match {
			continue
		}
		shown = true
		on := t.on(i, u)
		if l.assign {
			t.moved(on, l.reassignment, u.offset, l.node, &s, true)
			row := t.created(on, r.contract, u.offset, l.node, &s, "assignment")
			t.active[stay{r.contract, r.target}] = t.activeRow(r.contract, row, r.target, r.counter)
		} else {
			t.moved(on, l.reassignment, u.offset, l.node, &s, false)
			delete(t.active, stay{r.contract, r.source})
		}
	}
	if shown {
		t.update(i, u, "reassignment")
	}
}

func (t *truth) topologyUpdate(i int, u *update) {
	if !t.filter.topology {
		return
	}
	on := t.on(i, u)
	for j := range t.topology[u.first : u.first+u.count] {
		e := &t.topology[int(u.first)+j]
		_, kind := e.variant(t.feat)
		row := on.with(Row{
			"ledger_offset": number(u.offset), "node_id": number(j), "kind": kind,
			"party_id": t.parties[e.party], "participant_id": t.topologyParticipant(e), "permission": nil,
		})
		if e.kind != topologyRevoked {
			row["permission"] = permissions[e.permission]
		}
		t.add("topology_events", row)
	}
	t.update(i, u, "topology")
}

// snapshot adds the carried rows of the state after n updates.
func (t *truth) snapshot(n int) {
	f := t.filter.transactions
	for i := range t.activations {
		a := &t.activations[i]
		s := t.holdersSight(f, &t.contracts[a.contract])
		if !t.view.active(a, n) || !s.match {
			continue
		}
		row := t.carried(t.carriedFacts(a, a.update), a, &s)
		if a.counter == 0 {
			t.born[a.contract] = t.view.updates[a.update].offset
		}
		t.active[stay{a.contract, a.synchronizer}] = t.activeRow(a.contract, row, a.synchronizer, a.counter)
	}
	for i := range t.reassignments {
		r := &t.reassignments[i]
		unassigned, assigned := r.halves(n)
		s := t.holdersSight(f, &t.contracts[r.contract])
		if unassigned == assigned || !s.match {
			continue
		}
		activation, half := &t.activations[r.from], r.unassigned
		node := r.unassignedNode
		if assigned {
			activation, half = &t.activations[r.to], r.assigned
			node = activation.node
		}
		on := t.carriedFacts(activation, half)
		if activation.counter == 0 {
			t.born[r.contract] = t.view.updates[activation.update].offset
		}
		t.carried(on, activation, &s)
		t.moved(on, int32(i), t.view.updates[half].offset, node, &s, assigned)
	}
}

// carriedFacts returns what a snapshot's entry says: nothing of the update, but its
// workflow id.
func (t *truth) carriedFacts(a *activation, update int32) facts {
	return facts{
		"update_id": nil, "record_time": nil, "synchronizer_id": t.synchronizers[a.synchronizer],
		"workflow_id": t.extrasOf(int(update)).workflow,
	}
}

// carried adds the created_events row of an entry of a snapshot. An incomplete
// assignment has the creation of an active entry: it is kept once.
func (t *truth) carried(on facts, a *activation, s *sight) Row {
	offset := t.view.updates[a.update].offset
	if key := [2]int64{offset, int64(a.node)}; !t.seen[key] {
		t.seen[key] = true
		return t.created(on, a.contract, offset, a.node, s, "snapshot")
	}
	return nil
}
