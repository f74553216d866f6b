package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// lifetime is when a contract was active on a synchronizer.
type lifetime struct {
	contract, synchronizer string
	activated              ledger.Offset
	node                   int32
	deactivated            ledger.Offset // 0: still active
}

// model is the active set, computed one event at a time.
type model struct {
	active map[[2]string]lifetime
	closed []lifetime
}

func (m *model) activate(contract, synchronizer string, offset ledger.Offset, node int32) {
	m.deactivate(contract, synchronizer, offset) // one lifetime is open at a time
	m.active[[2]string{contract, synchronizer}] = lifetime{contract, synchronizer, offset, node, 0}
}

func (m *model) deactivate(contract, synchronizer string, offset ledger.Offset) {
	key := [2]string{contract, synchronizer}
	if l, ok := m.active[key]; ok {
		l.deactivated = offset
		m.closed = append(m.closed, l)
		delete(m.active, key)
	}
}

// apply takes an update's events in the order of their node ids.
func (m *model) apply(u *ledger.Update) {
	events := map[int32]func(node int32){}
	for _, c := range u.Created {
		if c.Origin == ledger.OriginTransaction && (c.ACSDelta == nil || *c.ACSDelta) {
			events[c.NodeID] = func(node int32) { m.activate(c.ContractID, *u.SynchronizerID, u.Offset, node) }
		}
	}
	for _, a := range u.Assigned {
		events[a.NodeID] = func(node int32) { m.activate(a.ContractID, a.Target, u.Offset, node) }
	}
	for _, a := range u.Archived {
		events[a.NodeID] = func(int32) { m.deactivate(a.ContractID, *u.SynchronizerID, u.Offset) }
	}
	for _, e := range u.Exercised {
		if e.Consuming {
			events[e.NodeID] = func(int32) { m.deactivate(e.ContractID, *u.SynchronizerID, u.Offset) }
		}
	}
	for _, e := range u.Unassigned {
		events[e.NodeID] = func(int32) { m.deactivate(e.ContractID, e.Source, u.Offset) }
	}
	for _, node := range slices.Sorted(maps.Keys(events)) {
		events[node](node)
	}
}

func (m *model) activeRows() []string {
	rows := []string{}
	for _, l := range m.active {
		rows = append(rows, fmt.Sprint(l.contract, " ", l.synchronizer, " ", l.activated, " ", l.node))
	}
	return storetest.Sorted(rows)
}

func (m *model) closedRows() []string {
	rows := []string{}
	for _, l := range m.closed {
		rows = append(rows, fmt.Sprint(l.contract, " ", l.synchronizer, " ", l.activated, " ", l.node, " ", l.deactivated))
	}
	return storetest.Sorted(rows)
}

// However a history is cut into batches, the projections are what its events make one by one, and so is what was
// active as of each offset.
func TestProjection(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	rapid.Check(t, func(rt *rapid.T) {
		d.Exec("TRUNCATE indexer.updates, indexer.created, indexer.archived, indexer.exercised, indexer.reassignments, indexer.lifetimes, indexer.active_contracts, indexer.coverage")
		d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 0")
		var h storetest.History
		h.Draw(rt)
		for _, batch := range h.Batches(rt) {
			require.NoError(rt, l.Append(t.Context(), storetest.Scope, batch))
		}
		m := model{active: map[[2]string]lifetime{}}
		asOf := map[ledger.Offset][]string{}
		for i := range h.Updates {
			m.apply(&h.Updates[i])
			asOf[h.Updates[i].Offset] = m.activeRows()
		}
		require.Equal(rt, m.activeRows(), d.Rows(`SELECT contract_id, synchronizer_id, activated_offset, activated_node_id
			FROM ledger.active_contracts ORDER BY format('%s %s %s %s', contract_id, synchronizer_id, activated_offset, activated_node_id) COLLATE "C"`))
		require.Equal(rt, m.closedRows(), storetest.Sorted(d.Rows(`SELECT contract_id, synchronizer_id, activated_offset, activated_node_id, deactivated_offset
			FROM indexer.lifetimes JOIN indexer.synchronizers USING (synchronizer_ref)`)))
		for offset, want := range asOf {
			require.Equal(rt, want, storetest.Sorted(d.Rows("SELECT contract_id, synchronizer_id, active_from, active_from_node_id FROM ledger.active_at($1)", offset)),
				"as of %d", offset)
		}
	})
}
