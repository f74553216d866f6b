package store

import (
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pgcopy"
)

// The kinds of reassignment, as they stand in the database.
const (
	kindAssigned   = "assigned"
	kindUnassigned = "unassigned"
)

// factRows are the rows of a batch, one list per fact table.
type factRows struct {
	updates        []dbsqlc.IndexerUpdates
	created        []dbsqlc.IndexerCreated
	archived       []dbsqlc.IndexerArchived
	exercised      []dbsqlc.IndexerExercised
	interfaceViews []dbsqlc.IndexerInterfaceViews
	reassignments  []dbsqlc.IndexerReassignments
	topologyEvents []dbsqlc.IndexerTopologyEvents
	unknown        []dbsqlc.IndexerUnknownElements
	exact          exactKeeper
}

// tableRows are the rows that go into one table of schema indexer.
type tableRows struct {
	relation string
	pgcopy.Rows
}

func tableOf[T any](relation string, rows []T) tableRows { return tableRows{relation, pgcopy.Of(rows)} }

// copyRows COPYs rows into a table of schema indexer, if there are any.
func copyRows[T any](ctx context.Context, tx pgx.Tx, relation string, rows []T) error {
	return tableOf(relation, rows).write(ctx, tx)
}

func (t tableRows) write(ctx context.Context, tx pgx.Tx) error { return t.writeTo(ctx, tx, t.relation) }

// writeTo writes into another table, which has the same columns.
func (t tableRows) writeTo(ctx context.Context, tx pgx.Tx, relation string) error {
	return pgcopy.Copy(ctx, tx, pgx.Identifier{"indexer", relation}, t.Rows)
}

// tables lists every fact table, with what goes into it.
func (f *factRows) tables() []tableRows {
	return []tableRows{
		tableOf("updates", f.updates),
		tableOf("created", f.created),
		tableOf("archived", f.archived),
		tableOf("exercised", f.exercised),
		tableOf("interface_views", f.interfaceViews),
		tableOf("reassignments", f.reassignments),
		tableOf("topology_events", f.topologyEvents),
		tableOf("unknown_elements", f.unknown),
		tableOf("exact_payloads", f.exact.rows),
	}
}

// updateNames collects the names, and the lists of parties, that an update's rows refer to.
func updateNames(n names, u *ledger.Update) {
	if u.SynchronizerID != nil {
		n.synchronizer(*u.SynchronizerID)
	}
	for i := range u.Created {
		n.created(&u.Created[i])
	}
	for i := range u.Archived {
		n.template(u.Archived[i].TemplateID, u.Archived[i].PackageName, nil)
		n.parties(u.Archived[i].WitnessParties)
	}
	for i := range u.Exercised {
		n.template(u.Exercised[i].TemplateID, u.Exercised[i].PackageName, nil)
		n.parties(u.Exercised[i].ActingParties)
		n.parties(u.Exercised[i].WitnessParties)
	}
	for i := range u.Assigned {
		a := &u.Assigned[i]
		n.template(a.TemplateID, a.PackageName, nil)
		n.synchronizer(a.Source)
		n.synchronizer(a.Target)
	}
	for i := range u.Unassigned {
		unassignedNames(n, &u.Unassigned[i])
	}
}

func unassignedNames(n names, e *ledger.UnassignedEvent) {
	n.template(e.TemplateID, e.PackageName, nil)
	n.parties(e.WitnessParties)
	n.synchronizer(e.Source)
	n.synchronizer(e.Target)
}

// grow makes room for the rows of updates, where there are many: those of large batches have some MB.
func (f *factRows) grow(updates []*ledger.Update) {
	var created, archived, exercised int
	for _, u := range updates {
		created += len(u.Created)
		archived += len(u.Archived)
		exercised += len(u.Exercised)
	}
	f.updates = slices.Grow(f.updates, len(updates))
	f.created = slices.Grow(f.created, created)
	f.archived = slices.Grow(f.archived, archived)
	f.exercised = slices.Grow(f.exercised, exercised)
}

// factRooms are the lists of rows of batches that were written.
var factRooms sync.Pool

// mostKeptRows is how many rows a list may have room for that is kept. Batches have some thousand.
const mostKeptRows = 10_000

// newFactRows are no rows yet, with the room of those of another batch, if there is any.
func newFactRows() factRows {
	if f, ok := factRooms.Get().(*factRows); ok {
		return *f
	}
	return factRows{}
}

// release keeps the room of the rows for another batch. They must have been written: after an error a COPY may read them still.
func (f *factRows) release() {
	factRooms.Put(&factRows{updates: emptied(f.updates), created: emptied(f.created), archived: emptied(f.archived), exercised: emptied(f.exercised)})
	*f = factRows{}
}

// emptied is the room of a list, without what was in it.
func emptied[T any](list []T) []T {
	if cap(list) > mostKeptRows {
		return nil
	}
	clear(list)
	return list[:0]
}

