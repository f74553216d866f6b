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
	f.exact.Time("recordTime", u.RecordTime)
	f.exact.Time("effectiveAt", u.EffectiveAt)
	row := Update{
		LedgerOffset: int64(u.Offset), Kind: string(u.Kind), SynchronizerRef: wanted.OptionalSynchronizer(u.SynchronizerID),
		RecordTime: Timestamp(u.RecordTime), EffectiveAt: Timestamp(u.EffectiveAt), CommandID: u.CommandID,
		WorkflowID:  u.WorkflowID,
		TraceParent: u.TraceParent, TraceState: u.TraceState, ExternalTransactionHash: u.ExternalTransactionHash,
		TransactionHash: u.TransactionHash, PaidTrafficCost: u.PaidTrafficCost, Extra: f.exact.Value("extra", u.Extra),
		Exact: f.exact.Column(),
	}
	if u.ID != "" {
		row.UpdateID = &u.ID
	}
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
		e := &u.Unassigned[i]
		row, seenBy := unassignedRow(w.wanted, u.Offset, e, &w.exact)
		w.seenBy = w.seenBy.With(seenBy)
		w.reassign(row)
		w.effect(Effect{ContractID: e.ContractID, Synchronizer: row.SynchronizerRef, NodeID: e.NodeID})
	}
	for i := range u.Topology {
		w.topology(&u.Topology[i])
	}
	for i, e := range u.Unknown {
		w.unknown = append(w.unknown, UnknownElement{
			LedgerOffset: int64(u.Offset), Ordinal: int32(i), NodeID: e.NodeID, Kind: e.Kind, SynchronizerRef: w.synchronizer,
			RecordTime: Timestamp(u.RecordTime), Raw: w.exact.Value("raw", e.Raw), Exact: w.exact.Column(),
		})
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

// created adds a creation event. It activates the contract where acs_delta is not false, or by assignment.
func (w *walk) created(c *ledger.CreatedEvent, assignments map[int32]*ledger.AssignedEvent) {
	refs := creationOf(w.wanted, c, w.u.Plain)
	w.seenBy = w.seenBy.With(refs.Viewers[:]...)
	synchronizer := w.synchronizer
	effect := Effect{ContractID: c.ContractID, NodeID: c.NodeID, Activates: true, Template: refs.Template,
		Holding: refs.Holding, Stakeholders: refs.Stakeholders}
	if c.Origin == ledger.OriginAssignment {
		assigned := assignments[c.NodeID]
		synchronizer = w.wanted.Synchronizer(assigned.Target)
		effect.Assigned, effect.Counter = true, assigned.ReassignmentCounter
	}
	row := createdRow(refs, w.u.Offset, c, synchronizer, &w.exact)
	row.Origin, row.RecordTime = string(c.Origin), Timestamp(w.u.RecordTime)
	w.Created = append(w.Created, row)
	for i := range c.InterfaceViews {
		view := interfaceViewRow(refs, w.u.Offset, c, i, synchronizer, &w.exact)
		view.RecordTime = row.RecordTime
		w.interfaceViews = append(w.interfaceViews, view)
	}
	if effect.Assigned {
		w.reassign(assignedRow(w.wanted, w.u.Offset, c.NodeID, assignments[c.NodeID], c.WitnessParties, &w.exact))
	}
	if effect.Synchronizer = synchronizer; effect.Assigned || c.ACSDelta == nil || *c.ACSDelta {
		w.effect(effect)
	}
}

func (w *walk) archive(a *ledger.ArchivedEvent) {
	witnesses := w.wanted.List(a.WitnessParties)
	w.seenBy = w.seenBy.With(witnesses)
	w.archived = append(w.archived, Archived{
		LedgerOffset: int64(w.u.Offset), NodeID: a.NodeID, ContractID: a.ContractID,
		TemplateRef:     w.wanted.Template(a.TemplateID, a.PackageName, nil),
		SynchronizerRef: w.synchronizer, RecordTime: Timestamp(w.u.RecordTime), WitnessPartiesRef: w.wanted.At(witnesses),
		ImplementedInterfaces: a.ImplementedInterfaces, Extra: w.exact.Value("extra", a.Extra), Exact: w.exact.Column(),
	})
	w.effect(Effect{ContractID: a.ContractID, Synchronizer: w.synchronizer, NodeID: a.NodeID, WantsLookup: true})
}

// exercise adds an exercise. One that archives nothing uses its contract where acs_delta is not false: that is active,
// or should be.
func (w *walk) exercise(e *ledger.ExercisedEvent) {
	witnesses := w.wanted.List(e.WitnessParties)
	w.seenBy = w.seenBy.With(witnesses)
	w.exercised = append(w.exercised, Exercised{
		LedgerOffset: int64(w.u.Offset), NodeID: e.NodeID, ContractID: e.ContractID,
		TemplateRef:     w.wanted.Template(e.TemplateID, e.PackageName, nil),
		SynchronizerRef: w.synchronizer, RecordTime: Timestamp(w.u.RecordTime), InterfaceID: e.InterfaceID, Choice: e.Choice,
		ChoiceArgument:   w.exact.Value("choice_argument", e.Argument),
		ExerciseResult:   w.exact.Value("exercise_result", e.Result),
		ActingPartiesRef: w.wanted.Parties(e.ActingParties), Consuming: e.Consuming,
		LastDescendantNodeID: e.LastDescendantNodeID,
		WitnessPartiesRef:    w.wanted.At(witnesses), ACSDelta: e.ACSDelta, ImplementedInterfaces: e.ImplementedInterfaces,
		Extra: w.exact.Value("extra", e.Extra), Exact: w.exact.Column(),
	})
	if witnessed := e.ACSDelta != nil && !*e.ACSDelta; e.Consuming || !witnessed {
		w.effect(Effect{ContractID: e.ContractID, Synchronizer: w.synchronizer, NodeID: e.NodeID,
			IsReference: !e.Consuming, WantsLookup: !witnessed})
	}
}

func (w *walk) reassign(row Reassignment) {
	row.RecordTime = Timestamp(w.u.RecordTime)
	w.reassignments = append(w.reassignments, row)
}

func (w *walk) topology(e *ledger.TopologyEvent) {
	if e.PartyID != nil {
		w.seenBy = w.seenBy.With(w.wanted.List([]string{*e.PartyID}))
	}
	w.topologyEvents = append(w.topologyEvents, TopologyEvent{
		LedgerOffset: int64(w.u.Offset), NodeID: e.NodeID, Kind: string(e.Kind), SynchronizerRef: w.synchronizer,
		RecordTime: Timestamp(w.u.RecordTime), PartyID: e.PartyID, ParticipantID: e.ParticipantID, Permission: e.Permission,
		Extra: w.exact.Value("extra", e.Extra), Exact: w.exact.Column(),
	})
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
