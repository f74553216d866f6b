package store

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// carriedRows are the rows of a page of a snapshot.
type carriedRows struct {
	at             ledger.Offset
	unknownBefore  int32
	created        []dbsqlc.IndexerCarriedCreated
	interfaceViews []dbsqlc.IndexerCarriedInterfaceViews
	active         []dbsqlc.IndexerActiveContracts
	reassignments  []dbsqlc.IndexerCarriedReassignments
	unknown        []dbsqlc.IndexerCarriedUnknownElements
	exact          exactKeeper

	// An incomplete reassignment's creation event may be that of an active entry too: it is kept once.
	incomplete []incompleteCreation
}

// incompleteCreation is the creation event of an incomplete reassignment.
type incompleteCreation struct {
	created        dbsqlc.IndexerCarriedCreated
	interfaceViews []dbsqlc.IndexerCarriedInterfaceViews
	exact          exactKeeper
}

func newCarriedRows(progress ledger.SnapshotProgress) *carriedRows {
	// Unknown entries are numbered by their place in the snapshot, which no page shares with another.
	c := &carriedRows{at: progress.At, unknownBefore: int32(progress.Entries)}
	if room, ok := carriedRooms.Get().(*carriedRows); ok {
		c.created, c.active = room.created, room.active
	}
	return c
}

// carriedRooms are the lists of rows of pages that were written.
var carriedRooms sync.Pool

// grow makes room for the rows of so many entries.
func (c *carriedRows) grow(entries int) {
	c.created, c.active = slices.Grow(c.created, entries), slices.Grow(c.active, entries)
}

// release keeps the room of the rows for another page. They must have been written: after an error a COPY may read them still.
func (c *carriedRows) release() {
	carriedRooms.Put(&carriedRows{created: emptied(c.created), active: emptied(c.active)})
	*c = carriedRows{}
}

// entryNames collects the names that an entry's rows refer to, and refuses an entry from beyond the snapshot.
func entryNames(n names, e *ledger.ContractEntry, at ledger.Offset) error {
	within := func(contractID string, offset ledger.Offset) error {
		if offset <= at {
			return nil
		}
		return &ledger.Problem{
			What: fmt.Sprintf("the snapshot at offset %d has contract %s with the later offset %d", at, contractID, offset),
			Do:   "the server's answer contradicts the request: nothing of this page was stored; report it to the participant's operator",
		}
	}
	creation := func(c *ledger.CreatedEvent) error {
		if err := within(c.ContractID, c.Offset); err != nil {
			return err
		}
		n.created(c)
		return nil
	}
	switch {
	case e.Active != nil:
		n.synchronizer(e.Active.SynchronizerID)
		return creation(&e.Active.Created)
	case e.Unassigned != nil:
		unassignedNames(n, &e.Unassigned.Unassigned)
		if err := within(e.Unassigned.Unassigned.ContractID, e.Unassigned.Unassigned.Offset); err != nil {
			return err
		}
		return creation(&e.Unassigned.Created)
	case e.Assigned != nil:
		a := &e.Assigned.Assigned
		n.template(a.TemplateID, a.PackageName, nil)
		n.synchronizer(a.Source)
		n.synchronizer(a.Target)
		return creation(&e.Assigned.Created)
	}
	return nil
}

