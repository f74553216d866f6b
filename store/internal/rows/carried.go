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
	Created        []SnapshotCreated
	interfaceViews []InterfaceView
	Active         []ActiveContract
	Reassignments  []SnapshotReassignment
	unknown        []SnapshotUnknownElement
	exact          Exact

	// An incomplete reassignment's creation event may be that of an active entry too: it is kept once.
	incomplete []incompleteCreation
}

// incompleteCreation is the creation event of an incomplete reassignment.
type incompleteCreation struct {
	created        SnapshotCreated
	interfaceViews []InterfaceView
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

// within refuses what is from beyond the snapshot.
func (c *Carried) within(contractID string, offset ledger.Offset) error {
	if offset <= c.at {
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the snapshot at offset %d has contract %s with the later offset %d", c.at, contractID, offset),
		Do: "the server's answer contradicts the request: nothing of this page was stored; report it to the " +
			"participant's operator",
	}
}

// Add converts an entry into its rows, and collects the names that these refer to: their numbers are known when wanted
// is resolved. It refuses an entry from beyond the snapshot.
func (c *Carried) Add(wanted *names.References, e *ledger.ContractEntry) error {
	ordinal := c.unknownBefore
	c.unknownBefore++
	c.exact.plain = e.Plain
	switch {
	case e.Active != nil:
		a := e.Active
		synchronizer := wanted.Synchronizer(a.SynchronizerID)
		refs := creationOf(wanted, &a.Created, e.Plain)
		row, views := c.creation(refs, e, &a.Created, synchronizer)
		c.interfaceViews = append(c.interfaceViews, views...)
		row.ReassignmentCounter = &a.ReassignmentCounter
		active := ActiveContract{
			ContractID: row.ContractID, SynchronizerRef: synchronizer, TemplateRef: row.TemplateRef,
			ActivatedOffset: row.LedgerOffset, ActivatedNodeID: row.NodeID, ReassignmentCounter: a.ReassignmentCounter,
			StakeholdersRef: row.StakeholdersRef,
		}
		active.PositionID, active.Amount, active.Locked, active.LockedUntil = refs.Holding.Columns()
		c.Active = append(c.Active, active)
		c.Created = append(c.Created, row)
		return c.within(row.ContractID, a.Created.Offset)
	case e.Unassigned != nil:
		u, created := &e.Unassigned.Unassigned, &e.Unassigned.Created
		c.addIncomplete(wanted, e, created, wanted.Synchronizer(u.Source))
		extra := c.exact.Value("entry_extra", entryExtra(e))
		row, _ := unassignedRow(wanted, u.Offset, u, &c.exact)
		c.addReassignment(e, created, row, extra)
		if err := c.within(u.ContractID, u.Offset); err != nil {
			return err
		}
		return c.within(created.ContractID, created.Offset)
	case e.Assigned != nil:
		a, created := &e.Assigned.Assigned, &e.Assigned.Created
		c.addIncomplete(wanted, e, created, wanted.Synchronizer(a.Target))
		extra := c.exact.Value("assignment_entry_extra", entryExtra(e))
		row := assignedRow(wanted, created.Offset, created.NodeID, a, created.WitnessParties, &c.exact)
		c.addReassignment(e, created, row, extra)
		return c.within(created.ContractID, created.Offset)
	case e.Unknown != nil:
		c.addUnknown(e, e.Unknown.Kind, e.Unknown.Raw, ordinal)
	case e.Extra != nil || e.WorkflowID != nil && *e.WorkflowID != "":
		// An empty entry is kept only where it says something after all.
		c.addUnknown(e, "JsEmpty", ledger.JSON(`{"JsEmpty": {}}`), ordinal)
	}
	return nil
}

// OriginSnapshot is the origin of creation events that no update brought.
const OriginSnapshot = "snapshot"

// FirstResyncNode is where the node ids of rows of resyncs begin.
const FirstResyncNode = ledger.NodeIDLimit

// Take is Add for the entry of an active contract that a resync takes in: it begins at the snapshot's offset and a node
// of that offset.
func (c *Carried) Take(wanted *names.References, e *ledger.ContractEntry, nodeID int32) error {
	created, views := len(c.Created), len(c.interfaceViews)
	if err := c.Add(wanted, e); err != nil {
		return err
	}
	for i := range c.Created[created:] {
		row := &c.Created[created+i]
		row.ServedOffset, row.ServedNodeID = new(row.LedgerOffset), new(row.NodeID)
		row.LedgerOffset, row.NodeID = int64(c.at), nodeID
		c.Active[created+i].ActivatedOffset, c.Active[created+i].ActivatedNodeID = row.LedgerOffset, row.NodeID
	}
	for i := range c.interfaceViews[views:] {
		c.interfaceViews[views+i].LedgerOffset, c.interfaceViews[views+i].NodeID = int64(c.at), nodeID
	}
	return nil
}

// Leave removes the taken contracts of which known is true.
func (c *Carried) Leave(known func(*ActiveContract) bool) {
	gone := map[int32]bool{}
	for i := range c.Active {
		if a := &c.Active[i]; known(a) {
			gone[a.ActivatedNodeID] = true
		}
	}
	c.Active = slices.DeleteFunc(c.Active, func(a ActiveContract) bool { return gone[a.ActivatedNodeID] })
	c.Created = slices.DeleteFunc(c.Created, func(r SnapshotCreated) bool { return gone[r.NodeID] })
	c.interfaceViews = slices.DeleteFunc(c.interfaceViews, func(v InterfaceView) bool { return gone[v.NodeID] })
}

// Interfaces returns the interfaces of which the taken contracts have views, sorted, by the nodes at which they begin.
func (c *Carried) Interfaces() map[int32][]string {
	of := map[int32][]string{}
	for i := range c.interfaceViews {
		v := &c.interfaceViews[i]
		of[v.NodeID] = append(of[v.NodeID], v.InterfaceID)
	}
	for _, ids := range of {
		slices.Sort(ids)
	}
	return of
}

// Resynced returns the rows of what was taken, as they wait until the resync is whole.
func (c *Carried) Resynced() []Table {
	return []Table{TableOf("resync_created", c.Created), TableOf("resync_interface_views", c.interfaceViews)}
}

func (c *Carried) addUnknown(e *ledger.ContractEntry, kind string, raw ledger.JSON, ordinal int32) {
	row := SnapshotUnknownElement{WorkflowID: e.WorkflowID}
	row.LedgerOffset, row.Ordinal, row.Kind, row.Raw = int64(c.at), ordinal, kind, c.exact.Value("raw", raw)
	row.EntryExtra, row.Exact = c.exact.Value("entry_extra", entryExtra(e)), c.exact.Column()
	c.unknown = append(c.unknown, row)
}

func (c *Carried) addIncomplete(wanted *names.References, e *ledger.ContractEntry, created *ledger.CreatedEvent,
	synchronizer *int32) {
	var i incompleteCreation
	i.created, i.interfaceViews = c.creation(creationOf(wanted, created, e.Plain), e, created, synchronizer)
	c.incomplete = append(c.incomplete, i)
}

// addReassignment adds the row of an incomplete reassignment, with what the entry says besides.
func (c *Carried) addReassignment(e *ledger.ContractEntry, created *ledger.CreatedEvent, row Reassignment,
	extra []byte) {
	c.Reassignments = append(c.Reassignments, SnapshotReassignment{
		Reassignment: row, CreatedOffset: new(int64(created.Offset)), CreatedNodeID: &created.NodeID,
		WorkflowID: e.WorkflowID, EntryExtra: extra,
	})
}

func (c *Carried) creation(
	refs names.Creation, e *ledger.ContractEntry, created *ledger.CreatedEvent, synchronizer *int32,
) (SnapshotCreated, []InterfaceView) {
	extra := c.exact.Value("entry_extra", entryExtra(e))
	row := SnapshotCreated{
		Created:    createdRow(refs, created.Offset, created, synchronizer, &c.exact),
		WorkflowID: e.WorkflowID, EntryExtra: extra,
	}
	row.Origin = OriginSnapshot
	var views []InterfaceView
	for i := range created.InterfaceViews {
		views = append(views, interfaceViewRow(refs, created.Offset, created, i, synchronizer, &c.exact))
	}
	return row, views
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
			return fmt.Errorf("look for contract %s in the snapshot: %w", creation.created.ContractID, err)
		}
		if !is {
			c.Created = append(c.Created, creation.created)
			c.interfaceViews = append(c.interfaceViews, creation.interfaceViews...)
		}
	}
	c.incomplete = nil
	return nil
}

// EventPlace identifies an event.
type EventPlace struct {
	Offset int64
	NodeID int32
}

// Tables lists every table of entries, with what goes into it.
func (c *Carried) Tables() []Table {
	return []Table{
		TableOf("created", c.Created),
		TableOf("interface_views", c.interfaceViews),
		TableOf("reassignments", c.Reassignments),
		TableOf("unknown_elements", c.unknown),
	}
}

// Shown is a row of resync_shown.
type Shown struct {
	NodeID          int32  `db:"node_id"`
	SynchronizerRef *int32 `db:"synchronizer_ref"`
	ContractID      string `db:"contract_id"`
}
