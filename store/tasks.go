package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
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
func (l *Leader) RecordTask(ctx context.Context, task, failure string) error {
	q := l.store.db.Queries
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if failure == "" {
			return q.TaskSucceeded(ctx, tx, task)
		}
		failure := rows.StorableText(failure)
		return q.TaskFailed(ctx, tx, dbsqlc.TaskFailedParams{Task: task, Failure: &failure})
	})
	if err != nil {
		return fmt.Errorf("record how task %s fares: %w", task, err)
	}
	return nil
}

func (s *Store) tasks(ctx context.Context, db dbsqlc.DBTX) ([]Task, error) {
	rows, err := s.db.Queries.TaskList(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read how the tasks fare: %w", err)
	}
	var list []Task
	for _, row := range rows {
		list = append(list, Task{Name: row.Task, SucceededAt: row.SucceededAt.Time, FailedAt: row.FailedAt.Time,
			Failure: textOf(row.Failure)})
	}
	return list, nil
}
