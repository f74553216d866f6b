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
	ends   []ending
	lives  []dbsqlc.IndexerLifetimes
	begins []dbsqlc.IndexerActiveContracts
	used   []use
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

// ending is a contract that ends on a synchronizer. One that turns out not to be active is asked for where its lookup offset is not
// 0: it was archived, and its creation should have been seen.
type ending struct {
	key               activeKey
	deactivatedOffset int64
	lookupOffset      int64
	lookupNodeID      int32
}

// use is a contract that was used, and is asked for where it is not active.
type use struct {
	contractID string
	offset     int64
	nodeID     int32
}

// activeSet is a table of what is active.
type activeSet struct {
	table string
	use   func(context.Context, dbsqlc.DBTX, dbsqlc.ActiveContractsUseParams) error // asks for contracts that were used and are not active
	// unknown is a condition more on what is asked for because it ends and was not active.
	unknown string
}

func (s *Store) activeContracts() activeSet {
	return activeSet{"active_contracts", s.queries.ActiveContractsUse, ""}
}

// fillActive is the set of filled history. There a creation that is stored, on another synchronizer or later, is nothing to ask for.
func (s *Store) fillActive() activeSet {
	use := func(ctx context.Context, db dbsqlc.DBTX, used dbsqlc.ActiveContractsUseParams) error {
		return s.queries.FillActiveUse(ctx, db, dbsqlc.FillActiveUseParams(used))
	}
	return activeSet{"fill_active", use, " AND NOT EXISTS (SELECT FROM indexer.created c WHERE c.contract_id = e.contract_id)"}
}

// endSQL ends what is active: each active row goes and leaves a closed lifetime. What was not active is a list of numbers that is
// looked into, not a join, which would be quadratic: neither side has statistics. It is no query of sqlc's, which does not see what
// USING brings.
func (set *activeSet) endSQL() string {
	return `WITH ended AS MATERIALIZED (
    SELECT unnest($1::integer[]) AS synchronizer_ref, unnest($2::bigint[]) AS deactivated_offset, unnest($3::bigint[]) AS lookup_offset,
        unnest($4::integer[]) AS lookup_node_id, unnest($5::text[]) AS contract_id, generate_series(1, cardinality($1::integer[])) AS number
), closed AS (
    DELETE FROM indexer.` + set.table + ` a USING ended e
    WHERE a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref
    RETURNING e.number, e.deactivated_offset, a.activated_offset, a.activated_node_id, a.synchronizer_ref, a.template_ref, a.contract_id
), wanted AS (
    INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id)
    SELECT e.contract_id, e.lookup_offset, e.lookup_node_id FROM ended e
    WHERE e.lookup_offset > 0 AND e.number NOT IN (SELECT c.number FROM closed c)` + set.unknown + `
    ON CONFLICT DO NOTHING
)
INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, synchronizer_ref, template_ref, contract_id)
SELECT c.deactivated_offset, c.activated_offset, c.activated_node_id, c.synchronizer_ref, c.template_ref, c.contract_id FROM closed c`
}

// stepState is what the events of a step so far say of a contract on a synchronizer.
type stepState struct {
	known  bool  // was activated or deactivated
	begun  int32 // place in what begins, one more, if it was not deactivated since; else 0
	unseen int32 // place in what ends, one more, until it is activated in this step; else 0
}

// projectionStep works out the step of events, which are in the order of offsets and node ids. A contract that lived and
// died within it never touches the active set. An activation of what is active already begins a new lifetime and ends the
// one before, so that exactly one is open at every offset.
func projectionStep(events ...[]stepEvent) *step {
	count, activations := 0, 0
	for _, part := range events {
		count += len(part)
		for i := range part {
			if part[i].activates {
				activations++
			}
		}
	}
	s := step{begins: make([]dbsqlc.IndexerActiveContracts, 0, activations)}
	numbers := make(map[activeKey]int32, count/2)
	states := make([]stepState, 0, count/2)
	for _, part := range events {
		for i := range part {
			e := &part[i]
			number, known := numbers[e.key]
			if !known {
				number = int32(len(states))
				numbers[e.key], states = number, append(states, stepState{})
			}
			s.take(e, &states[number])
		}
	}
	s.begins = slices.DeleteFunc(s.begins, func(b dbsqlc.IndexerActiveContracts) bool { return b.ActivatedOffset == ended })
	return &s
}