// add converts an update into its rows.
func (f *factRows) add(r refs, u *ledger.Update) {
	at := place{offset: u.Offset}
	f.exact.plain = u.Plain
	f.exact.time(at, "recordTime", u.RecordTime)
	f.exact.time(at, "effectiveAt", u.EffectiveAt)
	synchronizer := r.optionalSynchronizer(u.SynchronizerID)
	row := dbsqlc.IndexerUpdates{
		LedgerOffset: int64(u.Offset), Kind: string(u.Kind), SynchronizerRef: synchronizer,
		RecordTime: timestamp(u.RecordTime), EffectiveAt: timestamp(u.EffectiveAt), CommandID: u.CommandID, WorkflowID: u.WorkflowID,
		TraceParent: u.TraceParent, TraceState: u.TraceState, ExternalTransactionHash: u.ExternalTransactionHash,
		TransactionHash: u.TransactionHash, PaidTrafficCost: u.PaidTrafficCost, Extra: f.exact.value(at, "extra", u.Extra),
	}
	if u.ID != "" {
		row.UpdateID = &u.ID
	}
	f.updates = append(f.updates, row)

	assignments := assignmentsOf(u)
	for i := range u.Created {
		c := &u.Created[i]
		if c.Origin != ledger.OriginAssignment {
			f.addCreated(r, u, c, synchronizer)
			continue
		}
		assigned := assignments[c.NodeID]
		f.addCreated(r, u, c, r.optionalSynchronizer(&assigned.Target))
		f.addAssigned(r, u, assigned, c.WitnessParties)
	}
	for i := range u.Archived {
		f.addArchived(r, u, &u.Archived[i], synchronizer)
	}
	for i := range u.Exercised {
		f.addExercised(r, u, &u.Exercised[i], synchronizer)
	}
	for i := range u.Unassigned {
		f.addUnassigned(r, u, &u.Unassigned[i])
	}
	for i := range u.Topology {
		f.addTopology(u, &u.Topology[i], synchronizer)
	}
	for i, e := range u.Unknown {
		at := place{offset: u.Offset, nodeID: e.NodeID, ordinal: placed(i)}
		f.unknown = append(f.unknown, dbsqlc.IndexerUnknownElements{
			LedgerOffset: int64(u.Offset), Ordinal: int32(i), NodeID: e.NodeID, Kind: e.Kind, SynchronizerRef: synchronizer,
			RecordTime: timestamp(u.RecordTime), Raw: f.exact.value(at, "raw", e.Raw),
		})
	}
}

func (f *factRows) addCreated(r refs, u *ledger.Update, c *ledger.CreatedEvent, synchronizer *int32) {
	at := place{offset: u.Offset, nodeID: &c.NodeID}
	f.exact.time(at, "createdAt", c.CreatedAt)
	f.created = append(f.created, dbsqlc.IndexerCreated{
		LedgerOffset: int64(u.Offset), NodeID: c.NodeID, Origin: string(c.Origin), ContractID: c.ContractID,
		TemplateRef: r.template(c.TemplateID, c.PackageName, c.RepresentativePackageID), SynchronizerRef: synchronizer,
		RecordTime: timestamp(u.RecordTime), CreatedAt: timestamp(c.CreatedAt), ACSDelta: c.ACSDelta,
		Payload: f.exact.value(at, "payload", c.Argument), ContractKey: f.exact.value(at, "contract_key", c.ContractKey),
		ContractKeyHash: c.ContractKeyHash, SignatoriesRef: r.parties(c.Signatories), ObserversRef: r.parties(c.Observers),
		WitnessPartiesRef: r.parties(c.WitnessParties), CreatedEventBlob: c.Blob, Extra: f.exact.value(at, "extra", c.Extra),
	})
	for i := range c.InterfaceViews {
		v := &c.InterfaceViews[i]
		at := place{offset: u.Offset, nodeID: &c.NodeID, interfaceID: &v.InterfaceID, ordinal: placed(i)}
		f.interfaceViews = append(f.interfaceViews, dbsqlc.IndexerInterfaceViews{
			LedgerOffset: int64(u.Offset), NodeID: c.NodeID, Ordinal: int32(i), ContractID: c.ContractID, InterfaceID: v.InterfaceID,
			SynchronizerRef: synchronizer, RecordTime: timestamp(u.RecordTime), ViewValue: f.exact.value(at, "view_value", v.Value),
			StatusCode: v.StatusCode, StatusMessage: v.StatusMessage, StatusDetails: f.exact.value(at, "status_details", v.StatusDetails),
			ImplementationPackageID: v.ImplementationPackageID, Extra: f.exact.value(at, "extra", v.Extra),
		})
	}
}

