package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// Append writes pages that follow one another and begin at the watermark: facts, coverage, projections and the new
// watermark, in one transaction. Their offset checkpoints are kept too; a batch of nothing else is no new coverage.
//
// Errors: ErrNotLeader, ErrWatermarkMoved, ErrCovered, or the database's. After any error the outcome is unknown:
// read Watermark again.
func (l *Leader) Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	if len(pages) == 0 {
		return nil
	}
	from, to := pages[0].From, pages[len(pages)-1].To
	wanted := newNames()
	var updates []*ledger.Update
	at := from
	for i := range pages {
		page := &pages[i]
		if err := checkPage(page, at); err != nil {
			return err
		}
		at = page.To
		for j := range page.Updates {
			update := &page.Updates[j]
			updateNames(wanted, update)
			updates = append(updates, update)
		}
		for _, checkpoint := range page.Checkpoints {
			for _, t := range checkpoint.Times {
				wanted.synchronizer(t.SynchronizerID)
			}
		}
	}
	numbers, err := l.dictionary.resolve(ctx, wanted)
	if err != nil {
		return err
	}
	var facts factRows
	for _, update := range updates {
		facts.add(numbers, update)
	}
	step := projectionStep(numbers, updates)
	if err := l.ensurePartitions(ctx, &facts, step); err != nil {
		return refused(err)
	}
	err = l.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if to > from {
			if err := l.cover(ctx, tx, scope, from, to); err != nil {
				return err
			}
		}
		if err := l.copyFacts(ctx, tx, &facts); err != nil {
			return err
		}
		if err := l.project(ctx, tx, step); err != nil {
			return err
		}
		if err := l.keepCheckpoints(ctx, tx, numbers, pages); err != nil {
			return err
		}
		if to > from {
			return l.advance(ctx, tx, scope, from, to)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write offsets after %d up to %d: %w", from, to, refused(err))
	}
	l.wrote(&facts)
	return nil
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

// cover claims the range. It comes before the facts, so that a writer whose twin is in doubt waits here.
func (l *Leader) cover(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to ledger.Offset) error {
	err := l.store.queries.CoverageInsert(ctx, tx, dbsqlc.CoverageInsertParams{
		Stream: StreamUpdates, Scope: scope.Hash(), FromExclusive: int64(from), ToInclusive: int64(to),
	})
	if hasCode(err, codeExclusionViolation, codeUniqueViolation) { // unique: of a range with the same start
		return fmt.Errorf("offsets after %d up to %d: %w", from, to, ErrCovered)
	}
	if err != nil {
		return fmt.Errorf("insert coverage: %w", err)
	}
	return nil
}

// advance moves the watermark and makes one coverage row of those below it.
func (l *Leader) advance(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to ledger.Offset) error {
	moved, err := l.store.queries.CheckpointAdvance(ctx, tx, dbsqlc.CheckpointAdvanceParams{
		Stream: StreamUpdates, FromOffset: int64(from), ToOffset: int64(to),
	})
	if err != nil {
		return fmt.Errorf("move the watermark: %w", err)
	}
	if moved == 0 {
		return ErrWatermarkMoved
	}
	err = l.store.queries.CoverageMerge(ctx, tx, dbsqlc.CoverageMergeParams{Stream: StreamUpdates, Scope: scope.Hash(), At: int64(from)})
	if err != nil {
		return fmt.Errorf("merge coverage: %w", err)
	}
	return nil
}

func (l *Leader) copyFacts(ctx context.Context, tx pgx.Tx, f *factRows) error {
	started := time.Now()
	for _, table := range f.tables(l.store.queries) {
		if err := table.write(ctx, tx); err != nil {
			return err
		}
	}
	l.store.cfg.Observe("copy", time.Since(started))
	return nil
}

// copyRows COPYs rows and checks that the server counted as many.
func copyRows[T any](ctx context.Context, tx pgx.Tx, relation string, rows []T, copyFrom func(context.Context, dbsqlc.DBTX, []T) (int64, error)) error {
	return tableOf(relation, rows, copyFrom).write(ctx, tx)
}

// ensurePartitions attaches what the batch is about to need, before its transaction begins.
func (l *Leader) ensurePartitions(ctx context.Context, f *factRows, step *step) error {
	need := map[string][]int64{
		"updates":         offsetsOf(f.updates, func(r *dbsqlc.UpdatesCopyParams) int64 { return r.LedgerOffset }),
		"created":         offsetsOf(f.created, func(r *dbsqlc.CreatedCopyParams) int64 { return r.LedgerOffset }),
		"archived":        offsetsOf(f.archived, func(r *dbsqlc.ArchivedCopyParams) int64 { return r.LedgerOffset }),
		"exercised":       offsetsOf(f.exercised, func(r *dbsqlc.ExercisedCopyParams) int64 { return r.LedgerOffset }),
		"interface_views": offsetsOf(f.interfaceViews, func(r *dbsqlc.InterfaceViewsCopyParams) int64 { return r.LedgerOffset }),
		"reassignments":   offsetsOf(f.reassignments, func(r *dbsqlc.ReassignmentsCopyParams) int64 { return r.LedgerOffset }),
		"topology_events": offsetsOf(f.topologyEvents, func(r *dbsqlc.TopologyEventsCopyParams) int64 { return r.LedgerOffset }),
		"lifetimes":       step.deactivations(),
	}
	for relation, offsets := range need {
		if err := l.partitions.ensure(ctx, relation, offsets); err != nil {
			return err
		}
	}
	return nil
}

func offsetsOf[T any](rows []T, offset func(*T) int64) []int64 {
	offsets := make([]int64, len(rows))
	for i := range rows {
		offsets[i] = offset(&rows[i])
	}
	return offsets
}

func (l *Leader) wrote(f *factRows) {
	for _, table := range f.tables(l.store.queries) {
		if table.rows > 0 {
			l.store.cfg.Wrote(table.relation, table.rows)
		}
	}
}
