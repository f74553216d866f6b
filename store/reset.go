package store

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// ResetReport is what a reset removes. Its JSON form is for scripts.
type ResetReport struct {
	From    ledger.Offset `json:"from"`    // the watermark before
	To      ledger.Offset `json:"to"`      // the watermark after
	Removed []RemovedRows `json:"removed"` // relation by relation, those without any left out
}

// RemovedRows is how many rows of a table are removed. A contract that is active again is removed
// from lifetimes.
type RemovedRows struct {
	Relation string `json:"relation"`
	Rows     int64  `json:"rows"`
}

func (r *ResetReport) count(relation string, rows int64) {
	if rows == 0 {
		return
	}
	i := slices.IndexFunc(r.Removed, func(r RemovedRows) bool { return r.Relation == relation })
	if i < 0 {
		i = len(r.Removed)
		r.Removed = append(r.Removed, RemovedRows{Relation: relation})
	}
	r.Removed[i].Rows += rows
}

// Reset removes everything of the updates after an offset, and makes the offset the watermark: the database is as if
// indexing had got no further, and the scope is the one that was in force there. All of it is one transaction, which
// may take long. Dictionaries, packages, the transaction history of a service, and the answers to look-ups that earlier
// events wanted stay.
//
// Where nothing was indexed, and where the offset is below the history floor or beyond the watermark, the error is a
// *ledger.Problem. Other errors: ErrNotLeader, or the database's; after any error the outcome is unknown.
func (l *UpdatesWriter) Reset(ctx context.Context, to ledger.Offset) (_ ResetReport, err error) {
	defer pg.Wrap(&err, "reset to offset %d", to)
	report := ResetReport{To: to, Removed: []RemovedRows{}}
	err = l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		extent, err := l.store.resettable(ctx, tx, to)
		if err != nil {
			return err
		}
		report.From = extent.Watermark
		end, err := l.store.storedTo(ctx, tx, extent.Watermark)
		if err != nil {
			return err
		}
		scope, err := queries.ResyncScope(ctx, tx, int64(to))
		if err != nil {
			return fmt.Errorf("read which scope was in force at offset %d: %w", to, err)
		}
		if err = l.removeAfter(ctx, tx, to, &report); err != nil {
			return err
		}
		if err := l.wantLookups(ctx, tx, int64(extent.HistoryFloor), int64(to)); err != nil {
			return err
		}
		err = queries.CheckpointSet(ctx, tx, dbsqlc.CheckpointSetParams{Stream: StreamUpdates, LedgerOffset: int64(to)})
		if err != nil {
			return fmt.Errorf("set the watermark: %w", err)
		}
		if err := writing.DropResync(ctx, tx); err != nil {
			return err
		}
		if scope != "" {
			if err := writing.PutInForce(ctx, tx, scope); err != nil {
				return err
			}
		}
		return writing.NoteRewrite(ctx, tx, tables.StreamUpdates, int64(to), int64(end), writing.Reset)
	})
	return report, err
}

// CheckReset refuses what Reset refuses.
func (s *Store) CheckReset(ctx context.Context, to ledger.Offset) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		_, err := s.resettable(ctx, tx, to)
		return err
	})
}

// PlanReset returns what Reset would remove, and refuses what Reset refuses. It counts the rows, which takes a fraction
// of the time of removing them, and changes nothing.
func (s *Store) PlanReset(ctx context.Context, to ledger.Offset) (ResetReport, error) {
	plan := ResetReport{To: to, Removed: []RemovedRows{}}
	err := s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := s.resettable(ctx, tx, to)
		if err != nil {
			return err
		}
		plan.From = extent.Watermark
		records, err := s.derivedBeyond(ctx, tx, extent, to)
		if err != nil {
			return err
		}
		for _, table := range tables.All() {
			condition := "s." + table.Place + " > $1"
			switch table.Reset {
			case tables.Remove, tables.Reopen:
			case tables.Cut: // a range that contains the offset stays, and is shortened
				condition = "s.from_exclusive >= $1"
			default:
				continue
			}
			after := int64(to)
			if table.OfRecords() {
				after = records.left
			}
			var rows int64
			if err := tx.QueryRow(ctx, table.Counting(condition), after).Scan(&rows); err != nil {
				return fmt.Errorf("count what is after offset %d in %s: %w", to, table.Name, err)
			}
			plan.count(table.Name, rows)
		}
		return nil
	})
	return plan, err
}

