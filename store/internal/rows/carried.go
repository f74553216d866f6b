package rows

import (
	"fmt"
	"slices"
	"sync"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// Carried are the rows of a page of a snapshot.
type Carried struct {
	at             ledger.Offset
	unknownBefore  int32
	Created        []CarriedCreated
	interfaceViews []CarriedInterfaceView
	Active         []ActiveContract
	Reassignments  []CarriedReassignment
	unknown        []CarriedUnknownElement
	exact          Exact

	// An incomplete reassignment's creation event may be that of an active entry too: it is kept once.
	incomplete []incompleteCreation
}

// incompleteCreation is the creation event of an incomplete reassignment.
type incompleteCreation struct {
	created        CarriedCreated
	interfaceViews []CarriedInterfaceView
}

// NewCarried returns an empty set of rows, with the room of another page's, if there is any.
func NewCarried(progress ledger.SnapshotProgress) *Carried {
	// Unknown entries are numbered by their place in the snapshot, which no page shares with another.
	c := &Carried{at: progress.At, unknownBefore: int32(progress.Entries)}
	if room, ok := carriedPool.Get().(*Carried); ok {
		c.Created, c.Active = room.Created, room.Active
	}
	return c
}

// carriedPool are the lists of rows of pages that were written.
var carriedPool sync.Pool

// Grow allocates for the rows of a number of entries.
func (c *Carried) Grow(entries int) {
	c.Created, c.Active = slices.Grow(c.Created, entries), slices.Grow(c.Active, entries)
}

// Release keeps the room of the rows for another page. They must have been written: after an error a COPY may read them
// still.
func (c *Carried) Release() {
	carriedPool.Put(&Carried{Created: emptied(c.Created), Active: emptied(c.Active)})
	*c = Carried{}
}

// EntryNames collects the names that an entry's rows refer to, and refuses an entry from beyond the snapshot.
func EntryNames(n *names.Wanted, e *ledger.ContractEntry, at ledger.Offset) error {
	within := func(contractID string, offset ledger.Offset) error {
		if offset <= at {
			return nil
		}
		return &ledger.Problem{
			What: fmt.Sprintf("the snapshot at offset %d has contract %s with the later offset %d", at, contractID, offset),
			Do: "the server's answer contradicts the request: nothing of this page was stored; report it to the " +
				"participant's operator",
		}
	}
	creation := func(c *ledger.CreatedEvent) error {
		if err := within(c.ContractID, c.Offset); err != nil {
			return err
		}
		wantCreated(n, c, e.Plain)
		return nil
	}
	switch {
	case e.Active != nil:
		n.Synchronizer(e.Active.SynchronizerID)
		return creation(&e.Active.Created)
	case e.Unassigned != nil:
		unassignedNames(n, &e.Unassigned.Unassigned)
		if err := within(e.Unassigned.Unassigned.ContractID, e.Unassigned.Unassigned.Offset); err != nil ||
			e.Unassigned.Apart {
			return err
		}
		return creation(&e.Unassigned.Created)
	case e.Assigned != nil:
		a := &e.Assigned.Assigned
		n.Template(a.TemplateID, a.PackageName, nil)
		n.Synchronizer(a.Source)
		n.Synchronizer(a.Target)
		if created := &e.Assigned.Created; e.Assigned.Apart {
			n.Parties(created.WitnessParties)
			return within(created.ContractID, created.Offset)
		}
		return creation(&e.Assigned.Created)
	}
	return nil
}

// Add converts an entry into its rows.
func (c *Carried) Add(r names.Numbers, e *ledger.ContractEntry) {
	ordinal := c.unknownBefore
	c.unknownBefore++
	c.exact.plain = e.Plain
	switch {
	case e.Active != nil:
		a := e.Active
		synchronizer := r.Synchronizer(a.SynchronizerID)
		row, views := c.creation(r, e, &a.Created, synchronizer)
		c.interfaceViews = append(c.interfaceViews, views...)
		if a.Gone {
			c.Created = append(c.Created, row)
			return
		}
		row.ReassignmentCounter = &a.ReassignmentCounter
		c.Created = append(c.Created, row)
		active := ActiveContract{
			ContractID: row.ContractID, SynchronizerRef: synchronizer, TemplateRef: row.TemplateRef,
			ActivatedOffset: row.LedgerOffset, ActivatedNodeID: row.NodeID, ReassignmentCounter: a.ReassignmentCounter,
			StakeholdersRef: row.StakeholdersRef,
		}
		active.PositionID, active.Amount, active.Locked, active.LockedUntil = r.Created(&a.Created).Holding.Columns()
		c.Active = append(c.Active, active)
	case e.Unassigned != nil:
		u, created := &e.Unassigned.Unassigned, &e.Unassigned.Created
		if !e.Unassigned.Apart {
			c.addIncomplete(r, e, created, r.Synchronizer(u.Source))
		}
		extra := c.exact.Value("entry_extra", entryExtra(e))
		c.addReassignment(e, created, unassignedRow(r, u.Offset, u, &c.exact), extra)
	case e.Assigned != nil:
		a, created := &e.Assigned.Assigned, &e.Assigned.Created
		if !e.Assigned.Apart {
			c.addIncomplete(r, e, created, r.Synchronizer(a.Target))
		}
		extra := c.exact.Value("assignment_entry_extra", entryExtra(e))
		row := assignedRow(r, created.Offset, created.NodeID, a, created.WitnessParties, &c.exact)
		c.addReassignment(e, created, row, extra)
	case e.Unknown != nil:
		c.addUnknown(e, e.Unknown.Kind, e.Unknown.Raw, ordinal)
	case e.Extra != nil || e.WorkflowID != nil && *e.WorkflowID != "":
		// An empty entry is kept only where it says something after all.
		c.addUnknown(e, "JsEmpty", ledger.JSON(`{"JsEmpty": {}}`), ordinal)
	}
}

func (c *Carried) addUnknown(e *ledger.ContractEntry, kind string, raw ledger.JSON, ordinal int32) {
	c.unknown = append(c.unknown, CarriedUnknownElement{
		LedgerOffset: int64(c.at), Ordinal: ordinal, Kind: kind, Raw: c.exact.Value("raw", raw),
		WorkflowID: e.WorkflowID, EntryExtra: c.exact.Value("entry_extra", entryExtra(e)), Exact: c.exact.Column(),
	})
}

func (c *Carried) addIncomplete(r names.Numbers, e *ledger.ContractEntry, created *ledger.CreatedEvent,
	synchronizer int32) {
	var i incompleteCreation
	i.created, i.interfaceViews = c.creation(r, e, created, synchronizer)
	c.incomplete = append(c.incomplete, i)
}

// addReassignment adds the row of an incomplete reassignment, with what the entry says besides.
func (c *Carried) addReassignment(e *ledger.ContractEntry, created *ledger.CreatedEvent, row Reassignment,
	extra []byte) {
	carried := carriedReassignment(&row)
	carried.SnapshotOffset, carried.WorkflowID, carried.EntryExtra = int64(c.at), e.WorkflowID, extra
	carried.CreatedOffset, carried.CreatedNodeID = int64(created.Offset), created.NodeID
	c.Reassignments = append(c.Reassignments, carried)
}

func (c *Carried) creation(
	r names.Numbers, e *ledger.ContractEntry, created *ledger.CreatedEvent, synchronizer int32,
) (CarriedCreated, []CarriedInterfaceView) {
	extra := c.exact.Value("entry_extra", entryExtra(e))
	row := createdRow(r, created.Offset, created, &synchronizer, &c.exact)
	carried := carriedCreation(&row)
	carried.SnapshotOffset, carried.WorkflowID, carried.EntryExtra = int64(c.at), e.WorkflowID, extra
	var views []CarriedInterfaceView
	for i := range created.InterfaceViews {
		view := interfaceViewRow(r, created.Offset, created, i, &synchronizer, &c.exact)
		views = append(views, carriedInterfaceView(&view))
		views[i].SnapshotOffset = int64(c.at)
	}
	return carried, views
}

// entryExtra returns what this version does not know of an entry around its events: {"entry": …, "variant": …}.
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

// Settle decides which creation events of incomplete reassignments are rows of their own: those that no entry before
// has in this page, nor, as is asked for each, an entry of another page.
func (c *Carried) Settle(elsewhere func(offset int64, nodeID int32) (bool, error)) error {
	if len(c.incomplete) == 0 {
		return nil
	}
	known := map[EventPlace]bool{}
	for i := range c.Created {
		known[EventPlace{c.Created[i].LedgerOffset, c.Created[i].NodeID}] = true
	}
	for i := range c.incomplete {
		creation := &c.incomplete[i]
		at := EventPlace{creation.created.LedgerOffset, creation.created.NodeID}
		if known[at] {
			continue
		}
		known[at] = true
		is, err := elsewhere(at.Offset, at.NodeID)
		if err != nil {
			return fmt.Errorf("look for contract %s among the carried rows: %w", creation.created.ContractID, err)
		}
		if !is {
			c.Created = append(c.Created, creation.created)
			c.interfaceViews = append(c.interfaceViews, creation.interfaceViews...)
		}
	}
	c.incomplete = nil
	return nil
}

// LeaveOut removes the rows whose offsets are covered.
func (c *Carried) LeaveOut(covered func(offset int64) bool) {
	c.Created = slices.DeleteFunc(c.Created, func(r CarriedCreated) bool { return covered(r.LedgerOffset) })
	c.interfaceViews = slices.DeleteFunc(c.interfaceViews,
		func(r CarriedInterfaceView) bool { return covered(r.LedgerOffset) })
	c.Reassignments = slices.DeleteFunc(c.Reassignments,
		func(r CarriedReassignment) bool { return covered(r.LedgerOffset) })
	c.unknown = slices.DeleteFunc(c.unknown, func(r CarriedUnknownElement) bool { return covered(r.LedgerOffset) })
	c.incomplete = slices.DeleteFunc(c.incomplete,
		func(i incompleteCreation) bool { return covered(i.created.LedgerOffset) })
}

// EventPlace identifies an event.
type EventPlace struct {
	Offset int64
	NodeID int32
}

// Tables lists every table of carried rows, with what goes into it.
func (c *Carried) Tables() []Table {
	return []Table{
		TableOf("carried_created", c.Created),
		TableOf("carried_interface_views", c.interfaceViews),
		TableOf("carried_reassignments", c.Reassignments),
		TableOf("carried_unknown_elements", c.unknown),
	}
}
