package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// refuseReplaced refuses to compare entries of a snapshot with its stored rows, or to write these, when those of
// another snapshot, which pruning made, have taken their place.
func (s *Stored) refuseReplaced(ctx context.Context, tx pgx.Tx, at ledger.Offset) error {
	carried, err := bounds.CarriedSnapshot(ctx, tx)
	if err == nil && carried != nil && carried.At != at {
		err = fmt.Errorf("the snapshot at offset %d took its place meanwhile, because history was pruned: try again",
			carried.At)
	}
	return err
}

// CompareCarried compares the rows of entries with those that writing the entries would make, each column of each
// table; the active set it leaves alone. The entries are of the snapshot at an offset that the rows came from;
// before is how many the pages before them had: entries of unknown kinds are identified by their place.
//
// The creation event of an incomplete reassignment may be an active entry's too, and is stored once. Where it is stored
// as an active entry's, it is compared with that entry, and its key is not among the keys where there is none.
//
// The keys are those, as CarriedAt has them, of the stored events and unknown entries that the entries have; found is
// called for each difference. Memory is in proportion to the entries.
func (s *Stored) CompareCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry,
	found Found) (keys []EntryKey, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		keys, err = s.compareCarried(ctx, tx, at, before, entries, found)
		return err
	})
	return keys, err
}

func (s *Stored) compareCarried(ctx context.Context, tx pgx.Tx, at ledger.Offset, before int64,
	entries []ledger.ContractEntry, found Found) (keys []EntryKey, err error) {
	if err := s.refuseReplaced(ctx, tx, at); err != nil {
		return nil, fmt.Errorf("compare with the snapshot at offset %d: %w", at, err)
	}
	erased, err := redacted.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, piece := range entryPieces(erased.Entries(entries)) {
		page := carriedPage{progress: ledger.SnapshotProgress{At: at, Entries: before}, entries: piece}
		more, err := s.compareCarriedPage(ctx, tx, &page, found)
		if err != nil {
			return nil, fmt.Errorf("compare entries %d to %d of the snapshot at offset %d: %w", before+1, page.end(), at, err)
		}
		keys, before = append(keys, more...), page.end()
	}
	return keys, nil
}

// carriedPage is what a snapshot has after a place.
type carriedPage struct {
	progress ledger.SnapshotProgress // at its beginning
	entries  []ledger.ContractEntry
}

func (p *carriedPage) end() int64 { return p.progress.Entries + int64(len(p.entries)) }

// rows returns the rows of the entries, and the names that these refer to.
func (p *carriedPage) rows() (*rows.Carried, *names.References, error) {
	wanted, rows := names.NewReferences(), rows.NewCarried(p.progress)
	for i := range p.entries {
		if err := rows.Add(wanted, &p.entries[i]); err != nil {
			return nil, nil, err
		}
	}
	return rows, wanted, nil
}

// settle takes out of a page's rows the creation events that are stored as an active entry's of another page: they are
// that page's.
func (s *Stored) settle(ctx context.Context, tx pgx.Tx, p *carriedPage, rows *rows.Carried) error {
	return rows.Settle(func(offset int64, nodeID int32) (bool, error) {
		return queries.CarriedCreatedOfActive(ctx, tx, dbsqlc.CarriedCreatedOfActiveParams{LedgerOffset: offset,
			NodeID: nodeID})
	})
}