func (f *factRows) addArchived(r refs, u *ledger.Update, a *ledger.ArchivedEvent, synchronizer *int32) {
	at := place{offset: u.Offset, nodeID: &a.NodeID}
	f.archived = append(f.archived, dbsqlc.IndexerArchived{
		LedgerOffset: int64(u.Offset), NodeID: a.NodeID, ContractID: a.ContractID, TemplateRef: r.template(a.TemplateID, a.PackageName, nil),
		SynchronizerRef: synchronizer, RecordTime: timestamp(u.RecordTime), WitnessPartiesRef: r.parties(a.WitnessParties),
		ImplementedInterfaces: a.ImplementedInterfaces, Extra: f.exact.value(at, "extra", a.Extra),
	})
}

func (f *factRows) addExercised(r refs, u *ledger.Update, e *ledger.ExercisedEvent, synchronizer *int32) {
	at := place{offset: u.Offset, nodeID: &e.NodeID}
	f.exercised = append(f.exercised, dbsqlc.IndexerExercised{
		LedgerOffset: int64(u.Offset), NodeID: e.NodeID, ContractID: e.ContractID, TemplateRef: r.template(e.TemplateID, e.PackageName, nil),
		SynchronizerRef: synchronizer, RecordTime: timestamp(u.RecordTime), InterfaceID: e.InterfaceID, Choice: e.Choice,
		ChoiceArgument: f.exact.value(at, "choice_argument", e.Argument), ExerciseResult: f.exact.value(at, "exercise_result", e.Result),
		ActingPartiesRef: r.parties(e.ActingParties), Consuming: e.Consuming, LastDescendantNodeID: e.LastDescendantNodeID,
		WitnessPartiesRef: r.parties(e.WitnessParties), ACSDelta: e.ACSDelta, ImplementedInterfaces: e.ImplementedInterfaces,
		Extra: f.exact.value(at, "extra", e.Extra),
	})
}

// addAssigned adds an assignment. The server states its witnesses once, in the creation event inside it.
func (f *factRows) addAssigned(r refs, u *ledger.Update, e *ledger.AssignedEvent, witnesses []string) {
	at := place{offset: u.Offset, nodeID: &e.NodeID}
	f.reassignments = append(f.reassignments, dbsqlc.IndexerReassignments{
		LedgerOffset: int64(u.Offset), NodeID: e.NodeID, Kind: kindAssigned, ContractID: e.ContractID,
		TemplateRef: r.template(e.TemplateID, e.PackageName, nil), SynchronizerRef: r.optionalSynchronizer(&e.Target),
		RecordTime: timestamp(u.RecordTime), ReassignmentID: e.ReassignmentID, SourceRef: r.synchronizer(e.Source),
		TargetRef: r.synchronizer(e.Target), Submitter: e.Submitter, ReassignmentCounter: e.ReassignmentCounter,
		WitnessPartiesRef: r.parties(witnesses), Extra: f.exact.value(at, "assignment_extra", e.Extra),
	})
}

func (f *factRows) addUnassigned(r refs, u *ledger.Update, e *ledger.UnassignedEvent) {
	at := place{offset: u.Offset, nodeID: &e.NodeID}
	f.exact.time(at, "assignmentExclusivity", e.AssignmentExclusivity)
	f.reassignments = append(f.reassignments, dbsqlc.IndexerReassignments{
		LedgerOffset: int64(u.Offset), NodeID: e.NodeID, Kind: kindUnassigned, ContractID: e.ContractID,
		TemplateRef: r.template(e.TemplateID, e.PackageName, nil), SynchronizerRef: r.optionalSynchronizer(&e.Source),
		RecordTime: timestamp(u.RecordTime), ReassignmentID: e.ReassignmentID, SourceRef: r.synchronizer(e.Source),
		TargetRef: r.synchronizer(e.Target), Submitter: e.Submitter, ReassignmentCounter: e.ReassignmentCounter,
		AssignmentExclusivity: timestamp(e.AssignmentExclusivity), WitnessPartiesRef: r.parties(e.WitnessParties),
		Extra: f.exact.value(at, "extra", e.Extra),
	})
}

func (f *factRows) addTopology(u *ledger.Update, e *ledger.TopologyEvent, synchronizer *int32) {
	at := place{offset: u.Offset, nodeID: &e.NodeID}
	f.topologyEvents = append(f.topologyEvents, dbsqlc.IndexerTopologyEvents{
		LedgerOffset: int64(u.Offset), NodeID: e.NodeID, Kind: string(e.Kind), SynchronizerRef: synchronizer,
		RecordTime: timestamp(u.RecordTime), PartyID: e.PartyID, ParticipantID: e.ParticipantID, Permission: e.Permission,
		Extra: f.exact.value(at, "extra", e.Extra),
	})
}

func timestamp(t ledger.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t.Time, Valid: t.Valid}
}
