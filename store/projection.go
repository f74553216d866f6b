package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// activeKey is what can be active once: a contract on a synchronizer.
type activeKey struct {
	contractID      string
	synchronizerRef int32
}

// stepEvent activates or deactivates a contract on a synchronizer, or uses it.
type stepEvent struct {
	key         activeKey
	offset      int64
	nodeID      int32
	activates   bool
	assigned    bool  // activates by assignment, which a contract can have several of; it is created once
	uses        bool  // neither activates nor deactivates
	needs       bool  // is of a contract whose creation we should have seen: no creation, and not merely witnessed
	templateRef int32 // of an activation
	counter     int64 // of an activation
}

// step is what a range of updates does to the active set: what was active before and ends, what lived and died
// within the step, and what stays active. And it is what was used without having been activated in the step: unless
// active before, its creation was never seen.
type step struct {
	ends   dbsqlc.ActiveContractsEndParams
	lives  []dbsqlc.LifetimesCopyParams
	begins dbsqlc.ActiveContractsBeginParams
	used   dbsqlc.LookupsWantExercisedParams
}

// projectionStep works out the step of updates, which are in offset order. A contract that lived and died within it
// never touches the active set. An activation of what is active already begins a new lifetime and ends the one before,
// so that exactly one is open at every offset.
func projectionStep(r refs, updates []*ledger.Update) *step {
	var events []stepEvent
	for _, u := range updates {
		first := len(events)
		events = appendStepEvents(events, r, u)
		slices.SortStableFunc(events[first:], func(a, b stepEvent) int { return cmp.Compare(a.nodeID, b.nodeID) })
	}
	var s step
	active := map[activeKey]stepEvent{} // activated in this step and not deactivated since
	known := map[activeKey]bool{}       // touched in this step: what the table says no longer counts
	unseen := map[activeKey]int{}       // places in s.ends of what was not activated in this step
	for _, e := range events {
		begun, isActive := active[e.key]
		switch {
		case e.uses:
			if !isActive {
				s.used.ContractIds = append(s.used.ContractIds, e.key.contractID)
				s.used.LedgerOffsets = append(s.used.LedgerOffsets, e.offset)
				s.used.NodeIds = append(s.used.NodeIds, e.nodeID)
			}
			continue
		case isActive:
			s.lives = append(s.lives, dbsqlc.LifetimesCopyParams{
				DeactivatedOffset: e.offset, ActivatedOffset: begun.offset, ActivatedNodeID: begun.nodeID,
				SynchronizerRef: e.key.synchronizerRef, TemplateRef: begun.templateRef, ContractID: e.key.contractID,
			})
		case !known[e.key] && (!e.activates || e.assigned):
			unseen[e.key] = len(s.ends.ContractIds)
			s.ends.ContractIds = append(s.ends.ContractIds, e.key.contractID)
			s.ends.SynchronizerRefs = append(s.ends.SynchronizerRefs, e.key.synchronizerRef)
			s.ends.DeactivatedOffsets = append(s.ends.DeactivatedOffsets, e.offset)
			s.ends.LookupOffsets = append(s.ends.LookupOffsets, 0)
			s.ends.LookupNodeIds = append(s.ends.LookupNodeIds, 0)
		}
		if i, isUnseen := unseen[e.key]; isUnseen && e.needs && s.ends.LookupOffsets[i] == 0 {
			s.ends.LookupOffsets[i], s.ends.LookupNodeIds[i] = e.offset, e.nodeID
		}
		known[e.key] = true
		if e.activates {
			active[e.key] = e
			delete(unseen, e.key)
		} else {
			delete(active, e.key)
		}
	}
	for _, e := range events {
		begun, isActive := active[e.key]
		if isActive && e.activates && begun.offset == e.offset && begun.nodeID == e.nodeID {
			s.begins.ContractIds = append(s.begins.ContractIds, e.key.contractID)
			s.begins.SynchronizerRefs = append(s.begins.SynchronizerRefs, e.key.synchronizerRef)
			s.begins.TemplateRefs = append(s.begins.TemplateRefs, e.templateRef)
			s.begins.ActivatedOffsets = append(s.begins.ActivatedOffsets, e.offset)
			s.begins.ActivatedNodeIds = append(s.begins.ActivatedNodeIds, e.nodeID)
			s.begins.ReassignmentCounters = append(s.begins.ReassignmentCounters, e.counter)
		}
	}
	return &s
}