func (s *Stored) compareCarriedPage(
	ctx context.Context, tx pgx.Tx, page *carriedPage, found Found,
) (keys []EntryKey, err error) {
	rows, wanted, err := page.rows()
	if err != nil {
		return nil, err
	}
	c, err := s.comparing(ctx, tx, tables.In(tables.Facts), wanted, found)
	if err != nil {
		return nil, err
	}
	if err := c.names.check(ctx, tx, wanted, page.progress.At, page.progress.At, found); err != nil {
		return nil, err
	}
	if err := s.settle(ctx, tx, page, rows); err != nil {
		return nil, err
	}
	for _, source := range rows.Tables() {
		where, arguments := page.stored(rows, source.Name)
		table, err := c.table(tables.Get(tables.Facts, source.Name), source)
		if err == nil {
			err = table.among(ctx, tx, where, arguments...)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.carriedKeys(ctx, tx, page, rows)
}

// stored selects the stored rows of a table that a page's are compared with.
func (p *carriedPage) stored(rows *rows.Carried, relation string) (where string, arguments []any) {
	at, first, end := int64(p.progress.At), p.progress.Entries, p.end()
	if relation == "unknown_elements" {
		return `s.ledger_offset = $1::bigint AND s.ordinal >= $2::bigint AND s.ordinal < $3::bigint`, []any{at, first, end}
	}
	places := placesOf(rows, relation)
	return amongPlaces, []any{places.offsets, places.nodeIDs}
}

func (s *Stored) carriedKeys(ctx context.Context, tx pgx.Tx, page *carriedPage,
	rows *rows.Carried) (keys []EntryKey, err error) {
	defer pg.Wrap(&err, "read which events are stored")
	creations, reassignments := placesOf(rows, "created"), placesOf(rows, "reassignments")
	events, err := queries.CarriedEvents(ctx, tx, dbsqlc.CarriedEventsParams{
		CreatedOffsets: creations.offsets, CreatedNodeIds: creations.nodeIDs,
		ReassignedOffsets: reassignments.offsets, ReassignedNodeIds: reassignments.nodeIDs,
		At: int64(page.progress.At), FirstOrdinal: page.progress.Entries, EndOrdinal: page.end(),
	})
	for _, e := range events {
		keys = append(keys, EntryKey{kind: e.Kind, offset: e.LedgerOffset, number: e.Number})
	}
	return keys, err
}

// carriedAtSQL is not among the generated queries, which take all rows before they return.
var carriedAtSQL = `
SELECT CASE WHEN c.reassignment_counter IS NULL THEN '` + carriedCreated + `' ELSE '` + carriedActive + `' END,
    c.ledger_offset, c.node_id,
    '', CASE WHEN EXISTS (
        SELECT FROM reassignments r WHERE r.created_offset = c.ledger_offset AND r.created_node_id = c.node_id
    ) THEN c.reassignment_counter END
FROM created c WHERE c.ledger_offset <= $1 AND c.node_id < 1073741824
UNION ALL
SELECT '` + carriedReassignment + `', r.ledger_offset, r.node_id, '', NULL FROM reassignments r
WHERE r.ledger_offset <= $1
UNION ALL
SELECT '` + carriedUnknown + `', u.ledger_offset, u.ordinal, 'ordinal ' || u.ordinal, NULL
FROM unknown_elements u WHERE u.ledger_offset <= $1
UNION ALL
SELECT '` + carriedView + `', v.ledger_offset, v.node_id, ', ordinal ' || v.ordinal, NULL FROM interface_views v
WHERE v.ledger_offset <= $1
    AND NOT EXISTS (SELECT FROM created c WHERE c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id)`

// CarriedAt calls each, in no order, for every event and unknown entry that is stored of the snapshot at an offset, and
// for interface views without an event, except what a resync took in: with its key, and with the difference to report
// if no entry of the snapshot has this key. It reads one snapshot of the database row by row, whatever the size.
func (s *Stored) CarriedAt(ctx context.Context, at ledger.Offset, each EachStored) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.carriedAt(ctx, tx, at, each) })
}

func (s *Stored) carriedAt(ctx context.Context, tx pgx.Tx, at ledger.Offset, each EachStored) (err error) {
	defer pg.Wrap(&err, "read the rows of the snapshot at offset %d", at)
	if err := s.refuseReplaced(ctx, tx, at); err != nil {
		return err
	}
	var key EntryKey
	var row string
	var counter *int64
	into := []any{&key.kind, &key.offset, &key.number, &row, &counter}
	return pg.Each(ctx, tx, carriedAtSQL, []any{int64(at)}, into, func() error {
		each(key, key.extra(row, counter))
		return nil
	})
}

