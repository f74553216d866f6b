package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
)

// lifetime is when a contract was active on a synchronizer.
type lifetime struct {
	contract, synchronizer string
	activated              ledger.Offset
	node                   int32
	deactivated            ledger.Offset // 0: still active
}

// model is the active set, worked out one event at a time.
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
	return sorted(rows)
}

func (m *model) closedRows() []string {
	rows := []string{}
	for _, l := range m.closed {
		rows = append(rows, fmt.Sprint(l.contract, " ", l.synchronizer, " ", l.activated, " ", l.node, " ", l.deactivated))
	}
	return sorted(rows)
}

// history is a sequence of updates with few contracts, so that everything happens to each of them.
type history struct {
	created int
	updates []ledger.Update
}

func (h *history) draw(t *rapid.T) {
	offset := ledger.Offset(0)
	synchronizers := []string{"sync::1", "sync::2"}
	for range rapid.IntRange(1, 25).Draw(t, "updates") {
		offset += ledger.Offset(rapid.IntRange(1, 3).Draw(t, "gap"))
		u := newUpdate(offset, rapid.SampledFrom(synchronizers).Draw(t, "synchronizer"))
		nodes := rapid.Permutation([]int32{0, 1, 2, 3, 4, 5}).Draw(t, "nodes")
		for _, node := range nodes[:rapid.IntRange(0, 6).Draw(t, "events")] {
			h.event(t, &u, node)
		}
		h.updates = append(h.updates, u)
	}
}

func (h *history) event(t *rapid.T, u *ledger.Update, node int32) {
	contract := fmt.Sprint("unseen", rapid.IntRange(0, 1).Draw(t, "unseen")) // its creation is
	if h.created > 0 && rapid.IntRange(0, 3).Draw(t, "seen") > 0 {
		contract = fmt.Sprint("c", rapid.IntRange(max(0, h.created-3), h.created-1).Draw(t, "contract"))
	}
	other := map[string]string{"sync::1": "sync::2", "sync::2": "sync::1"}[*u.SynchronizerID]
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0, 1: // a contract is created once; what is only witnessed is never active
		c := creation(node, fmt.Sprint("c", h.created))
		c.ACSDelta = drawACSDelta(t)
		h.created++
		u.Created = append(u.Created, c)
	case 2:
		u.Archived = append(u.Archived, archival(node, contract))
	case 3:
		u.Exercised = append(u.Exercised, exercise(node, contract, true, drawACSDelta(t)))
	case 4:
		u.Exercised = append(u.Exercised, exercise(node, contract, false, drawACSDelta(t)))
	case 5, 6:
		assign(u, node, contract, other, *u.SynchronizerID, 1)
	default:
		unassign(u, node, contract, *u.SynchronizerID, other, 2)
	}
}

func drawACSDelta(t *rapid.T) *bool {
	return rapid.SampledFrom([]*bool{ptr(true), ptr(true), nil, ptr(false)}).Draw(t, "acs delta")
}

// batches cuts the history into pages, and the pages into batches.
func (h *history) batches(t *rapid.T) [][]ledger.Page {
	var batches [][]ledger.Page
	at := ledger.Offset(0)
	for rest := h.updates; len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "page")
		page := ledger.Page{From: at, To: rest[n-1].Offset, Updates: rest[:n]}
		at, rest = page.To, rest[n:]
		if len(batches) > 0 && rapid.Bool().Draw(t, "same batch") {
			batches[len(batches)-1] = append(batches[len(batches)-1], page)
		} else {
			batches = append(batches, []ledger.Page{page})
		}
	}
	return batches
}

// However a history is cut into batches, the projections are what its events make one by one, and so is what was
// active as of each offset.
func TestProjection(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	rapid.Check(t, func(rt *rapid.T) {
		d.exec("TRUNCATE indexer.updates, indexer.created, indexer.archived, indexer.exercised, indexer.reassignments, indexer.lifetimes, indexer.active_contracts, indexer.coverage")
		d.exec("UPDATE indexer.checkpoints SET ledger_offset = 0")
		var h history
		h.draw(rt)
		for _, batch := range h.batches(rt) {
			require.NoError(rt, l.Append(t.Context(), testScope, batch))
		}
		m := model{active: map[[2]string]lifetime{}}
		asOf := map[ledger.Offset][]string{}
		for i := range h.updates {
			m.apply(&h.updates[i])
			asOf[h.updates[i].Offset] = m.activeRows()
		}
		require.Equal(rt, m.activeRows(), d.rows(`SELECT contract_id, synchronizer_id, activated_offset, activated_node_id
			FROM ledger.active_contracts ORDER BY format('%s %s %s %s', contract_id, synchronizer_id, activated_offset, activated_node_id) COLLATE "C"`))
		require.Equal(rt, m.closedRows(), sorted(d.rows(`SELECT contract_id, synchronizer_id, activated_offset, activated_node_id, deactivated_offset
			FROM indexer.lifetimes JOIN indexer.synchronizers USING (synchronizer_ref)`)))
		for offset, want := range asOf {
			require.Equal(rt, want, sorted(d.rows("SELECT contract_id, synchronizer_id, active_from, active_from_node_id FROM ledger.active_at($1)", offset)),
				"as of %d", offset)
		}
	})
}