// resettable refuses what Reset refuses.
func (s *Store) resettable(ctx context.Context, tx pgx.Tx, to ledger.Offset) (*Extent, error) {
	extent, err := bounds.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	return &extent, s.refuseReset(ctx, &extent, to)
}

func (s *Store) refuseReset(ctx context.Context, extent *Extent, to ledger.Offset) error {
	address := s.Address()
	switch {
	case !extent.Started:
		return s.NothingIndexed(ctx, "reset")
	case to < extent.HistoryFloor:
		return &ledger.Problem{
			What: fmt.Sprintf("database %s holds nothing to go back to at offset %d: its events begin after offset %d", address,
				to, extent.HistoryFloor),
			Do: fmt.Sprintf("choose an offset of at least %d, or begin again: with an empty database, "+
				"run `%s --at-offset %d` to seed it from a snapshot there, or `indexer run` to read it from its beginning",
				extent.HistoryFloor, s.Backfill(), to),
		}
	case to > extent.Watermark:
		return &ledger.Problem{
			What: fmt.Sprintf("database %s holds nothing after offset %d, and so nothing to remove after offset %d", address,
				extent.Watermark, to),
			Do: fmt.Sprintf("choose an offset from %d up to %d", extent.HistoryFloor, extent.Watermark),
		}
	}
	return nil
}

// removeAfter removes the updates' rows after an offset, with what follows from them, and their coverage. Contracts
// whose lifetime began by then are active again. It adds no look-ups for the events up to the offset, and counts in the
// report.
func (l *UpdatesWriter) removeAfter(ctx context.Context, tx pgx.Tx, to ledger.Offset, report *ResetReport) error {
	extent, err := bounds.Read(ctx, tx)
	if err != nil {
		return err
	}
	records, err := l.store.derivedBeyond(ctx, tx, &extent, to)
	if err != nil {
		return err
	}
	for _, table := range tables.All() {
		after := int64(to)
		if table.OfRecords() {
			after = records.left
		}
		rows, err := l.removeRows(ctx, tx, &table, after)
		if err != nil {
			return fmt.Errorf("remove what is after offset %d from %s: %w", to, table.Name, err)
		}
		report.count(table.Name, rows)
	}
	if records.left == math.MaxInt64 {
		return nil
	}
	if err := holdPosition(ctx, tx, records.At); err != nil {
		return err
	}
	return writing.RecordsRemoved(ctx, tx, records.At, writing.BackTo(records.At, records.left), &to, writing.Reset)
}

// removedRecords are the derived records that a reset removes: those after the seq left.
type removedRecords struct {
	bounds.Derived
	left int64
}

// derivedBeyond returns which records follow from updates after an offset: none (left is the greatest number) where a
// service sent them.
func (s *Store) derivedBeyond(ctx context.Context, tx pgx.Tx, extent *Extent,
	to ledger.Offset) (b removedRecords, err error) {
	b.left = math.MaxInt64
	if b.Derived, err = bounds.ReadDerived(ctx, tx, extent); err != nil || b.To <= to {
		return b, err
	}
	b.left, err = bounds.RecordsUpTo(ctx, tx, b.At, to)
	return b, err
}

// removeRows removes a table's rows after an offset, and returns how many they were.
func (l *UpdatesWriter) removeRows(ctx context.Context, tx pgx.Tx, table *tables.Table, after int64) (int64, error) {
	switch table.Reset {
	case tables.Remove:
		removed, err := tx.Exec(ctx, table.Delete("s."+table.Place+" > $1"), after)
		return removed.RowsAffected(), err
	case tables.Reopen:
		return queries.ResetLifetimes(ctx, tx, after)
	case tables.Cut:
		removed, err := queries.ResetCoverage(ctx, tx, after)
		if err != nil {
			return 0, err
		}
		return removed, queries.ResetCoverageCut(ctx, tx, after)
	}
	return 0, nil
}

// wantLookups asks for the contracts whose creation is nowhere and that nobody asked for, of events after the base.
func (l *UpdatesWriter) wantLookups(ctx context.Context, tx pgx.Tx, base, watermark int64) (err error) {
	defer pg.Wrap(&err, "ask for contracts whose creation is nowhere")
	return queries.LookupsWant(ctx, tx, dbsqlc.LookupsWantParams{FromExclusive: base, ToInclusive: watermark})
}