// extra returns the difference of rows that no entry has. counter is that of an active entry's creation
// event which an incomplete reassignment has too: it stays, as that.
func (k EntryKey) extra(row string, counter *int64) Difference {
	d := Difference{Kind: Extra, Offset: ledger.Offset(k.offset), Row: row}
	switch k.kind {
	case carriedUnknown:
		d.Relation = "unknown_elements"
		return d
	case carriedReassignment:
		d.Relation = "reassignments"
	case carriedView:
		d.Relation = "interface_views"
	default:
		d.Relation = "created"
	}
	nodeID := k.number
	d.NodeID = &nodeID
	d.Row = "node_id " + number(nodeID) + row
	if counter != nil {
		d.Kind, d.Column, d.Stored = Altered, "reassignment_counter", textOf(*counter)
	}
	return d
}

// RepairCarried makes the rows of entries those that writing the entries makes, in one transaction, and adds names that
// the dictionaries lack, as RepairUpdates does. The arguments are those of CompareCarried. The active set, and what
// else follows from the entries, stay as they are.
//
// Pages are to be repaired in their order: a creation event that is stored as an active entry's is left to that entry.
func (r *Repairer) RepairCarried(ctx context.Context, at ledger.Offset, before int64,
	entries []ledger.ContractEntry) (err error) {
	page := carriedPage{progress: ledger.SnapshotProgress{At: at, Entries: before},
		entries: r.term.Redacted.Entries(entries)}
	defer session.WrapRefused(&err, "repair entries %d to %d of the snapshot at offset %d", before+1, page.end(), at)
	carried, wanted, err := page.rows()
	if err != nil {
		return err
	}
	refuse := func(tx pgx.Tx) error { return r.stored.refuseReplaced(ctx, tx, at) }
	if err := r.stored.db.ReadOnly(ctx, refuse); err != nil {
		return err
	}
	r.term.Partitions.Forget()
	if err := writing.EnsureSnapshot(ctx, r.term.Partitions, at); err != nil {
		return err
	}
	return r.repair(ctx, leasesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		if err := refuse(tx); err != nil {
			return err
		}
		if err := r.addNames(ctx, tx, wanted); err != nil {
			return err
		}
		if _, err := r.stored.resolve(ctx, tx, wanted); err != nil {
			return err
		}
		if err := r.stored.settle(ctx, tx, &page, carried); err != nil {
			return err
		}
		if err := r.rewriteCarried(ctx, tx, &page, carried); err != nil {
			return err
		}
		return r.repaired(ctx, tx, tables.StreamSnapshot, 0, int64(at), writing.Repaired)
	})
}

// rewriteCarried writes the rows that the page should have in the place of those that are stored.
func (w *writer) rewriteCarried(ctx context.Context, tx pgx.Tx, page *carriedPage, carried *rows.Carried) error {
	for _, table := range tables.OfSnapshot() {
		where, arguments := page.stored(carried, table.Name)
		if _, err := tx.Exec(ctx, table.Delete(where), arguments...); err != nil {
			return fmt.Errorf("remove the stored rows of %s: %w", table.Name, err)
		}
	}
	return writing.CopyTables(ctx, tx, carried.Tables())
}

// DropCarried removes, in one transaction, rows of entries by keys from CarriedAt, and with them all rows that belong
// to none then. The creation event of an incomplete reassignment stays, without what it had of an active entry.
func (r *Repairer) DropCarried(ctx context.Context, at ledger.Offset, keys []EntryKey) (err error) {
	defer pg.Wrap(&err, "drop %d rows of the snapshot at offset %d", len(keys), at)
	var dropped dbsqlc.CarriedDropParams
	for _, key := range keys {
		dropped.Kinds = append(dropped.Kinds, key.kind)
		dropped.Offsets = append(dropped.Offsets, key.offset)
		dropped.Numbers = append(dropped.Numbers, key.number)
	}
	return r.repair(ctx, []session.Lease{session.LeasePruning, session.LeaseUpdates},
		func(ctx context.Context, tx pgx.Tx) error {
			if err := r.stored.refuseReplaced(ctx, tx, at); err != nil {
				return err
			}
			if err := queries.CarriedDrop(ctx, tx, dropped); err != nil {
				return fmt.Errorf("remove the rows: %w", err)
			}
			if err := queries.CarriedViewsDropOrphans(ctx, tx, int64(at)); err != nil {
				return fmt.Errorf("remove interface views of no event: %w", err)
			}
			return r.repaired(ctx, tx, tables.StreamSnapshot, 0, int64(at), writing.Repaired)
		})
}
