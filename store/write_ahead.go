package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// WriteAhead stores pages that follow one another, anywhere above the watermark: facts and coverage, in one
// transaction. They are shown by MoveWatermark. Their offset checkpoints are kept too; a batch of nothing else is no
// new coverage. It is safe for concurrent use: ranges may be written in any order and at the same time.
//
// Errors: ErrNotLeader, ErrCovered, ErrWatermarkMoved where the pages begin below the watermark or nothing was started,
// or the database's. After any error the outcome is unknown: read Watermark and StoredAhead again.
func (l *UpdatesWriter) WriteAhead(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	if len(pages) == 0 {
		return nil
	}
	b, err := l.prepare(ctx, pages)
	if err != nil {
		return err
	}
	if err := writing.EnsurePartitions(ctx, l.term.Partitions, &b.facts); err != nil {
		return session.Refused(err)
	}
	err = l.term.WriteAhead(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.cover(ctx, tx, scope, b.from, b.to); err != nil {
			return err
		}
		// It may move on meanwhile, but not over what this transaction covers.
		at, started, err := bounds.Watermark(ctx, tx)
		if err != nil {
			return err
		}
		if !started || b.from < at {
			return ErrWatermarkMoved
		}
		return l.copyBatch(ctx, tx, b)
	})
	if err != nil {
		return fmt.Errorf("write offsets after %d up to %d ahead: %w", b.from, b.to, session.Refused(err))
	}
	l.pending.Add(int64(b.from), int64(b.to), b.facts.Effects())
	l.wrote(b)
	return nil
}

// StoredAhead returns the ranges above the watermark that are stored and not shown yet, in order, those that touch
// merged into one. There is none where nothing was started.
func (l *UpdatesWriter) StoredAhead(ctx context.Context) ([]ledger.Range, error) {
	return l.store.ahead(ctx, l.term.Pool)
}

// StoredAhead is UpdatesWriter.StoredAhead.
func (s *Store) StoredAhead(ctx context.Context) ([]ledger.Range, error) {
	return s.ahead(ctx, s.db.Pool)
}

func (s *Store) ahead(ctx context.Context, db dbsqlc.DBTX) (_ []ledger.Range, err error) {
	defer s.db.Wrap(&err, "read what is covered above the watermark")
	rows, err := queries.CoverageAhead(ctx, db, StreamUpdates)
	var ranges []ledger.Range
	for _, row := range rows {
		from, to := ledger.Offset(row.FromExclusive), ledger.Offset(row.ToInclusive)
		if last := len(ranges) - 1; last >= 0 && ranges[last].To == from {
			ranges[last].To = to
		} else {
			ranges = append(ranges, ledger.Range{From: from, To: to})
		}
	}
	return ranges, err
}

// storedTo returns the end of the last stored range: the watermark, or the end of what is stored ahead.
func (s *Store) storedTo(ctx context.Context, db dbsqlc.DBTX, watermark ledger.Offset) (ledger.Offset, error) {
	ahead, err := s.ahead(ctx, db)
	if err != nil || len(ahead) == 0 {
		return watermark, err
	}
	return ahead[len(ahead)-1].To, nil
}
