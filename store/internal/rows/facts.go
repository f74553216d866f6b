package rows

import (
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
}

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

// UpdateNames collects the names, and the lists of parties, that an update's rows refer to.
func UpdateNames(n *names.Wanted, u *ledger.Update) {
	if u.SynchronizerID != nil {
		n.Synchronizer(*u.SynchronizerID)
	}
	seenBy := make(names.Audience, 0, 8)
	for i := range u.Created {
		seenBy = seenBy.With(wantCreated(n, &u.Created[i], u.Plain))
	}
	for i := range u.Archived {
		n.Template(u.Archived[i].TemplateID, u.Archived[i].PackageName, nil)
		seenBy = seenBy.With(n.Parties(u.Archived[i].WitnessParties))
	}
	for i := range u.Exercised {
		n.Template(u.Exercised[i].TemplateID, u.Exercised[i].PackageName, nil)
		n.Parties(u.Exercised[i].ActingParties)
		seenBy = seenBy.With(n.Parties(u.Exercised[i].WitnessParties))
	}
	for i := range u.Assigned {
		a := &u.Assigned[i]
		n.Template(a.TemplateID, a.PackageName, nil)
		n.Synchronizer(a.Source)
		n.Synchronizer(a.Target)
	}
	for i := range u.Unassigned {
		seenBy = seenBy.With(unassignedNames(n, &u.Unassigned[i]))
	}
	for i := range u.Topology {
		if party := u.Topology[i].PartyID; party != nil {
			seenBy = seenBy.With(n.Parties([]string{*party}))
		}
	}
	n.SeenBy(u, seenBy)
}

// unassignedNames collects the names of an unassignment, and returns who may see it.
func unassignedNames(n *names.Wanted, e *ledger.UnassignedEvent) names.ListPlace {
	n.Template(e.TemplateID, e.PackageName, nil)
	n.Synchronizer(e.Source)
	n.Synchronizer(e.Target)
	return n.Parties(e.WitnessParties)
}

// Grow makes room for the rows of updates, where there are many: those of large batches have some MB.
func (f *Facts) Grow(updates []*ledger.Update) {
	var created, archived, exercised int
	for _, u := range updates {
		created += len(u.Created)
		archived += len(u.Archived)
		exercised += len(u.Exercised)
	}
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
		exercised: emptied(f.exercised)})
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

// Add converts an update into its rows.
func (f *Facts) Add(r names.Numbers, u *ledger.Update) {
	f.exact.plain = u.Plain
	f.exact.Time("recordTime", u.RecordTime)
	f.exact.Time("effectiveAt", u.EffectiveAt)
	synchronizer := r.OptionalSynchronizer(u.SynchronizerID)
	row := Update{
		LedgerOffset: int64(u.Offset), Kind: string(u.Kind), SynchronizerRef: synchronizer,
		RecordTime: Timestamp(u.RecordTime), EffectiveAt: Timestamp(u.EffectiveAt), CommandID: u.CommandID,
		WorkflowID:  u.WorkflowID,
		TraceParent: u.TraceParent, TraceState: u.TraceState, ExternalTransactionHash: u.ExternalTransactionHash,
		TransactionHash: u.TransactionHash, PaidTrafficCost: u.PaidTrafficCost, Extra: f.exact.Value("extra", u.Extra),
		Exact: f.exact.Column(),
	}
	row.SeenByRef, row.SeenAlsoByRef, row.SeenByOthersRef = r.SeenBy(u)
	if u.ID != "" {
		row.UpdateID = &u.ID
	}
	f.updates = append(f.updates, row)

	assignments := AssignmentsOf(u)
	for i := range u.Created {
		c := &u.Created[i]
		if c.Origin != ledger.OriginAssignment {
			f.addCreated(r, u, c, synchronizer)
			continue
		}
		assigned := assignments[c.NodeID]
		f.addCreated(r, u, c, r.OptionalSynchronizer(&assigned.Target))
		f.addReassignment(u, assignedRow(r, u.Offset, assigned.NodeID, assigned, c.WitnessParties, &f.exact))
	}
	for i := range u.Archived {
		f.addArchived(r, u, &u.Archived[i], synchronizer)
	}
	for i := range u.Exercised {
		f.addExercised(r, u, &u.Exercised[i], synchronizer)
	}
	for i := range u.Unassigned {
		f.addReassignment(u, unassignedRow(r, u.Offset, &u.Unassigned[i], &f.exact))
	}
	for i := range u.Topology {
		f.addTopology(u, &u.Topology[i], synchronizer)
	}
	for i, e := range u.Unknown {
		f.unknown = append(f.unknown, UnknownElement{
			LedgerOffset: int64(u.Offset), Ordinal: int32(i), NodeID: e.NodeID, Kind: e.Kind, SynchronizerRef: synchronizer,
			RecordTime: Timestamp(u.RecordTime), Raw: f.exact.Value("raw", e.Raw), Exact: f.exact.Column(),
		})
	}
}

