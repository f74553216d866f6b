package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// batch is pages that follow one another, as they are about to be written.
type batch struct {
	from, to ledger.Offset
	pages    []ledger.Page
	updates  []*ledger.Update
	wanted   *names.References
	facts    rows.Facts
}

// errNotCovered is returned where the watermark was to be moved over what is not stored.
var errNotCovered = errors.New("not all of it is stored")

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
	step := active.NewStep(b.facts.Effects())
	if err := writing.EnsurePartitions(ctx, l.term.Partitions, &b.facts); err != nil {
		return session.Refused(err)
	}
	if err := l.term.Partitions.Ensure(ctx, "lifetimes", step.DeactivatedOffsets()); err != nil {
		return session.Refused(err)
	}
	err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
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
		return fmt.Errorf("write offsets after %d up to %d: %w", b.from, b.to, session.Refused(err))
	}
	l.wrote(b)
	for _, update := range slices.Backward(b.updates) {
		if update.RecordTime.Valid { // an update of an unknown kind may have none
			l.store.db.Config.Shown(update.RecordTime.Time)
			break
		}
	}
	return nil
}

// prepare checks the pages, takes out what was redacted, converts them into rows, and gives their names numbers.
func (l *Leader) prepare(ctx context.Context, pages []ledger.Page) (*batch, error) {
	pages = l.term.Redacted.Pages(pages)
	b := &batch{from: pages[0].From, to: pages[len(pages)-1].To, pages: pages, facts: rows.NewFacts(),
		wanted: names.NewReferences()}
	at := b.from
	for i := range pages {
		page := &pages[i]
		if err := writing.CheckPage(page, at); err != nil {
			return nil, err
		}
		at = page.To
		for j := range page.Updates {
			b.updates = append(b.updates, &page.Updates[j])
		}
		for _, checkpoint := range page.Checkpoints {
			for _, t := range checkpoint.Times {
				b.wanted.Synchronizer(t.SynchronizerID)
			}
		}
	}
	b.facts.Grow(b.updates)
	for _, update := range b.updates {
		b.facts.Add(b.wanted, update)
	}
	if err := l.term.Resolve(ctx, b.wanted); err != nil {
		return nil, session.Refused(err)
	}
	return b, nil
}

// copyBatch writes what is known of a batch before it is shown: facts and offset checkpoints.
func (l *Leader) copyBatch(ctx context.Context, tx pgx.Tx, b *batch) error {
	if err := writing.CopyFacts(ctx, l.store.db, tx, &b.facts); err != nil {
		return err
	}
	return l.keepCheckpoints(ctx, tx, b.wanted, b.pages)
}

// cover claims the range, which may be empty. It comes before the facts, so that a writer waits here where an earlier
// transaction that wrote the same range may still be committed.
func (l *Leader) cover(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to ledger.Offset) error {
	if from == to {
		return nil
	}
	err := queries.CoverageInsert(ctx, tx, dbsqlc.CoverageInsertParams{
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

func (l *Leader) moveWatermark(ctx context.Context, tx pgx.Tx, from, to ledger.Offset) (err error) {
	defer pg.Wrap(&err, "move the watermark")
	return swapped(queries.CheckpointAdvance(ctx, tx, dbsqlc.CheckpointAdvanceParams{
		Stream: StreamUpdates, FromOffset: int64(from), ToOffset: int64(to),
	}))
}

// swapped returns ErrWatermarkMoved where a compare-and-swap has changed no row.
func swapped(changed int64, err error) error {
	if err == nil && changed == 0 {
		return ErrWatermarkMoved
	}
	return err
}

// mergeCoverage makes one row of what is covered in a range, and of what ends where it begins. It refuses a range that
// is not covered as a whole.
func (l *Leader) mergeCoverage(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to ledger.Offset) error {
	merged, err := queries.CoverageMerge(ctx, tx, dbsqlc.CoverageMergeParams{
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

// wrote reports how many rows were written, and releases what the batch took.
func (l *Leader) wrote(b *batch) {
	for _, table := range b.facts.Tables() {
		if table.Count() > 0 {
			l.store.db.Config.Wrote(table.Name, table.Count())
		}
	}
	b.facts.Release()
	b.wanted.Release()
}
