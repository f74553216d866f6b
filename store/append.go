package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// batch is pages that follow one another, as they are about to be written.
type batch struct {
	from, to ledger.Offset
	pages    []ledger.Page
	updates  []*ledger.Update
	numbers  names.Numbers
	facts    rows.Facts
}

// Append writes pages that follow one another and begin at the watermark: facts, coverage, projections and the new
// watermark, in one transaction. Their offset checkpoints are kept too; a batch of nothing else is no new coverage.
//
// Errors: ErrNotLeader, ErrWatermarkMoved, ErrCovered, or the database's. After any error the outcome is unknown:
// read Watermark again.
func (l *UpdatesWriter) Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	if len(pages) == 0 {
		return nil
	}
	b, err := l.prepare(ctx, pages)
	if err != nil {
		return err
	}
	step := active.NewStep(active.EventsOf(b.updates, b.numbers))
	if err := l.ensurePartitions(ctx, &b.facts); err != nil {
		return refused(err)
	}
	if err := l.partitions.Ensure(ctx, "lifetimes", step.DeactivatedOffsets()); err != nil {
		return refused(err)
	}
	err = l.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.cover(ctx, tx, scope, b.from, b.to); err != nil {
			return err
		}
		if err := l.copyBatch(ctx, tx, b); err != nil {
			return err
		}
		if err := l.project(ctx, tx, step); err != nil {
			return err
		}
		if b.to > b.from {
			return l.advance(ctx, tx, scope, b.from, b.to)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write offsets after %d up to %d: %w", b.from, b.to, refused(err))
	}
	l.wrote(&b.facts)
	for _, update := range slices.Backward(b.updates) {
		if update.RecordTime.Valid { // an update of an unknown kind may have none
			l.store.cfg.Shown(update.RecordTime.Time)
			break
		}
	}
	return nil
}

// prepare checks the pages, gives their names numbers, and converts them into rows.
func (l *Leader) prepare(ctx context.Context, pages []ledger.Page) (*batch, error) {
	b := &batch{from: pages[0].From, to: pages[len(pages)-1].To, pages: pages, facts: rows.NewFacts()}
	wanted := names.NewWanted()
	at := b.from
	for i := range pages {
		page := &pages[i]
		if err := checkPage(page, at); err != nil {
			return nil, err
		}
		at = page.To
		for j := range page.Updates {
			update := &page.Updates[j]
			rows.UpdateNames(wanted, update)
			b.updates = append(b.updates, update)
		}
		for _, checkpoint := range page.Checkpoints {
			for _, t := range checkpoint.Times {
				wanted.Synchronizer(t.SynchronizerID)
			}
		}
	}
	var err error
	if b.numbers, err = l.resolve(ctx, wanted); err != nil {
		return nil, refused(err)
	}
	b.facts.Grow(b.updates)
	for _, update := range b.updates {
		b.facts.Add(b.numbers, update)
	}
	return b, nil
}

// copyBatch writes what is known of a batch before it is shown: facts and offset checkpoints.
func (l *Leader) copyBatch(ctx context.Context, tx pgx.Tx, b *batch) error {
	if err := l.copyFacts(ctx, tx, &b.facts); err != nil {
		return err
	}
	return l.keepCheckpoints(ctx, tx, b.numbers, b.pages)
}

// checkPage refuses a page that does not begin where the one before ended, and updates outside of its range: their
// rows would stand at offsets that are not covered.
func checkPage(page *ledger.Page, after ledger.Offset) error {
	if page.From != after || page.To < page.From {
		return fmt.Errorf("page from offset %d to %d does not follow offset %d", page.From, page.To, after)
	}
	at := page.From
	for i := range page.Updates {
		offset := page.Updates[i].Offset
		if offset <= at || offset > page.To {
			return fmt.Errorf("page from offset %d to %d has an update with offset %d after offset %d", page.From, page.To, offset, at)
		}
		at = offset
	}
	return nil
}

// cover claims the range, which may be empty. It comes before the facts, so that a writer whose twin is in doubt waits here.
func (l *Leader) cover(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to ledger.Offset) error {
	if from == to {
		return nil
	}
	err := l.store.queries.CoverageInsert(ctx, tx, dbsqlc.CoverageInsertParams{
		Stream: StreamUpdates, Scope: scope.Hash(), FromExclusive: int64(from), ToInclusive: int64(to),
	})
	if pg.HasCode(err, pg.ExclusionViolation, pg.UniqueViolation) { // unique: of a range with the same start
		return fmt.Errorf("offsets after %d up to %d: %w", from, to, ErrCovered)
	}
	if err != nil {
		return fmt.Errorf("insert coverage: %w", err)
	}
	return nil
}

// advance moves the watermark and makes one coverage row of those below it.
func (l *UpdatesWriter) advance(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to ledger.Offset) error {
	if err := l.moveWatermark(ctx, tx, from, to); err != nil {
		return err
	}
	return l.mergeCoverage(ctx, tx, scope, from, to)
}

func (l *Leader) moveWatermark(ctx context.Context, tx pgx.Tx, from, to ledger.Offset) error {
	moved, err := l.store.queries.CheckpointAdvance(ctx, tx, dbsqlc.CheckpointAdvanceParams{
		Stream: StreamUpdates, FromOffset: int64(from), ToOffset: int64(to),
	})
	if err != nil {
		return fmt.Errorf("move the watermark: %w", err)
	}
	if moved == 0 {
		return ErrWatermarkMoved
	}
	return nil
}

// mergeCoverage makes one row of what is covered in a range, and of what ends where it begins. It refuses a range that is
// not covered as a whole.
func (l *Leader) mergeCoverage(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to ledger.Offset) error {
	merged, err := l.store.queries.CoverageMerge(ctx, tx, dbsqlc.CoverageMergeParams{
		Stream: StreamUpdates, Scope: scope.Hash(), FromExclusive: int64(from), ToInclusive: int64(to),
	})
	if err != nil {
		return fmt.Errorf("merge coverage: %w", err)
	}
	if merged == 0 {
		return fmt.Errorf("offsets after %d up to %d: %w", from, to, errNotCovered)
	}
	return nil
}

func (l *Leader) copyFacts(ctx context.Context, tx pgx.Tx, f *rows.Facts) error {
	started := time.Now()
	for _, table := range f.Tables() {
		if err := copyTable(ctx, tx, table); err != nil {
			return err
		}
	}
	l.store.cfg.Observe("copy", time.Since(started))
	return nil
}

// ensurePartitions attaches what facts are about to need, before their transaction begins.
func (l *Leader) ensurePartitions(ctx context.Context, f *rows.Facts) error {
	for _, table := range f.Tables() {
		described := tables.Get(tables.Facts, table.Name)
		if !described.Partitioned {
			continue
		}
		if err := l.partitions.Ensure(ctx, table.Name, table.Numbers(described.Place)); err != nil {
			return err
		}
	}
	return nil
}

// wrote tells how many rows were written, which are not needed any more.
func (l *Leader) wrote(f *rows.Facts) {
	for _, table := range f.Tables() {
		if table.Count() > 0 {
			l.store.cfg.Wrote(table.Name, table.Count())
		}
	}
	f.Release()
}
