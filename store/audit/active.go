package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// CompareActive compares what is stored as active as of an offset, at most the watermark, with entries of the
// participant's snapshot there: where each contract is active since when, its creation event, and the interface views.
// The watermark may have moved on: what was active then is in active_contracts or in lifetimes that ended later. Of
// reassignments that were incomplete then, the reassignment and the creation event are compared.
//
// The snapshot has less than the stream of updates, and what both have can differ in form: see compareEvents and
// tableComparison.stakeholders. The rest is compared with the stream itself, by Compare.
//
// The keys are those, as ActiveAt has them, of the entries that are stored as active; found is called for each
// difference. Without a state floor it is not known what was active when indexing began, so entries from before are
// left out. Memory is in proportion to the entries.
func (s *Stored) CompareActive(ctx context.Context, at ledger.Offset, entries []ledger.ContractEntry,
	found Found) (keys []EntryKey, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		keys, err = s.compareActive(ctx, tx, at, entries, found)
		return err
	})
	return keys, err
}

func (s *Stored) compareActive(ctx context.Context, tx pgx.Tx, at ledger.Offset, entries []ledger.ContractEntry,
	found Found) (keys []EntryKey, err error) {
	extent, err := s.extentAt(ctx, tx, at)
	if err != nil {
		return nil, err
	}
	c := entryComparison{at: at, extent: extent}
	if c.elsewhere, err = queries.CoverageElsewhere(ctx, tx, int64(at)); err != nil {
		return nil, fmt.Errorf("read what is stored in another scope: %w", err)
	}
	if c.comparison, err = s.comparing(ctx, tx, tables.In(tables.Facts), names.NewReferences(), found); err != nil {
		return nil, err
	}
	erased, err := redacted.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, piece := range entryPieces(erased.Entries(entries)) {
		if piece, err = c.placed(ctx, piece); err == nil {
			err = c.compare(ctx, piece)
		}
		if err != nil {
			return nil, fmt.Errorf("compare the active contracts as of offset %d: %w", at, err)
		}
	}
	return c.keys, nil
}

func (s *Stored) extentAt(ctx context.Context, tx pgx.Tx, at ledger.Offset) (bounds.Extent, error) {
	extent, err := bounds.Read(ctx, tx)
	switch {
	case err != nil:
	case !extent.Started || at > extent.Watermark:
		err = fmt.Errorf("what is active as of offset %d can't be compared: the watermark is %d", at, extent.Watermark)
	case at < extent.HistoryFloor:
		err = fmt.Errorf("what is active as of offset %d can't be compared: it is known from offset %d on", at,
			extent.HistoryFloor)
	}
	return extent, err
}

// entryComparison compares entries of a snapshot with what is stored as of its offset.
type entryComparison struct {
	comparison
	at        ledger.Offset
	extent    bounds.Extent
	elsewhere []dbsqlc.CoverageElsewhereRow // what is stored in another scope than the entries are of
	keys      []EntryKey                    // of the entries that are stored as active
}

// placed returns the entries with the places at which resyncs took them in.
func (c *entryComparison) placed(ctx context.Context, entries []ledger.ContractEntry) ([]ledger.ContractEntry, error) {
	asked := dbsqlc.ResyncPlacesParams{At: int64(c.at)}
	for i := range entries {
		if created := creationOf(&entries[i]); created != nil {
			asked.ServedOffsets = append(asked.ServedOffsets, int64(created.Offset))
			asked.ServedNodeIds = append(asked.ServedNodeIds, created.NodeID)
		}
	}
	list, err := queries.ResyncPlaces(ctx, c.tx, asked)
	if err != nil || len(list) == 0 {
		return entries, err
	}
	places := make(map[rowPlace]dbsqlc.ResyncPlacesRow, len(list))
	for _, row := range list {
		places[rowPlace{row.ServedOffset, row.ServedNodeID}] = row
	}
	entries = slices.Clone(entries)
	for i := range entries {
		e := &entries[i]
		created := creationOf(e)
		if created == nil {
			continue
		}
		at, resynced := places[rowPlace{int64(created.Offset), created.NodeID}]
		if !resynced {
			continue
		}
		switch {
		case e.Active != nil:
			e.Active = new(*e.Active)
		case e.Unassigned != nil:
			e.Unassigned = new(*e.Unassigned)
		default:
			continue
		}
		created = creationOf(e)
		created.Offset, created.NodeID = ledger.Offset(at.LedgerOffset), at.NodeID
	}
	return entries, nil
}

