package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

// RecordedProgress is the progress of long work, as a process that writes the database recorded it last.
type RecordedProgress struct {
	ledger.Progress
	RecordedAt time.Time     `json:"recorded_at"` // by the database's clock
	Age        time.Duration `json:"-"`           // since then, by the same clock
}

// RecordProgress records how far a stream's work has come, for `indexer status`, or, where it has ended, that nothing
// is under way. It is a transaction of its own, beside those of the batches.
func (l *Leader) RecordProgress(ctx context.Context, p ledger.Progress) (err error) {
	defer pg.Wrap(&err, "record how far stream %s has come", p.Stream)
	return l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if p.Ended {
			return queries.ProgressRemove(ctx, tx, p.Stream)
		}
		row := dbsqlc.ProgressPutParams{
			Stream: p.Stream, Unit: p.Unit, BeganAt: pgtype.Timestamptz{Time: p.BeganAt, Valid: true},
			FromExclusive: p.Start, Reached: p.Position, Done: p.UnitsDone, PerSecond: p.Rate,
			TimeLeft: pgtype.Interval{Microseconds: p.TimeLeft.Microseconds(), Valid: p.TimeLeft > 0},
		}
		if p.End > 0 {
			row.ToInclusive = &p.End
		}
		return queries.ProgressPut(ctx, tx, row)
	})
}

func (s *Store) progress(ctx context.Context, db dbsqlc.DBTX) (_ []RecordedProgress, err error) {
	defer pg.Wrap(&err, "read how far the streams have come")
	rows, err := queries.ProgressList(ctx, db)
	var list []RecordedProgress
	for _, row := range rows {
		p := RecordedProgress{RecordedAt: row.UpdatedAt.Time.UTC(), Age: durationOf(row.Age)}
		p.Progress = ledger.Progress{
			Stream: row.Stream, Unit: row.Unit, BeganAt: row.BeganAt.Time.UTC(), Start: row.FromExclusive, Position: row.Reached,
			UnitsDone: row.Done, Rate: row.PerSecond, TimeLeft: durationOf(row.TimeLeft),
		}
		if row.ToInclusive != nil {
			p.End = *row.ToInclusive
		}
		list = append(list, p)
	}
	return list, err
}

// durationOf returns an interval as a duration. It has neither months nor days unless it was made of them; NULL: 0.
func durationOf(i pgtype.Interval) time.Duration {
	return time.Duration(i.Days)*24*time.Hour + time.Duration(i.Microseconds)*time.Microsecond
}
