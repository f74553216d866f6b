package audit

import (
	"context"
	"slices"
	"strings"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// exactFields are the exact values that belong to these columns.
var exactFields = []string{"createdAt", "payload", "contract_key", "view_value", "status_details", "assignmentExclusivity"}

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

// creationPlaces are those of the creation events, once settled.
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

// only are the rows and columns that a condition holds for, as those of another table.
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
		if rows(rowPlace{offset: p.offsets[i]}) {
			q.add(p.offsets[i], p.nodeIDs[i])
		}
	}
	return q
}

// compareEvents compares the events of entries with the facts, and those from before the history floor with what is carried.
// What an entry of a later snapshot tells of a stored event are the columns that both tables have, but for extra: it has fields
// that this version does not know, and so can't know to be the same in a snapshot and in the stream.
func (c *entryComparison) compareEvents(ctx context.Context, rows *rows.Carried) error {
	creations, reassignments := creationPlaces(rows), reassignmentPlaces(rows)
	both := places{slices.Concat(creations.offsets, reassignments.offsets), slices.Concat(creations.nodeIDs, reassignments.nodeIDs)}
	rows.Exact.Rows = slices.DeleteFunc(rows.Exact.Rows, func(r dbsqlc.ExactPayloads) bool { return !slices.Contains(exactFields, r.Field) })
	for _, source := range rows.Tables() {
		carried := tables.Get(tables.Snapshot, source.Name)
		if carried.Fact == "" {
			continue
		}
		told := func(name string) bool { return name != "extra" && columnNamed(c.columns[carried.Fact], name) >= 0 }
		whole, err := record(c.tx, tables.Snapshot, source, c.columns[source.Name])
		if err != nil {
			return err
		}
		at, where := creations, amongPlaces
		switch source.Name {
		case "carried_reassignments":
			at = reassignments
		case carriedExactPayloads.Name:
			at, where = both, amongPlaces+` AND s.field = ANY ('{`+strings.Join(exactFields, ",")+`}')`
		}
		for _, side := range []struct {
			table tables.Table
			has   func(rowPlace) bool
		}{
			{tables.Get(tables.Facts, carried.Fact), func(p rowPlace) bool { return c.covered.Has(p.offset) }},
			{carried, func(p rowPlace) bool { return !c.covered.Has(p.offset) }},
		} {
			here := at.only(side.has)
			if len(here.offsets) == 0 {
				continue
			}
			comparison := newTableComparison(whole.only(side.table, told, side.has), c.dictionaries, c.found)
			// In the shape of ledger effects the stream's witnesses are all who saw the creation; a snapshot's are stakeholders.
			// And nothing says that two operations list parties in the same order.
			comparison.stakeholders = true
			if err := comparison.among(ctx, c.tx, where, here.offsets, here.nodeIDs); err != nil {
				return err
			}
		}
	}
	return nil
}
