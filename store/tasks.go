package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
)

// Task is the state of a background task. It works now if and only if SucceededAt is after FailedAt.
type Task struct {
	Name        string
	SucceededAt time.Time // zero: it never did
	FailedAt    time.Time // zero: it never did
	Failure     string    // why it last failed, also where it has worked since; empty: it never did
}

// RecordTask records that a task worked just now, or, where failure is not empty, why it did not. A success does not
// clear the last failure.
func (l *Leader) RecordTask(ctx context.Context, task, failure string) (err error) {
	defer pg.Wrap(&err, "record how task %s fares", task)
	return l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if failure == "" {
			return queries.TaskSucceeded(ctx, tx, task)
		}
		failure := rows.StorableText(failure)
		return queries.TaskFailed(ctx, tx, dbsqlc.TaskFailedParams{Task: task, Failure: &failure})
	})
}

func (s *Store) tasks(ctx context.Context, db dbsqlc.DBTX) (_ []Task, err error) {
	defer pg.Wrap(&err, "read how the tasks fare")
	rows, err := queries.TaskList(ctx, db)
	var list []Task
	for _, row := range rows {
		list = append(list, Task{Name: row.Task, SucceededAt: row.SucceededAt.Time, FailedAt: row.FailedAt.Time,
			Failure: textOf(row.Failure)})
	}
	return list, err
}
