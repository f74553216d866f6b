// Package active computes what updates do to the active set: in memory, before it is applied in the database.
package active

import (
	"iter"
	"slices"

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

// NewStep computes the step of effects, whose numbers are known, and which are in the order of offsets and node ids. A
// contract that is created and archived within the step never touches the active set. The activation of an active
// contract begins a new lifetime and ends the one before, so that exactly one is open at every offset.
func NewStep(events ...[]rows.Effect) *Step {
	count, activations := 0, 0
	for _, part := range events {
		count += len(part)
		for i := range part {
			if part[i].Activates {
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
			key := Key{e.ContractID, *e.Synchronizer}
			number, known := numbers[key]
			if !known {
				number = int32(len(states))
				numbers[key], states = number, append(states, keyState{})
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
func (s *Step) take(e *rows.Effect, state *keyState) {
	switch {
	case e.IsReference:
		if state.begun == 0 {
			s.References = append(s.References, Reference{e.ContractID, e.Offset, e.NodeID})
		}
		return
	case state.begun > 0:
		begun := &s.Activations[state.begun-1]
		s.Lifetimes = append(s.Lifetimes, rows.Lifetime{DeactivatedOffset: e.Offset, ActiveContract: *begun})
		begun.ActivatedOffset = ended
	case !state.known && (!e.Activates || e.Assigned): // what the table says counts until the first event
		s.Deactivations = append(s.Deactivations,
			Deactivation{Key: Key{e.ContractID, *e.Synchronizer}, DeactivatedOffset: e.Offset})
		state.unseen = int32(len(s.Deactivations))
	}
	if n := state.unseen - 1; n >= 0 && e.WantsLookup && s.Deactivations[n].LookupOffset == 0 {
		s.Deactivations[n].LookupOffset, s.Deactivations[n].LookupNodeID = e.Offset, e.NodeID
	}
	state.known, state.begun = true, 0
	if e.Activates {
		row := rows.ActiveContract{
			ContractID: e.ContractID, SynchronizerRef: e.Synchronizer, TemplateRef: e.Template,
			ActivatedOffset: e.Offset, ActivatedNodeID: e.NodeID, ReassignmentCounter: e.Counter,
			StakeholdersRef: e.Stakeholders,
		}
		row.PositionID, row.Amount, row.Locked, row.LockedUntil = e.Holding.Columns()
		s.Activations = append(s.Activations, row)
		*state = keyState{known: true, begun: int32(len(s.Activations))}
	}
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

// StoredEffects returns effects that were read back from the facts.
func StoredEffects(list []dbsqlc.StepEvents) []rows.Effect {
	effects := make([]rows.Effect, len(list))
	for i := range list {
		row := &list[i]
		e := rows.Effect{ContractID: row.ContractID, Synchronizer: &row.SynchronizerRef, Offset: row.LedgerOffset,
			NodeID: row.NodeID}
		switch row.Kind {
		case kindCreation:
			e.Activates, e.Assigned, e.Template, e.Counter = true, row.Flag, &row.TemplateRef, row.Counter
			e.Holding, e.Stakeholders = storedHolding(row), row.StakeholdersRef
		case kindArchival, kindConsumption:
			e.WantsLookup = row.Flag
		case kindUse:
			e.IsReference, e.WantsLookup = true, row.Flag
		}
		effects[i] = e
	}
	return effects
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