func (c *carriedRows) add(r refs, e *ledger.ContractEntry) {
	ordinal := c.unknownBefore
	c.unknownBefore++
	c.exact.plain = e.Plain
	switch {
	case e.Active != nil:
		a := e.Active
		synchronizer := r.synchronizer(a.SynchronizerID)
		row, views := c.creation(r, e, &a.Created, synchronizer, &c.exact)
		row.ReassignmentCounter = &a.ReassignmentCounter
		c.created = append(c.created, row)
		c.interfaceViews = append(c.interfaceViews, views...)
		c.active = append(c.active, dbsqlc.IndexerActiveContracts{
			ContractID: row.ContractID, SynchronizerRef: synchronizer, TemplateRef: row.TemplateRef,
			ActivatedOffset: row.LedgerOffset, ActivatedNodeID: row.NodeID, ReassignmentCounter: a.ReassignmentCounter,
		})
	case e.Unassigned != nil:
		u := &e.Unassigned.Unassigned
		c.addIncomplete(r, e, &e.Unassigned.Created, r.synchronizer(u.Source))
		at := place{offset: u.Offset, nodeID: &u.NodeID}
		c.exact.time(at, "assignmentExclusivity", u.AssignmentExclusivity)
		c.reassignments = append(c.reassignments, dbsqlc.IndexerCarriedReassignments{
			LedgerOffset: int64(u.Offset), NodeID: u.NodeID, SnapshotOffset: int64(c.at), Kind: kindUnassigned, ContractID: u.ContractID,
			TemplateRef: r.template(u.TemplateID, u.PackageName, nil), SynchronizerRef: r.optionalSynchronizer(&u.Source),
			WorkflowID: e.WorkflowID, ReassignmentID: u.ReassignmentID, SourceRef: r.synchronizer(u.Source), TargetRef: r.synchronizer(u.Target),
			Submitter: u.Submitter, ReassignmentCounter: u.ReassignmentCounter, AssignmentExclusivity: timestamp(u.AssignmentExclusivity),
			WitnessPartiesRef: r.parties(u.WitnessParties), CreatedOffset: int64(e.Unassigned.Created.Offset), CreatedNodeID: e.Unassigned.Created.NodeID,
			Extra: c.exact.value(at, "extra", u.Extra), EntryExtra: c.exact.value(at, "entry_extra", entryExtra(e)),
		})
	case e.Assigned != nil:
		a, created := &e.Assigned.Assigned, &e.Assigned.Created
		c.addIncomplete(r, e, created, r.synchronizer(a.Target))
		at := place{offset: created.Offset, nodeID: &created.NodeID}
		c.reassignments = append(c.reassignments, dbsqlc.IndexerCarriedReassignments{
			LedgerOffset: int64(created.Offset), NodeID: created.NodeID, SnapshotOffset: int64(c.at), Kind: kindAssigned,
			ContractID: a.ContractID, TemplateRef: r.template(a.TemplateID, a.PackageName, nil), SynchronizerRef: r.optionalSynchronizer(&a.Target),
			WorkflowID: e.WorkflowID, ReassignmentID: a.ReassignmentID, SourceRef: r.synchronizer(a.Source), TargetRef: r.synchronizer(a.Target),
			Submitter: a.Submitter, ReassignmentCounter: a.ReassignmentCounter, WitnessPartiesRef: r.parties(created.WitnessParties),
			CreatedOffset: int64(created.Offset), CreatedNodeID: created.NodeID,
			Extra: c.exact.value(at, "assignment_extra", a.Extra), EntryExtra: c.exact.value(at, "assignment_entry_extra", entryExtra(e)),
		})
	case e.Unknown != nil:
		c.addUnknown(e, e.Unknown.Kind, e.Unknown.Raw, ordinal)
	case e.Extra != nil || e.WorkflowID != nil && *e.WorkflowID != "":
		// An empty entry is kept only where it says something after all.
		c.addUnknown(e, "JsEmpty", ledger.JSON(`{"JsEmpty": {}}`), ordinal)
	}
}

func (c *carriedRows) addUnknown(e *ledger.ContractEntry, kind string, raw ledger.JSON, ordinal int32) {
	at := place{offset: c.at, ordinal: placed(int(ordinal))}
	c.unknown = append(c.unknown, dbsqlc.IndexerCarriedUnknownElements{
		LedgerOffset: int64(c.at), Ordinal: ordinal, Kind: kind, Raw: c.exact.value(at, "raw", raw),
		WorkflowID: e.WorkflowID, EntryExtra: c.exact.value(at, "entry_extra", entryExtra(e)),
	})
}

func (c *carriedRows) addIncomplete(r refs, e *ledger.ContractEntry, created *ledger.CreatedEvent, synchronizer int32) {
	i := incompleteCreation{exact: exactKeeper{plain: e.Plain}}
	i.created, i.interfaceViews = c.creation(r, e, created, synchronizer, &i.exact)
	c.incomplete = append(c.incomplete, i)
}

func (c *carriedRows) creation(
	r refs, e *ledger.ContractEntry, created *ledger.CreatedEvent, synchronizer int32, exact *exactKeeper,
) (dbsqlc.IndexerCarriedCreated, []dbsqlc.IndexerCarriedInterfaceViews) {
	at := place{offset: created.Offset, nodeID: &created.NodeID}
	exact.time(at, "createdAt", created.CreatedAt)
	row := dbsqlc.IndexerCarriedCreated{
		LedgerOffset: int64(created.Offset), NodeID: created.NodeID, SnapshotOffset: int64(c.at), ContractID: created.ContractID,
		TemplateRef:     r.template(created.TemplateID, created.PackageName, created.RepresentativePackageID),
		SynchronizerRef: &synchronizer, WorkflowID: e.WorkflowID, CreatedAt: timestamp(created.CreatedAt), ACSDelta: created.ACSDelta,
		Payload: exact.value(at, "payload", created.Argument), ContractKey: exact.value(at, "contract_key", created.ContractKey),
		ContractKeyHash: created.ContractKeyHash, SignatoriesRef: r.parties(created.Signatories), ObserversRef: r.parties(created.Observers),
		WitnessPartiesRef: r.parties(created.WitnessParties), CreatedEventBlob: created.Blob, Extra: exact.value(at, "extra", created.Extra),
		EntryExtra: exact.value(at, "entry_extra", entryExtra(e)),
	}
	var views []dbsqlc.IndexerCarriedInterfaceViews
	for i := range created.InterfaceViews {
		v := &created.InterfaceViews[i]
		at := place{offset: created.Offset, nodeID: &created.NodeID, interfaceID: &v.InterfaceID, ordinal: placed(i)}
		views = append(views, dbsqlc.IndexerCarriedInterfaceViews{
			LedgerOffset: int64(created.Offset), NodeID: created.NodeID, Ordinal: int32(i), SnapshotOffset: int64(c.at),
			ContractID: created.ContractID, InterfaceID: v.InterfaceID, SynchronizerRef: &synchronizer,
			ViewValue: exact.value(at, "view_value", v.Value), StatusCode: v.StatusCode, StatusMessage: v.StatusMessage,
			StatusDetails: exact.value(at, "status_details", v.StatusDetails), ImplementationPackageID: v.ImplementationPackageID,
			Extra: exact.value(at, "extra", v.Extra),
		})
	}
	return row, views
}

