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
	ends   endings
	lives  []dbsqlc.LifetimesCopyParams
	begins beginnings
	used   uses
}

// stepEvents are the events of a batch that change the active set or use it, in order.
func (b *batch) stepEvents() []stepEvent {
	events := make([]stepEvent, 0, len(b.facts.created)+len(b.facts.archived)+len(b.facts.exercised)+len(b.facts.reassignments))
	for _, u := range b.updates {
		first := len(events)
		events = appendStepEvents(events, b.numbers, u)
		slices.SortStableFunc(events[first:], func(a, b stepEvent) int { return cmp.Compare(a.nodeID, b.nodeID) })
	}
	return events
}

// endings are what ends: the arrays are parallel, one element per contract and synchronizer. A contract that turns out not
// to be active is asked for where its lookup offset is not 0: it was archived, and its creation should have been seen.
type endings struct {
	ContractIds        []string
	SynchronizerRefs   []int32
	DeactivatedOffsets []int64
	LookupOffsets      []int64
	LookupNodeIds      []int32
}

// beginnings are what begins, as endings.
type beginnings struct {
	ContractIds          []string
	SynchronizerRefs     []int32
	TemplateRefs         []int32
	ActivatedOffsets     []int64
	ActivatedNodeIds     []int32
	ReassignmentCounters []int64
}

// uses are what was used, and is asked for where it is not active: the arrays are parallel.
type uses struct {
	ContractIds   []string
	LedgerOffsets []int64
	NodeIds       []int32
}

// activeSet is a table of what is active, with the statements that change it.
type activeSet struct{ want, end, begin string }

var (
	activeContracts = newActiveSet("indexer.active_contracts", "")
	// Of filled history a creation that is stored, on another synchronizer or later, is nothing to ask for.
	fillActive = newActiveSet("indexer.fill_active", " AND NOT EXISTS (SELECT FROM indexer.created c WHERE c.contract_id = e.contract_id)")
)

// newActiveSet makes the statements for a table. unknown is a condition more on what is asked for.
//
// Of what ends, each active row goes and leaves a closed lifetime. What was not active is a list of numbers that is looked into, not
// a join, which would be quadratic: neither side has statistics.
func newActiveSet(table, unknown string) activeSet {
	return activeSet{
		want: `INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id)
SELECT e.contract_id, e.ledger_offset, e.node_id
FROM (SELECT unnest($1::text[]) AS contract_id, unnest($2::bigint[]) AS ledger_offset, unnest($3::integer[]) AS node_id) e
WHERE NOT EXISTS (SELECT FROM ` + table + ` a WHERE a.contract_id = e.contract_id)` + unknown + `
ON CONFLICT DO NOTHING`,
		end: `WITH ended AS MATERIALIZED (
    SELECT unnest($1::text[]) AS contract_id, unnest($2::integer[]) AS synchronizer_ref, unnest($3::bigint[]) AS deactivated_offset,
        unnest($4::bigint[]) AS lookup_offset, unnest($5::integer[]) AS lookup_node_id, generate_series(1, cardinality($1::text[])) AS number
), closed AS (
    DELETE FROM ` + table + ` a USING ended e
    WHERE a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref
    RETURNING e.number, e.deactivated_offset, a.activated_offset, a.activated_node_id, a.synchronizer_ref, a.template_ref, a.contract_id
), wanted AS (
    INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id)
    SELECT e.contract_id, e.lookup_offset, e.lookup_node_id FROM ended e
    WHERE e.lookup_offset > 0 AND e.number NOT IN (SELECT c.number FROM closed c)` + unknown + `
    ON CONFLICT DO NOTHING
)
INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, synchronizer_ref, template_ref, contract_id)
SELECT c.deactivated_offset, c.activated_offset, c.activated_node_id, c.synchronizer_ref, c.template_ref, c.contract_id FROM closed c`,
		begin: `INSERT INTO ` + table + ` (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
SELECT unnest($1::text[]), unnest($2::integer[]), unnest($3::integer[]), unnest($4::bigint[]), unnest($5::integer[]), unnest($6::bigint[])`,
	}
}

// stepState is what the events of a step so far say of a contract on a synchronizer.
type stepState struct {
	begun  int32 // place of the event that activated it, one more, if it was not deactivated since; else 0
	unseen int32 // place in the endings, one more, until it is activated in this step; else 0
}