// ended is in place of the offset of what began and ended in the step. No update has it.
const ended = 0

// take adds what an event does, after those that led to the state.
func (s *step) take(e *stepEvent, state *stepState) {
	switch {
	case e.uses:
		if state.begun == 0 {
			s.used = append(s.used, use{e.key.contractID, e.offset, e.nodeID})
		}
		return
	case state.begun > 0:
		begun := &s.begins[state.begun-1]
		s.lives = append(s.lives, dbsqlc.IndexerLifetimes{
			DeactivatedOffset: e.offset, ActivatedOffset: begun.ActivatedOffset, ActivatedNodeID: begun.ActivatedNodeID,
			SynchronizerRef: begun.SynchronizerRef, TemplateRef: begun.TemplateRef, ContractID: begun.ContractID,
		})
		begun.ActivatedOffset = ended
	case !state.known && (!e.activates || e.assigned): // what the table says counts until the first event
		s.ends = append(s.ends, ending{key: e.key, deactivatedOffset: e.offset})
		state.unseen = int32(len(s.ends))
	}
	if n := state.unseen - 1; n >= 0 && e.needs && s.ends[n].lookupOffset == 0 {
		s.ends[n].lookupOffset, s.ends[n].lookupNodeID = e.offset, e.nodeID
	}
	state.known, state.begun = true, 0
	if e.activates {
		s.begins = append(s.begins, dbsqlc.IndexerActiveContracts{
			ContractID: e.key.contractID, SynchronizerRef: e.key.synchronizerRef, TemplateRef: e.templateRef,
			ActivatedOffset: e.offset, ActivatedNodeID: e.nodeID, ReassignmentCounter: e.counter,
		})
		*state = stepState{known: true, begun: int32(len(s.begins))}
	}
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
	for i := range s.ends {
		offsets = needed(offsets, s.ends[i].deactivatedOffset)
	}
	for i := range s.lives {
		offsets = needed(offsets, s.lives[i].DeactivatedOffset)
	}
	return offsets
}

// project applies the step to the active contracts.
func (l *Leader) project(ctx context.Context, tx pgx.Tx, s *step) error {
	if len(s.used)+len(s.ends)+len(s.lives)+len(s.begins) == 0 {
		return nil
	}
	started := time.Now()
	if err := l.store.queries.DerivePlainly(ctx, tx); err != nil {
		return fmt.Errorf("have contracts looked up by index: %w", err)
	}
	if err := l.apply(ctx, tx, l.store.activeContracts(), s); err != nil {
		return err
	}
	l.store.cfg.Observe("project", time.Since(started))
	return nil
}

// apply applies the step to a set. What ends goes before what begins: a contract may leave a synchronizer and come back. What was
// used is compared with what was active before either.
func (l *Leader) apply(ctx context.Context, tx pgx.Tx, set activeSet, s *step) error {
	if len(s.used) > 0 {
		err := set.use(ctx, tx, dbsqlc.ActiveContractsUseParams{
			LedgerOffsets: columnOf(s.used, func(u *use) int64 { return u.offset }), NodeIds: columnOf(s.used, func(u *use) int32 { return u.nodeID }),
			ContractIds: columnOf(s.used, func(u *use) string { return u.contractID }),
		})
		if err != nil {
			return fmt.Errorf("ask for %d exercised contracts: %w", len(s.used), err)
		}
	}
	if len(s.ends) > 0 {
		_, err := tx.Exec(ctx, set.endSQL(),
			columnOf(s.ends, func(e *ending) int32 { return e.key.synchronizerRef }),
			columnOf(s.ends, func(e *ending) int64 { return e.deactivatedOffset }),
			columnOf(s.ends, func(e *ending) int64 { return e.lookupOffset }),
			columnOf(s.ends, func(e *ending) int32 { return e.lookupNodeID }),
			columnOf(s.ends, func(e *ending) string { return e.key.contractID })) // the largest is the last one: they go behind one another
		if err != nil {
			return fmt.Errorf("deactivate %d contracts: %w", len(s.ends), err)
		}
	}
	if err := copyRows(ctx, tx, "lifetimes", s.lives); err != nil {
		return err
	}
	return copyRows(ctx, tx, set.table, s.begins)
}

// columnOf is a column of rows, as statements take it.
func columnOf[R, T any](rows []R, value func(*R) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = value(&rows[i])
	}
	return list
}