// entryExtra is what this version does not know of an entry around its events: {"entry": …, "variant": …}.
func entryExtra(e *ledger.ContractEntry) ledger.JSON {
	var variant ledger.JSON
	switch {
	case e.Active != nil:
		variant = e.Active.Extra
	case e.Unassigned != nil:
		variant = e.Unassigned.Extra
	case e.Assigned != nil:
		variant = e.Assigned.Extra
	}
	switch {
	case e.Extra == nil && variant == nil:
		return nil
	case variant == nil:
		return fmt.Appendf(nil, `{"entry": %s}`, e.Extra)
	case e.Extra == nil:
		return fmt.Appendf(nil, `{"variant": %s}`, variant)
	default:
		return fmt.Appendf(nil, `{"entry": %s, "variant": %s}`, e.Extra, variant)
	}
}

// settle decides which creation events of incomplete reassignments are rows of their own: those that no entry before has
// in this page, nor, as is asked for each, an entry of another page.
func (c *carriedRows) settle(elsewhere func(offset int64, nodeID int32) (bool, error)) error {
	if len(c.incomplete) == 0 {
		return nil
	}
	known := map[eventPlace]bool{}
	for i := range c.created {
		known[eventPlace{c.created[i].LedgerOffset, c.created[i].NodeID}] = true
	}
	for i := range c.incomplete {
		creation := &c.incomplete[i]
		at := eventPlace{creation.created.LedgerOffset, creation.created.NodeID}
		if known[at] {
			continue
		}
		known[at] = true
		is, err := elsewhere(at.offset, at.nodeID)
		if err != nil {
			return fmt.Errorf("look for contract %s among the carried rows: %w", creation.created.ContractID, err)
		}
		if !is {
			c.created = append(c.created, creation.created)
			c.interfaceViews = append(c.interfaceViews, creation.interfaceViews...)
			c.exact.rows = append(c.exact.rows, creation.exact.rows...)
		}
	}
	c.incomplete = nil
	return nil
}

// leaveOut removes the rows whose offsets are covered.
func (c *carriedRows) leaveOut(covered coveredRanges) {
	c.created = slices.DeleteFunc(c.created, func(r dbsqlc.IndexerCarriedCreated) bool { return covered.has(r.LedgerOffset) })
	c.interfaceViews = slices.DeleteFunc(c.interfaceViews, func(r dbsqlc.IndexerCarriedInterfaceViews) bool { return covered.has(r.LedgerOffset) })
	c.reassignments = slices.DeleteFunc(c.reassignments, func(r dbsqlc.IndexerCarriedReassignments) bool { return covered.has(r.LedgerOffset) })
	c.unknown = slices.DeleteFunc(c.unknown, func(r dbsqlc.IndexerCarriedUnknownElements) bool { return covered.has(r.LedgerOffset) })
	c.exact.rows = slices.DeleteFunc(c.exact.rows, func(r dbsqlc.IndexerExactPayloads) bool { return covered.has(r.LedgerOffset) })
	c.incomplete = slices.DeleteFunc(c.incomplete, func(i incompleteCreation) bool { return covered.has(i.created.LedgerOffset) })
}

// eventPlace is what tells events apart.
type eventPlace struct {
	offset int64
	nodeID int32
}

// tables lists every table of carried rows, with what goes into it.
func (c *carriedRows) tables() []tableRows {
	return []tableRows{
		tableOf("carried_created", c.created),
		tableOf("carried_interface_views", c.interfaceViews),
		tableOf("carried_reassignments", c.reassignments),
		tableOf("carried_unknown_elements", c.unknown),
		tableOf("carried_exact_payloads", c.exact.rows),
	}
}

func (l *Leader) copyCarried(ctx context.Context, tx pgx.Tx, c *carriedRows) error {
	q := l.store.queries
	err := c.settle(func(offset int64, nodeID int32) (bool, error) {
		return q.CarriedCreatedExists(ctx, tx, dbsqlc.CarriedCreatedExistsParams{LedgerOffset: offset, NodeID: nodeID})
	})
	if err != nil {
		return err
	}
	for _, table := range append(c.tables(), tableOf("active_contracts", c.active)) {
		if err := table.write(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
