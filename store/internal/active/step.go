// Package active computes what updates do to the active set: in memory, before it is applied in the database.
package active

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
)

// Key is what can be active once: a contract on a synchronizer.
type Key struct {
	ContractID      string
	SynchronizerRef int32
}

// String returns the key as one text. The number of the synchronizer has no space.
func (k Key) String() string { return strconv.Itoa(int(k.SynchronizerRef)) + " " + k.ContractID }

// Event activates or deactivates a contract on a synchronizer, or uses it.
type Event struct {
	key         Key
	offset      int64
	nodeID      int32
	activates   bool
	assigned    bool // activates by assignment, which a contract can have several of; it is created once
	isReference bool // neither activates nor deactivates
	// is of a contract whose creation we should have seen: no creation, and not merely witnessed
	wantsLookup  bool
	templateRef  int32          // of an activation
	counter      int64          // of an activation
	holding      *names.Holding // of an activation; nil: none
	stakeholders *int32         // of an activation: the number of their list
}

// Step is the effect of a range of updates on the active set: contracts that were active before and end, lifetimes that
// begin and end within the step, and contracts that stay active. References are contracts that were used without having
// been activated in the step: if they were not active before either, their creation was never seen.
type Step struct {
	Deactivations []Deactivation
	Lifetimes     []rows.Lifetime
	Activations   []rows.ActiveContract
	References    []Reference
}

// Deactivation is the end of a contract on a synchronizer. If LookupOffset is not 0 and the contract turns out not to
// be active, it is looked up: it was archived, and its creation should have been seen.
type Deactivation struct {
	Key               Key
	DeactivatedOffset int64
	LookupOffset      int64
	LookupNodeID      int32
}

// Reference is a contract that was used. It is looked up if it is not active.
type Reference struct {
	ContractID string
	Offset     int64
	NodeID     int32
}

// keyState is what the events of a step so far say of a contract on a synchronizer.
type keyState struct {
	known  bool  // was activated or deactivated
	begun  int32 // place in what begins, one more, if it was not deactivated since; else 0
	unseen int32 // place in what ends, one more, until it is activated in this step; else 0
}

// NewStep computes the step of events, which are in the order of offsets and node ids. A contract that is created and
// archived within the step never touches the active set. The activation of an active contract begins a new lifetime and
// ends the one before, so that exactly one is open at every offset.
func NewStep(events ...[]Event) *Step {
	count, activations := 0, 0
	for _, part := range events {
		count += len(part)
		for i := range part {
			if part[i].activates {
				activations++
			}
		}
	}
	s := Step{Activations: make([]rows.ActiveContract, 0, activations)}
	numbers := make(map[Key]int32, count/2)
	states := make([]keyState, 0, count/2)
	for _, part := range events {
		for i := range part {
			e := &part[i]
			number, known := numbers[e.key]
			if !known {
				number = int32(len(states))
				numbers[e.key], states = number, append(states, keyState{})
			}
			s.take(e, &states[number])
		}
	}
	s.Activations = slices.DeleteFunc(s.Activations,
		func(b rows.ActiveContract) bool { return b.ActivatedOffset == ended })
	return &s
}

// ended replaces the activation offset of what began and ended in the step. No update has this offset.
const ended = 0

// take adds what an event does, after those that led to the state.
func (s *Step) take(e *Event, state *keyState) {
	switch {
	case e.isReference:
		if state.begun == 0 {
			s.References = append(s.References, Reference{e.key.ContractID, e.offset, e.nodeID})
		}
		return
	case state.begun > 0:
		begun := &s.Activations[state.begun-1]
		s.Lifetimes = append(s.Lifetimes, Ended(begun, e.offset))
		begun.ActivatedOffset = ended
	case !state.known && (!e.activates || e.assigned): // what the table says counts until the first event
		s.Deactivations = append(s.Deactivations, Deactivation{Key: e.key, DeactivatedOffset: e.offset})
		state.unseen = int32(len(s.Deactivations))
	}
	if n := state.unseen - 1; n >= 0 && e.wantsLookup && s.Deactivations[n].LookupOffset == 0 {
		s.Deactivations[n].LookupOffset, s.Deactivations[n].LookupNodeID = e.offset, e.nodeID
	}
	state.known, state.begun = true, 0
	if e.activates {
		row := rows.ActiveContract{
			ContractID: e.key.ContractID, SynchronizerRef: e.key.SynchronizerRef, TemplateRef: e.templateRef,
			ActivatedOffset: e.offset, ActivatedNodeID: e.nodeID, ReassignmentCounter: e.counter,
			StakeholdersRef: e.stakeholders,
		}
		row.PositionID, row.Amount, row.Locked, row.LockedUntil = e.holding.Columns()
		s.Activations = append(s.Activations, row)
		*state = keyState{known: true, begun: int32(len(s.Activations))}
	}
}