func (c *entryComparison) compare(ctx context.Context, entries []ledger.ContractEntry) error {
	rows, err := c.rows(ctx, entries)
	if err != nil {
		return err
	}
	if err := c.compareActive(ctx, rows.Active); err != nil {
		return err
	}
	return c.compareEvents(ctx, rows)
}

// rows returns the rows that the entries would have if the snapshot were stored.
func (c *entryComparison) rows(ctx context.Context, entries []ledger.ContractEntry) (*rows.Carried, error) {
	wanted, rows := names.NewReferences(), rows.NewCarried(ledger.SnapshotProgress{At: c.at})
	for i := range entries {
		e := &entries[i]
		created := creationOf(e)
		if created == nil || c.extent.StateFloor == nil && created.Offset <= c.extent.HistoryFloor {
			continue
		}
		if err := rows.Add(wanted, e); err != nil {
			return nil, err
		}
	}
	if err := c.names.resolve(ctx, c.tx, wanted); err != nil {
		return nil, err
	}
	return rows, rows.Settle(func(int64, int32) (bool, error) { return false, nil })
}

// notInEntries are columns of events that an entry of a snapshot does not say, besides those that only an entry says.
// extra has fields that this version does not know, and so can't know to be the same in a snapshot and in the stream.
var notInEntries = []string{"extra", "record_time", "origin"}

// compareEvents compares the events of entries with those that are stored, by the columns that a later snapshot and the
// stream have alike. An event that is stored in another scope has other witnesses and views, and is compared only by
// its own range.
func (c *entryComparison) compareEvents(ctx context.Context, entryRows *rows.Carried) error {
	found := c.withoutViewsOfDamaged()
	for _, source := range entryRows.Tables() {
		if source.Name == "unknown_elements" {
			continue
		}
		var here places
		all := placesOf(entryRows, source.Name)
		for i := range all.offsets {
			if p := (rowPlace{all.offsets[i], all.nodeIDs[i]}); !c.isElsewhere(p) {
				here.add(p.offset, p.sub)
			}
		}
		if len(here.offsets) == 0 {
			continue
		}
		table := tables.Get(tables.Facts, source.Name)
		table.Which = "" // what resyncs took in too
		comparison, err := c.table(table, source)
		if err != nil {
			return err
		}
		comparison.table.rows = slices.DeleteFunc(comparison.table.rows,
			func(r recordedRow) bool { return c.isElsewhere(r.at) })
		comparison.found, comparison.ignored = found, slices.Concat(notInEntries, table.Snapshot)
		// In the shape of ledger effects the stream's witnesses are all who saw the creation; a snapshot's are stakeholders.
		// And nothing says that two operations list parties in the same order.
		comparison.stakeholders = true
		if err := comparison.among(ctx, c.tx, amongPlaces, here.offsets, here.nodeIDs); err != nil {
			return err
		}
	}
	return nil
}

// isElsewhere reports whether the event at a place is stored in another scope than the entries are of. What a resync
// took in is of the scope of what follows it.
func (c *entryComparison) isElsewhere(p rowPlace) bool {
	offset := p.offset
	if p.sub >= rows.FirstResyncNode {
		offset++
	}
	return slices.ContainsFunc(c.elsewhere,
		func(r dbsqlc.CoverageElsewhereRow) bool { return offset > r.FromExclusive && offset <= r.ToInclusive })
}

// withoutViewsOfDamaged returns found without what differs only because of another difference: who is recorded to see
// an interface view follows from the stakeholders of the stored creation, which are compared before.
func (c *entryComparison) withoutViewsOfDamaged() func(Difference) {
	damaged := map[rowPlace]bool{}
	return func(d Difference) {
		if d.NodeID != nil {
			at := rowPlace{int64(d.Offset), *d.NodeID}
			switch d.Relation {
			case "created":
				damaged[at] = damaged[at] || d.Kind != Altered || d.Column == "stakeholders_ref"
			case "interface_views":
				if d.Column == "seen_by_ref" && damaged[at] {
					return
				}
			}
		}
		c.found(d)
	}
}