// appendStepEvents adds what one update does to the active set: an activation is a creation with acs_delta not
// false, or an assignment; a deactivation is an archival on the update's synchronizer, or an unassignment. Exercises that
// archive nothing are added where acs_delta is not false: their contract is active, or should be.
func appendStepEvents(events []stepEvent, r refs, u *ledger.Update) []stepEvent {
	offset := int64(u.Offset)
	own := func(contractID string) activeKey {
		key := activeKey{contractID: contractID}
		if u.SynchronizerID != nil {
			key.synchronizerRef = r.synchronizer(*u.SynchronizerID)
		}
		return key
	}
	assignments := assignmentsOf(u)
	for i := range u.Created {
		c := &u.Created[i]
		event := stepEvent{
			key: own(c.ContractID), offset: offset, nodeID: c.NodeID, activates: true,
			templateRef: r.template(c.TemplateID, c.PackageName, c.RepresentativePackageID),
		}
		if c.Origin == ledger.OriginAssignment {
			assigned := assignments[c.NodeID]
			event.assigned = true
			event.key.synchronizerRef = r.synchronizer(assigned.Target)
			event.counter = assigned.ReassignmentCounter
		} else if c.ACSDelta != nil && !*c.ACSDelta {
			continue
		}
		events = append(events, event)
	}
	for i := range u.Archived {
		a := &u.Archived[i]
		events = append(events, stepEvent{key: own(a.ContractID), offset: offset, nodeID: a.NodeID, needs: true})
	}
	for i := range u.Exercised {
		e := &u.Exercised[i]
		witnessed := e.ACSDelta != nil && !*e.ACSDelta
		if e.Consuming || !witnessed {
			events = append(events, stepEvent{
				key: own(e.ContractID), offset: offset, nodeID: e.NodeID, uses: !e.Consuming, needs: !witnessed,
			})
		}
	}
	for i := range u.Unassigned {
		e := &u.Unassigned[i]
		key := activeKey{contractID: e.ContractID, synchronizerRef: r.synchronizer(e.Source)}
		events = append(events, stepEvent{key: key, offset: offset, nodeID: e.NodeID})
	}
	return events
}

// assignmentsOf gives the update's assignments by node id, which is that of the creation event each one brought:
// decoding makes both from one element.
func assignmentsOf(u *ledger.Update) map[int32]*ledger.AssignedEvent {
	if len(u.Assigned) == 0 {
		return nil
	}
	assignments := make(map[int32]*ledger.AssignedEvent, len(u.Assigned))
	for i := range u.Assigned {
		assignments[u.Assigned[i].NodeID] = &u.Assigned[i]
	}
	return assignments
}

// deactivations are the offsets that need a partition of lifetimes.
func (s *step) deactivations() []int64 {
	offsets := slices.Clone(s.ends.DeactivatedOffsets)
	for i := range s.lives {
		offsets = append(offsets, s.lives[i].DeactivatedOffset)
	}
	return offsets
}

// project applies the step. What ends goes before what begins: a contract may leave a synchronizer and come back. What
// was used is compared with what was active before either.
func (l *Leader) project(ctx context.Context, tx pgx.Tx, s *step) error {
	started := time.Now()
	q := l.store.queries
	if len(s.used.ContractIds) > 0 {
		if err := q.LookupsWantExercised(ctx, tx, s.used); err != nil {
			return fmt.Errorf("ask for %d exercised contracts: %w", len(s.used.ContractIds), err)
		}
	}
	if len(s.ends.ContractIds) > 0 {
		if err := q.ActiveContractsEnd(ctx, tx, s.ends); err != nil {
			return fmt.Errorf("deactivate %d contracts: %w", len(s.ends.ContractIds), err)
		}
	}
	if err := copyRows(ctx, tx, "lifetimes", s.lives, q.LifetimesCopy); err != nil {
		return err
	}
	if len(s.begins.ContractIds) > 0 {
		if err := q.ActiveContractsBegin(ctx, tx, s.begins); err != nil {
			return fmt.Errorf("activate %d contracts: %w", len(s.begins.ContractIds), err)
		}
	}
	l.store.cfg.Observe("project", time.Since(started))
	return nil
}
