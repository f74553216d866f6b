package audit

import (
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
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

// creationPlaces returns the places of the creation events, once settled.
func creationPlaces(c *rows.Carried) (p places) {
	for i := range c.Created {
		p.add(c.Created[i].LedgerOffset, c.Created[i].NodeID)
	}
	return p
}

func reassignmentPlaces(c *rows.Carried) (p places) {
	for i := range c.Reassignments {
		p.add(c.Reassignments[i].LedgerOffset, c.Reassignments[i].NodeID)
	}
	return p
}

// only returns the rows and columns that a condition holds for, as those of another table.
func (t recordedTable) only(table tables.Table, columns func(string) bool, rows func(rowPlace) bool) recordedTable {
	u := recordedTable{Table: table}
	var kept []int
	for i, c := range t.columns {
		if columns(c.name) {
			kept = append(kept, i)
			u.columns = append(u.columns, c)
		}
	}
	for _, row := range t.rows {
		if !rows(row.at) {
			continue
		}
		v := recordedRow{at: row.at, bytes: row.bytes}
		for _, i := range kept {
			v.values = append(v.values, row.values[i])
		}
		u.rows = append(u.rows, v)
	}
	return u
}

func (p places) only(rows func(rowPlace) bool) (q places) {
	for i := range p.offsets {
		if rows(rowPlace{p.offsets[i], p.nodeIDs[i]}) {
			q.add(p.offsets[i], p.nodeIDs[i])
		}
	}
	return q
}