// Ended returns the lifetime of an active contract that ends at an offset.
func Ended(a *rows.ActiveContract, at int64) rows.Lifetime {
	return rows.Lifetime{
		DeactivatedOffset: at, ActivatedOffset: a.ActivatedOffset, ReassignmentCounter: a.ReassignmentCounter,
		ActivatedNodeID: a.ActivatedNodeID,
		SynchronizerRef: a.SynchronizerRef, TemplateRef: a.TemplateRef, ContractID: a.ContractID, PositionID: a.PositionID,
		Amount: a.Amount, Locked: a.Locked,
		LockedUntil: a.LockedUntil, StakeholdersRef: a.StakeholdersRef,
	}
}

// EventsOf returns the events of updates that change the active set or use it, in order.
func EventsOf(updates []*ledger.Update, numbers names.Numbers) []Event {
	count := 0
	for _, u := range updates {
		count += len(u.Created) + len(u.Archived) + len(u.Exercised) + len(u.Unassigned)
	}
	events := make([]Event, 0, count)
	for _, u := range updates {
		first := len(events)
		events = appendEvents(events, numbers, u)
		slices.SortStableFunc(events[first:], func(a, b Event) int { return cmp.Compare(a.nodeID, b.nodeID) })
	}
	return events
}

// appendEvents adds what one update does to the active set: an activation is a creation with acs_delta not false, or an
// assignment; a deactivation is an archival on the update's synchronizer, or an unassignment. Exercises that archive
// nothing are added where acs_delta is not false: their contract is active, or should be.
func appendEvents(events []Event, r names.Numbers, u *ledger.Update) []Event {
	offset := int64(u.Offset)
	var synchronizer int32
	if u.SynchronizerID != nil {
		synchronizer = r.Synchronizer(*u.SynchronizerID)
	}
	own := func(contractID string) Key { return Key{contractID, synchronizer} }
	assignments := rows.AssignmentsOf(u)
	for i := range u.Created {
		c := &u.Created[i]
		numbers := r.Created(c)
		event := Event{
			key: own(c.ContractID), offset: offset, nodeID: c.NodeID, activates: true,
			templateRef: numbers.Template, holding: numbers.Holding, stakeholders: numbers.Stakeholders,
		}
		if c.Origin == ledger.OriginAssignment {
			assigned := assignments[c.NodeID]
			event.assigned = true
			event.key.SynchronizerRef = r.Synchronizer(assigned.Target)
			event.counter = assigned.ReassignmentCounter
		} else if c.ACSDelta != nil && !*c.ACSDelta {
			continue
		}
		events = append(events, event)
	}
	for i := range u.Archived {
		a := &u.Archived[i]
		events = append(events, Event{key: own(a.ContractID), offset: offset, nodeID: a.NodeID, wantsLookup: true})
	}
	for i := range u.Exercised {
		e := &u.Exercised[i]
		witnessed := e.ACSDelta != nil && !*e.ACSDelta
		if e.Consuming || !witnessed {
			events = append(events, Event{
				key: own(e.ContractID), offset: offset, nodeID: e.NodeID, isReference: !e.Consuming, wantsLookup: !witnessed,
			})
		}
	}
	for i := range u.Unassigned {
		e := &u.Unassigned[i]
		key := Key{ContractID: e.ContractID, SynchronizerRef: r.Synchronizer(e.Source)}
		events = append(events, Event{key: key, offset: offset, nodeID: e.NodeID})
	}
	return events
}

// DeactivatedOffsets returns the offsets that need a partition of lifetimes.
func (s *Step) DeactivatedOffsets() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range s.Deactivations {
			if !yield(s.Deactivations[i].DeactivatedOffset) {
				return
			}
		}
		for i := range s.Lifetimes {
			if !yield(s.Lifetimes[i].DeactivatedOffset) {
				return
			}
		}
	}
}

// The kinds of events in the database's view step_events, in the order of an update's events of one node.
const (
	kindCreation = iota + 1
	kindArchival
	kindConsumption
	kindUse
	kindUnassignment
)

// StoredEvents returns events that were read back from the facts.
func StoredEvents(rows []dbsqlc.StepEvents) []Event {
	events := make([]Event, len(rows))
	for i := range rows {
		row := &rows[i]
		e := &events[i]
		e.key = Key{ContractID: row.ContractID, SynchronizerRef: row.SynchronizerRef}
		e.offset, e.nodeID = row.LedgerOffset, row.NodeID
		switch row.Kind {
		case kindCreation:
			e.activates, e.assigned, e.templateRef, e.counter, e.holding = true, row.Flag, row.TemplateRef, row.Counter,
				storedHolding(row)
			e.stakeholders = row.StakeholdersRef
		case kindArchival, kindConsumption:
			e.wantsLookup = row.Flag
		case kindUse:
			e.isReference, e.wantsLookup = true, row.Flag
		}
	}
	return events
}

// storedHolding returns what a contract holds, as it was read back; nil where it is no holding.
func storedHolding(row *dbsqlc.StepEvents) *names.Holding {
	if !row.PositionID.Valid {
		return nil
	}
	h := &names.Holding{Position: row.PositionID.Bytes, Amount: ledger.Decimal(row.Amount), LockedUntil: row.LockedUntil}
	if row.LockKnown {
		h.Locked = &row.Locked
	}
	return h
}
