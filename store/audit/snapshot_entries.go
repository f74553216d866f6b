package audit

import (
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/rows"
)

// entryPieces cuts entries into pieces that one statement takes.
func entryPieces(entries []ledger.ContractEntry) [][]ledger.ContractEntry {
	var pieces [][]ledger.ContractEntry
	first, bytes := 0, 0
	for i := range entries {
		if bytes > pieceBytes {
			pieces = append(pieces, entries[first:i])
			first, bytes = i, 0
		}
		bytes += entryBytes(&entries[i])
	}
	return append(pieces, entries[first:])
}

// entryBytes returns about how much an entry adds to a statement.
func entryBytes(e *ledger.ContractEntry) int {
	if e.Unknown != nil {
		return len(e.Unknown.Raw)
	}
	created := creationOf(e)
	if created == nil {
		return 0
	}
	bytes := len(created.Argument) + len(created.ContractKey) + len(created.Extra)
	for i := range created.InterfaceViews {
		bytes += len(created.InterfaceViews[i].Value) + len(created.InterfaceViews[i].StatusDetails)
	}
	return bytes
}

// creationOf returns the creation event of an entry; nil where it has none.
func creationOf(e *ledger.ContractEntry) *ledger.CreatedEvent {
	switch {
	case e.Active != nil:
		return &e.Active.Created
	case e.Unassigned != nil:
		return &e.Unassigned.Created
	case e.Assigned != nil:
		return &e.Assigned.Created
	}
	return nil
}

// places are of events; the lists are parallel.
type places struct {
	offsets []int64
	nodeIDs []int32
}

func (p *places) add(offset int64, nodeID int32) {
	p.offsets, p.nodeIDs = append(p.offsets, offset), append(p.nodeIDs, nodeID)
}

// amongPlaces selects the stored rows at places, which are the first two arguments.
const amongPlaces = `s.ledger_offset = ANY ($1::bigint[])
      AND (s.ledger_offset, s.node_id) IN (SELECT unnest($1::bigint[]), unnest($2::integer[]))`

// placesOf returns the places of the events that a table's rows are of, once settled.
func placesOf(c *rows.Carried, relation string) (p places) {
	if relation == "reassignments" {
		for i := range c.Reassignments {
			p.add(c.Reassignments[i].LedgerOffset, c.Reassignments[i].NodeID)
		}
		return p
	}
	for i := range c.Created {
		p.add(c.Created[i].LedgerOffset, c.Created[i].NodeID)
	}
	return p
}

// EntryKey identifies what is stored of an entry of a snapshot: a row of its kind by its place, or what is active by
// its contract and synchronizer.
type EntryKey struct {
	kind       string // one of the kinds below; empty: what is active
	offset     int64
	number     int32 // node id, ordinal, or number of the synchronizer
	contractID string
}

// The kinds of rows that CarriedAt reports.
const (
	carriedCreated      = "created"      // the creation event of incomplete reassignments only
	carriedActive       = "active"       // the creation event of an active entry
	carriedReassignment = "reassignment" // an incomplete reassignment
	carriedUnknown      = "unknown"      // an entry of an unknown kind
	carriedView         = "view"         // an interface view without its creation event
)

// EachStored is called for what is stored of a snapshot: with its key, and the difference to report if no entry has
// this key.
type EachStored = func(key EntryKey, extra Difference)

func activeKey(k active.Key) EntryKey {
	return EntryKey{contractID: k.ContractID, number: k.SynchronizerRef}
}
