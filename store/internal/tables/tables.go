// Package tables describes every table, once. Whoever compares, repairs, seals, partitions, resets or prunes rows, or
// limits who sees them, takes its list of tables from here. The tests of package store hold the description against the
// database's catalog and against what is written.
//
// A table that two families share is described once for each of them, with a condition that chooses the family's rows.
package tables

import (
	"slices"

	"ledgerindexer/ledger"
)

// The streams, as checkpoints, coverage, seals and rewrites name them.
const (
	StreamUpdates      = "updates"
	StreamSnapshot     = "snapshot" // of seals and rewrites: the snapshot that is carried
	StreamTransactions = "transactions"
)

// Family is what rows are; it decides what writes, compares, repairs and seals them.
type Family int

const (
	// Facts belong to an update or, up to the history floor, to an entry of the snapshot that lies there. They are
	// compared with the participant's updates or active contracts, and sealed.
	Facts Family = iota + 1
	// Resynced rows were taken in by a resync, at whose offset they begin without an event.
	Resynced
	// Records belong to a record of the transaction history. They are compared with the Scan service's, and sealed.
	Records
	// Totals follow from the records. See Table.Follows.
	Totals
	// Projections follow from the facts.
	Projections
	// Dictionaries give numbers to names.
	Dictionaries
	// State is everything else: what is held, positions, leadership, and what tasks have read.
	State
)

// Reset is what a reset to an offset does with a table's rows.
type Reset int

const (
	// Stay leaves all rows.
	Stay Reset = iota
	// Remove removes the rows whose place is after the offset.
	Remove
	// Reopen removes the lifetimes that ended after the offset, and makes their contracts active again.
	Reopen
	// Cut removes the ranges, and parts of ranges, that are after the offset.
	Cut
)

// Table describes the rows of one family in one table.
type Table struct {
	Name   string
	Family Family

	// Key identifies a row: it is the primary key, except for columns that Which holds constant. Facts and Records are
	// compared in its order.
	Key []string

	// Which chooses the family's rows of a table that families share, as a condition on a row s. Empty: all rows.
	Which string

	// Seen says which rows s a role that is limited to parties sees (see seen.go). Empty: readers have no right to the
	// table, and no relation that they read may show it. A table that families share says it once.
	Seen string

	// Content are the columns that hold what can be redacted: they become NULL, except for what a contract holds, which is
	// computed again, and for exact values, of which those of times stay.
	Content []string

	// Place is the column whose number says which offset or record a row belongs to: rows are sealed, removed by a reset
	// and put into partitions by it. Empty: rows belong to none.
	Place       string
	Partitioned bool
	Reset       Reset

	// Pruned: pruning up to an offset removes the rows whose place is up to there. Moved: those that are needed beyond it
	// move there before, which PruneMoveLookups does at the end of pruning, and it removes the others.
	Pruned, Moved bool

	// Of facts. Element: there is one row for each element of an update. Activity: the rows may activate and deactivate
	// contracts.
	Element, Activity bool

	// Of facts. Contract: each row is an event of the contract that it names (contract_id).
	Contract bool

	// Of facts. Export says how the relation that shows the rows is exported, where it has another name or order than the
	// table, shows rows of other tables too (Of), or has columns that are left out.
	Export Exported

	// Of facts that entries of a snapshot have too, which lie up to the history floor: the columns that say what only an
	// entry says, and are NULL in the rows of updates. nil: no entry has such a row.
	Snapshot []string

	// Of records. Kind is set where each record of a kind has one row. Count is the column of transfers that says how many
	// rows a transfer has.
	Kind  ledger.RecordKind
	Count string

	// Of Totals and Projections. Follows is the view or function of the rows that the table should hold, with the table's
	// columns and maybe more. Of is a condition on its rows w that chooses the table's; empty: all. Undecided is true of
	// rows s of the table that may be there although they do not follow, because there nothing is known; empty: of none.
	// Named are the columns by which a row that is wrong is known; empty: Key.
	Follows, Of, Undecided string
	Named                  []string
}

// Rows returns a condition on rows s of the table that chooses, among the family's, those of a condition.
func (t *Table) Rows(condition string) string {
	if t.Which == "" {
		return condition
	}
	return t.Which + " AND (" + condition + ")"
}

// Delete returns the statement that deletes, among the family's, the rows s of a condition.
func (t *Table) Delete(condition string) string {
	return "DELETE FROM " + t.Name + " s WHERE " + t.Rows(condition)
}

// Counting returns the query that counts, among the family's, the rows s of a condition.
func (t *Table) Counting(condition string) string {
	return "SELECT count(*) FROM " + t.Name + " s WHERE " + t.Rows(condition)
}

// OfRecords reports whether rows belong to records of the transaction history, by their seq.
func (t *Table) OfRecords() bool { return t.Place == seq }

// All returns the description of every table.
func All() []Table { return slices.Clone(all) }

// OfSnapshot returns the tables of facts that have the entries of a snapshot.
func OfSnapshot() []Table {
	return slices.DeleteFunc(In(Facts), func(t Table) bool { return t.Snapshot == nil })
}

// In returns the tables of some families, in the order in which seals digest them.
func In(families ...Family) (list []Table) {
	for _, family := range families {
		for i := range all {
			if all[i].Family == family {
				list = append(list, all[i])
			}
		}
	}
	return list
}

// Get returns a family's table by its name. It panics where the family has no such table, which a test of what is
// written finds.
func Get(family Family, name string) Table {
	for i := range all {
		if all[i].Family == family && all[i].Name == name {
			return all[i]
		}
	}
	panic("table " + name + " is not described in package tables")
}

// BySource returns the tables of a family that follow from others, those together that follow from the same.
func BySource(family Family) (groups [][]Table) {
	for _, table := range In(family) {
		if n := len(groups); n > 0 && groups[n-1][0].Follows == table.Follows {
			groups[n-1] = append(groups[n-1], table)
		} else {
			groups = append(groups, []Table{table})
		}
	}
	return groups
}

// Names returns the names of tables.
func Names(list []Table) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}