// projectionStep works out the step of events, which are in the order of offsets and node ids. A contract that lived and
// died within it never touches the active set. An activation of what is active already begins a new lifetime and ends the
// one before, so that exactly one is open at every offset.
func projectionStep(events []stepEvent) *step {
	var s step
	states := make(map[activeKey]stepState, len(events)/2)
	for i := range events {
		e := &events[i]
		state, known := states[e.key]
		switch {
		case e.uses:
			if state.begun == 0 {
				s.used.ContractIds = append(s.used.ContractIds, e.key.contractID)
				s.used.LedgerOffsets = append(s.used.LedgerOffsets, e.offset)
				s.used.NodeIds = append(s.used.NodeIds, e.nodeID)
			}
			continue
		case state.begun > 0:
			begun := &events[state.begun-1]
			s.lives = append(s.lives, dbsqlc.LifetimesCopyParams{
				DeactivatedOffset: e.offset, ActivatedOffset: begun.offset, ActivatedNodeID: begun.nodeID,
				SynchronizerRef: e.key.synchronizerRef, TemplateRef: begun.templateRef, ContractID: e.key.contractID,
			})
		case !known && (!e.activates || e.assigned): // what the table says counts until the first event
			s.ends.add(e)
			state.unseen = int32(len(s.ends.ContractIds))
		}
		if n := state.unseen - 1; n >= 0 && e.needs && s.ends.LookupOffsets[n] == 0 {
			s.ends.LookupOffsets[n], s.ends.LookupNodeIds[n] = e.offset, e.nodeID
		}
		state.begun = 0
		if e.activates {
			state = stepState{begun: int32(i) + 1}
		}
		states[e.key] = state
	}
	for i := range events {
		if e := &events[i]; e.activates && states[e.key].begun == int32(i)+1 {
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

func (n *endings) add(e *stepEvent) {
	n.ContractIds = append(n.ContractIds, e.key.contractID)
	n.SynchronizerRefs = append(n.SynchronizerRefs, e.key.synchronizerRef)
	n.DeactivatedOffsets = append(n.DeactivatedOffsets, e.offset)
	n.LookupOffsets = append(n.LookupOffsets, 0)
	n.LookupNodeIds = append(n.LookupNodeIds, 0)
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
func (s *step) deactivations() (offsets []int64) {
	for _, offset := range s.ends.DeactivatedOffsets {
		offsets = needed(offsets, offset)
	}
	for i := range s.lives {
		offsets = needed(offsets, s.lives[i].DeactivatedOffset)
	}
	return offsets
}

// project applies the step to the active contracts.
func (l *Leader) project(ctx context.Context, tx pgx.Tx, s *step) error {
	if len(s.used.ContractIds)+len(s.ends.ContractIds)+len(s.lives)+len(s.begins.ContractIds) == 0 {
		return nil
	}
	started := time.Now()
	if err := l.store.queries.DerivePlainly(ctx, tx); err != nil {
		return fmt.Errorf("have contracts looked up by index: %w", err)
	}
	if err := l.apply(ctx, tx, &activeContracts, s); err != nil {
		return err
	}
	l.store.cfg.Observe("project", time.Since(started))
	return nil
}

// apply applies the step to a set. What ends goes before what begins: a contract may leave a synchronizer and come back. What was
// used is compared with what was active before either.
func (l *Leader) apply(ctx context.Context, tx pgx.Tx, set *activeSet, s *step) error {
	if u := &s.used; len(u.ContractIds) > 0 {
		if _, err := tx.Exec(ctx, set.want, u.ContractIds, u.LedgerOffsets, u.NodeIds); err != nil {
			return fmt.Errorf("ask for %d exercised contracts: %w", len(u.ContractIds), err)
		}
	}
	if e := &s.ends; len(e.ContractIds) > 0 {
		_, err := tx.Exec(ctx, set.end, e.ContractIds, e.SynchronizerRefs, e.DeactivatedOffsets, e.LookupOffsets, e.LookupNodeIds)
		if err != nil {
			return fmt.Errorf("deactivate %d contracts: %w", len(e.ContractIds), err)
		}
	}
	if err := copyRows(ctx, tx, "lifetimes", s.lives, l.store.queries.LifetimesCopy); err != nil {
		return err
	}
	if b := &s.begins; len(b.ContractIds) > 0 {
		_, err := tx.Exec(ctx, set.begin, b.ContractIds, b.SynchronizerRefs, b.TemplateRefs, b.ActivatedOffsets, b.ActivatedNodeIds, b.ReassignmentCounters)
		if err != nil {
			return fmt.Errorf("activate %d contracts: %w", len(b.ContractIds), err)
		}
	}
	return nil
}