func (c *entryComparison) compareActive(ctx context.Context, wanted []rows.ActiveContract) error {
	stored, err := writing.ActiveAsOf(ctx, c.tx, c.at, wanted)
	if err != nil {
		return err
	}
	for i := range wanted {
		w := &wanted[i]
		key := writing.KeyOf(w)
		list := stored[key]
		if len(list) == 0 {
			c.found(c.names.activeDifference(Missing, "active_contracts", key, w.ActivatedOffset))
			continue
		}
		c.keys = append(c.keys, activeKey(key))
		c.compareStored(key, w, list[0])
		for _, another := range list[1:] {
			c.found(c.names.activeDifference(Extra, relationOfActive(another.Closed), key, another.ActivatedOffset))
		}
	}
	return nil
}

func (c *entryComparison) compareStored(key active.Key, w *rows.ActiveContract, stored dbsqlc.ActiveAsOfRow) {
	d := c.names.activeDifference(Altered, relationOfActive(stored.Closed), key, stored.ActivatedOffset)
	columns := []string{"activated_offset", "activated_node_id", "template_ref", "reassignment_counter"}
	texts := func(numbers ...int64) (list []*string) {
		for _, n := range numbers {
			list = append(list, textOf(n))
		}
		return list
	}
	c.names.reportRows(d, columns,
		texts(w.ActivatedOffset, int64(w.ActivatedNodeID), int64(*w.TemplateRef), w.ReassignmentCounter),
		texts(stored.ActivatedOffset, int64(stored.ActivatedNodeID), int64(stored.TemplateRef), stored.ReassignmentCounter),
		c.found)
}

func relationOfActive(closed bool) string {
	if closed {
		return "lifetimes"
	}
	return "active_contracts"
}

// activeDifference names a row of active_contracts or lifetimes.
func (d *dictionaries) activeDifference(kind Disagreement, relation string, key active.Key,
	activated int64) Difference {
	ref := number(key.SynchronizerRef)
	return Difference{
		Kind: kind, Relation: relation, Offset: ledger.Offset(activated),
		Row: activeRow(key.ContractID, *d.name("synchronizer_ref", &ref)),
	}
}

// activeRow is the Difference.Row of a contract on a synchronizer.
func activeRow(contractID, synchronizerID string) string {
	return "contract_id " + contractID + ", synchronizer_id " + synchronizerID
}

// activeAtSQL is not among the generated queries, which take all rows before they return.
const activeAtSQL = `
SELECT a.contract_id, a.synchronizer_ref, a.activated_offset, false FROM active_contracts a
WHERE a.activated_offset <= $1
UNION ALL
SELECT l.contract_id, l.synchronizer_ref, l.activated_offset, true FROM lifetimes l
WHERE l.deactivated_offset > $1 AND l.activated_offset <= $1`

// ActiveAt calls each, in no order, for everything that is stored as active as of an offset, at most the watermark:
// with its key, and with the difference to report if no entry of the participant's snapshot has this key. It reads one
// snapshot of the database row by row, whatever the size.
func (s *Stored) ActiveAt(ctx context.Context, at ledger.Offset, each EachStored) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.activeAt(ctx, tx, at, each) })
}

func (s *Stored) activeAt(ctx context.Context, tx pgx.Tx, at ledger.Offset, each EachStored) (err error) {
	if _, err := s.extentAt(ctx, tx, at); err != nil {
		return err
	}
	names, err := s.readDictionaries(ctx, tx)
	if err != nil {
		return err
	}
	var key active.Key
	var activated int64
	var closed bool
	defer pg.Wrap(&err, "read what is active as of offset %d", at)
	into := []any{&key.ContractID, &key.SynchronizerRef, &activated, &closed}
	return pg.Each(ctx, tx, activeAtSQL, []any{int64(at)}, into, func() error {
		each(activeKey(key), names.activeDifference(Extra, relationOfActive(closed), key, activated))
		return nil
	})
}
