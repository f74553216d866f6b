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

// stepEvent activates or deactivates a contract on a synchronizer.
type stepEvent struct {
	key         activeKey
	offset      int64
	nodeID      int32
	activates   bool
	assigned    bool  // activates by assignment, which a contract can have several of; it is created once
	templateRef int32 // of an activation
	counter     int64 // of an activation
}

// step is what a range of updates does to the active set: what was active before and ends, what lived and died
// within the step, and what stays active.
type step struct {
	ends   dbsqlc.ActiveContractsEndParams
	lives  []dbsqlc.LifetimesCopyParams
	begins dbsqlc.ActiveContractsBeginParams
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
	for _, e := range events {
		begun, isActive := active[e.key]
		switch {
		case isActive:
			s.lives = append(s.lives, dbsqlc.LifetimesCopyParams{
				DeactivatedOffset: e.offset, ActivatedOffset: begun.offset, ActivatedNodeID: begun.nodeID,
				SynchronizerRef: e.key.synchronizerRef, TemplateRef: begun.templateRef, ContractID: e.key.contractID,
			})
		case !known[e.key] && (!e.activates || e.assigned):
			s.ends.ContractIds = append(s.ends.ContractIds, e.key.contractID)
			s.ends.SynchronizerRefs = append(s.ends.SynchronizerRefs, e.key.synchronizerRef)
			s.ends.DeactivatedOffsets = append(s.ends.DeactivatedOffsets, e.offset)
		}
		known[e.key] = true
		if e.activates {
			active[e.key] = e
		} else {
			delete(active, e.key)
		}
	}
	for _, e := range events {
		if begun, isActive := active[e.key]; isActive && begun.offset == e.offset && begun.nodeID == e.nodeID {
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
// false, or an assignment; a deactivation is an archival on the update's synchronizer, or an unassignment.
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
		events = append(events, stepEvent{key: own(u.Archived[i].ContractID), offset: offset, nodeID: u.Archived[i].NodeID})
	}
	for i := range u.Exercised {
		if u.Exercised[i].Consuming {
			events = append(events, stepEvent{key: own(u.Exercised[i].ContractID), offset: offset, nodeID: u.Exercised[i].NodeID})
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

// project applies the step. What ends goes before what begins: a contract may leave a synchronizer and come back.
func (l *Leader) project(ctx context.Context, tx pgx.Tx, s *step) error {
	started := time.Now()
	q := l.store.queries
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