func (f *Facts) addCreated(r names.Numbers, u *ledger.Update, c *ledger.CreatedEvent, synchronizer *int32) {
	row := createdRow(r, u.Offset, c, synchronizer, &f.exact)
	row.Origin, row.RecordTime = string(c.Origin), Timestamp(u.RecordTime)
	f.Created = append(f.Created, row)
	for i := range c.InterfaceViews {
		view := interfaceViewRow(r, u.Offset, c, i, synchronizer, &f.exact)
		view.RecordTime = row.RecordTime
		f.interfaceViews = append(f.interfaceViews, view)
	}
}

func (f *Facts) addArchived(r names.Numbers, u *ledger.Update, a *ledger.ArchivedEvent, synchronizer *int32) {
	f.archived = append(f.archived, Archived{
		LedgerOffset: int64(u.Offset), NodeID: a.NodeID, ContractID: a.ContractID, TemplateRef: r.Template(a.TemplateID,
			a.PackageName, nil),
		SynchronizerRef: synchronizer, RecordTime: Timestamp(u.RecordTime), WitnessPartiesRef: r.Parties(a.WitnessParties),
		ImplementedInterfaces: a.ImplementedInterfaces, Extra: f.exact.Value("extra", a.Extra), Exact: f.exact.Column(),
	})
}

func (f *Facts) addExercised(r names.Numbers, u *ledger.Update, e *ledger.ExercisedEvent, synchronizer *int32) {
	f.exercised = append(f.exercised, Exercised{
		LedgerOffset: int64(u.Offset), NodeID: e.NodeID, ContractID: e.ContractID, TemplateRef: r.Template(e.TemplateID,
			e.PackageName, nil),
		SynchronizerRef: synchronizer, RecordTime: Timestamp(u.RecordTime), InterfaceID: e.InterfaceID, Choice: e.Choice,
		ChoiceArgument:   f.exact.Value("choice_argument", e.Argument),
		ExerciseResult:   f.exact.Value("exercise_result", e.Result),
		ActingPartiesRef: r.Parties(e.ActingParties), Consuming: e.Consuming, LastDescendantNodeID: e.LastDescendantNodeID,
		WitnessPartiesRef: r.Parties(e.WitnessParties), ACSDelta: e.ACSDelta, ImplementedInterfaces: e.ImplementedInterfaces,
		Extra: f.exact.Value("extra", e.Extra), Exact: f.exact.Column(),
	})
}

func (f *Facts) addReassignment(u *ledger.Update, row Reassignment) {
	row.RecordTime = Timestamp(u.RecordTime)
	f.reassignments = append(f.reassignments, row)
}

func (f *Facts) addTopology(u *ledger.Update, e *ledger.TopologyEvent, synchronizer *int32) {
	f.topologyEvents = append(f.topologyEvents, TopologyEvent{
		LedgerOffset: int64(u.Offset), NodeID: e.NodeID, Kind: string(e.Kind), SynchronizerRef: synchronizer,
		RecordTime: Timestamp(u.RecordTime), PartyID: e.PartyID, ParticipantID: e.ParticipantID, Permission: e.Permission,
		Extra: f.exact.Value("extra", e.Extra), Exact: f.exact.Column(),
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
