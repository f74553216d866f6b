package rows

import (
	"cmp"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// Facts are the rows of a batch, one list per fact table.
type Facts struct {
	updates        []Update
	Created        []Created
	archived       []Archived
	exercised      []Exercised
	interfaceViews []InterfaceView
	reassignments  []Reassignment
	topologyEvents []TopologyEvent
	unknown        []UnknownElement
	exact          Exact
	effects        []Effect
	seenBy         names.Viewers // of the update that is added
}

// Effects are what the updates do to the active set, in the order of offsets and node ids.
func (f *Facts) Effects() []Effect { return f.effects }

// Tables lists every fact table, with what goes into it.
func (f *Facts) Tables() []Table {
	return []Table{
		TableOf("updates", f.updates),
		TableOf("created", f.Created),
		TableOf("archived", f.archived),
		TableOf("exercised", f.exercised),
		TableOf("interface_views", f.interfaceViews),
		TableOf("reassignments", f.reassignments),
		TableOf("topology_events", f.topologyEvents),
		TableOf("unknown_elements", f.unknown),
	}
}

// Grow makes room for the rows of updates, where there are many: those of large batches have some MB.
func (f *Facts) Grow(updates []*ledger.Update) {
	var created, archived, exercised, unassigned int
	for _, u := range updates {
		created += len(u.Created)
		archived += len(u.Archived)
		exercised += len(u.Exercised)
		unassigned += len(u.Unassigned)
	}
	f.effects = make([]Effect, 0, created+archived+exercised+unassigned) // they may outlive the rows
	f.updates = slices.Grow(f.updates, len(updates))
	f.Created = slices.Grow(f.Created, created)
	f.archived = slices.Grow(f.archived, archived)
	f.exercised = slices.Grow(f.exercised, exercised)
}

// factsPool are the lists of rows of batches that were written.
var factsPool sync.Pool

// mostKeptRows is how many rows a list may have room for that is kept. Batches have some thousand.
const mostKeptRows = 10_000

// NewFacts returns an empty set of rows, with the room of another batch's, if there is any.
func NewFacts() Facts {
	if f, ok := factsPool.Get().(*Facts); ok {
		return *f
	}
	return Facts{}
}

// Release keeps the room of the rows for another batch. They must have been written: after an error a COPY may read
// them still.
func (f *Facts) Release() {
	factsPool.Put(&Facts{updates: emptied(f.updates), Created: emptied(f.Created), archived: emptied(f.archived),
		exercised: emptied(f.exercised), seenBy: f.seenBy[:0]})
	*f = Facts{}
}

// emptied returns a list of length 0 with the same memory.
func emptied[T any](list []T) []T {
	if cap(list) > mostKeptRows {
		return nil
	}
	clear(list)
	return list[:0]
}

// FactsOf converts updates. See Add.
func FactsOf(wanted *names.References, updates []ledger.Update) *Facts {
	f := new(Facts)
	for i := range updates {
		f.Add(wanted, &updates[i])
	}
	return f
}

// Add converts an update into its rows, and into what it does to the active set. It collects the names that these refer
// to: their numbers are known when wanted is resolved.
func (f *Facts) Add(wanted *names.References, u *ledger.Update) {
	f.exact.plain = u.Plain
	row := updateRow(wanted, u, &f.exact)
	f.seenBy = f.seenBy[:0]
	w := walk{f, wanted, u, row.SynchronizerRef}
	first := len(f.effects)
	w.events()
	slices.SortStableFunc(f.effects[first:], func(a, b Effect) int { return cmp.Compare(a.NodeID, b.NodeID) })
	row.SeenByRef, row.SeenAlsoByRef, row.SeenByOthersRef = wanted.SeenBy(f.seenBy)
	f.updates = append(f.updates, row)
}

// walk is the way through the events of one update.
type walk struct {
	*Facts
	wanted       *names.References
	u            *ledger.Update
	synchronizer *int32
}

func (w *walk) events() {
	u := w.u
	assignments := AssignmentsOf(u)
	for i := range u.Created {
		w.created(&u.Created[i], assignments)
	}
	for i := range u.Archived {
		w.archive(&u.Archived[i])
	}
	for i := range u.Exercised {
		w.exercise(&u.Exercised[i])
	}
	for i := range u.Unassigned {
		w.unassign(&u.Unassigned[i])
	}
	for i := range u.Topology {
		w.topology(&u.Topology[i])
	}
	for i := range u.Unknown {
		w.unknownElement(&u.Unknown[i], i)
	}
}

// nowhere is the synchronizer of an update that names none.
var nowhere = new(int32)

func (w *walk) effect(e Effect) {
	if e.Offset = int64(w.u.Offset); e.Synchronizer == nil {
		e.Synchronizer = nowhere
	}
	w.effects = append(w.effects, e)
}

// Timestamp returns a time as a column takes it.
func Timestamp(t ledger.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t.Time, Valid: t.Valid}
}

// AssignmentsOf gives the update's assignments by node id, which is that of the creation event each one brought:
// decoding makes both from one element.
func AssignmentsOf(u *ledger.Update) map[int32]*ledger.AssignedEvent {
	if len(u.Assigned) == 0 {
		return nil
	}
	assignments := make(map[int32]*ledger.AssignedEvent, len(u.Assigned))
	for i := range u.Assigned {
		assignments[u.Assigned[i].NodeID] = &u.Assigned[i]
	}
	return assignments
}
