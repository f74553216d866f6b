package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// BeginSnapshot begins a snapshot at an offset, or returns how far the one that was begun there has come, or that it is
// finished. A database that holds other data, and an unfinished snapshot of another offset or scope, are
// *ledger.Problem.
func (l *UpdatesWriter) BeginSnapshot(ctx context.Context, participantID string, scope ledger.Scope,
	at ledger.Offset) (_ ledger.SnapshotProgress, err error) {
	defer pg.Wrap(&err, "begin snapshot at offset %d", at)
	progress := ledger.SnapshotProgress{At: at}
	err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		finished, err := l.finishedSnapshot(ctx, tx)
		if err != nil {
			return err
		}
		if finished != nil && finished.SnapshotOffset == int64(at) && finished.Scope == scope.Hash() {
			progress = bounds.SnapshotProgress(*finished)
			return nil
		}
		if err := l.refuseStarted(ctx, tx); err != nil {
			return err
		}
		row, err := queries.SnapshotUnfinished(ctx, tx)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read the unfinished snapshot: %w", err)
		}
		if err != nil || row.Entries == 0 { // a snapshot without entries may be replaced
			return l.startSnapshot(ctx, tx, participantID, scope, at)
		}
		if row.SnapshotOffset != int64(at) || row.Scope != scope.Hash() {
			return &ledger.Problem{
				What: fmt.Sprintf("the database holds an unfinished snapshot at offset %d, scope %s; this run asks for offset "+
					"%d, scope %s",
					row.SnapshotOffset, row.Scope, at, scope.Hash()),
				Do: fmt.Sprintf("continue the one begun (--at-offset %d and the same parties, templates and so on), or add "+
					"--restart to drop it and begin again", row.SnapshotOffset),
			}
		}
		progress = bounds.SnapshotProgress(row)
		return l.recordIdentity(ctx, tx, participantID, scope)
	})
	return progress, err
}

func (l *UpdatesWriter) startSnapshot(ctx context.Context, tx pgx.Tx, participantID string, scope ledger.Scope,
	at ledger.Offset) error {
	if err := l.discardSnapshot(ctx, tx); err != nil {
		return err
	}
	if err := queries.ScopesClear(ctx, tx); err != nil {
		return fmt.Errorf("forget the scope: %w", err)
	}
	if err := l.recordIdentity(ctx, tx, participantID, scope); err != nil {
		return err
	}
	err := queries.SnapshotStart(ctx, tx, dbsqlc.SnapshotStartParams{SnapshotOffset: int64(at), Scope: scope.Hash()})
	if err != nil {
		return fmt.Errorf("record the snapshot: %w", err)
	}
	return l.dropLateIndexes(ctx, tx)
}

// finishedSnapshot returns the snapshot if the database holds nothing else yet; else nil.
func (l *UpdatesWriter) finishedSnapshot(ctx context.Context, db dbsqlc.DBTX) (*dbsqlc.Snapshots, error) {
	row, err := queries.SnapshotAtWatermark(ctx, db)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a finished snapshot: %w", err)
	}
	return &row, nil
}

// DropSnapshot removes an unfinished snapshot and everything that was stored of it: the database is as empty as before.
func (l *UpdatesWriter) DropSnapshot(ctx context.Context) (err error) {
	defer pg.Wrap(&err, "drop the unfinished snapshot")
	return l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.refuseStarted(ctx, tx); err != nil {
			return err
		}
		if err := queries.SnapshotClear(ctx, tx); err != nil {
			return fmt.Errorf("clear the entries: %w", err)
		}
		if err := queries.TasksClear(ctx, tx); err != nil {
			return fmt.Errorf("clear what the tasks brought: %w", err)
		}
		if err := queries.ScopesClear(ctx, tx); err != nil {
			return fmt.Errorf("forget the scope: %w", err)
		}
		if err := queries.ParticipantClear(ctx, tx); err != nil {
			return fmt.Errorf("forget the participant: %w", err)
		}
		return l.discardSnapshot(ctx, tx)
	})
}

// refuseStarted keeps a snapshot from a database whose updates stream has begun.
func (l *UpdatesWriter) refuseStarted(ctx context.Context, tx pgx.Tx) error {
	watermark, started, err := bounds.Watermark(ctx, tx)
	if err != nil || !started {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the database already holds the ledger up to offset %d", watermark),
		Do:   "run `indexer run` to continue from there; to seed from a snapshot use a new database",
	}
}

// WriteSnapshotPage stores a page's rows and the token that follows it in one transaction, and returns the new
// progress. Before it stores the last page it builds indexes, which may take long. The last page finishes the snapshot,
// and sets the watermark to its offset. progress must be what the last call returned: the error is ErrWatermarkMoved if
// another process has moved it. After any error the outcome is unknown: call BeginSnapshot again.
//
// It is safe for concurrent use: a page may be written while the one before it is, behind that one in order, and from
// the progress that that one will return. order may be nil if no other page is being written. A page with incomplete
// reassignments must be written alone: their creation events are looked for among the stored rows.
func (l *UpdatesWriter) WriteSnapshotPage(
	ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
) (ledger.SnapshotProgress, error) {
	if page.Last {
		if err := l.finishPages(ctx, order, progress); err != nil {
			return progress, err
		}
	}
	page.Entries = l.term.Redacted.Entries(page.Entries)
	wanted, rows := names.NewReferences(), rows.NewCarried(progress)
	rows.Grow(len(page.Entries))
	for i := range page.Entries {
		if err := rows.Add(wanted, &page.Entries[i]); err != nil {
			return progress, err
		}
	}
	if err := l.term.Resolve(ctx, wanted); err != nil {
		return progress, session.Refused(err)
	}
	if err := writing.EnsureSnapshot(ctx, l.term.Partitions, progress.At); err != nil {
		return progress, session.Refused(err)
	}
	next := progress.After(&page)
	err := l.term.WriteInOrder(ctx, order, inOrder(order, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.advanceSnapshot(ctx, tx, progress, next, page.Last); err != nil || !page.Last {
			return err
		}
		return l.startAt(ctx, tx, progress.At, true)
	}, func(ctx context.Context, tx pgx.Tx) error { return l.copyCarried(ctx, tx, rows) }))
	if err != nil {
		return progress, fmt.Errorf("write snapshot entries %d to %d: %w", progress.Entries+1, next.Entries,
			session.Refused(err))
	}
	l.store.db.Config.Wrote("created", len(rows.Created))
	rows.Release()
	wanted.Release()
	return next, nil
}

// finishPages waits until all pages before the last one are stored, and builds the indexes.
func (l *UpdatesWriter) finishPages(ctx context.Context, order CommitOrder, progress ledger.SnapshotProgress) error {
	if order != nil {
		if err := order.Wait(ctx); err != nil {
			return err
		}
	}
	if err := l.buildLateIndexes(ctx, progress.Entries); err != nil {
		return fmt.Errorf("finish the snapshot at offset %d: %w", progress.At, err)
	}
	return nil
}

// advanceSnapshot moves the token over a page. Behind the last one the snapshot is finished.
func (l *UpdatesWriter) advanceSnapshot(ctx context.Context, tx pgx.Tx, from, to ledger.SnapshotProgress,
	last bool) (err error) {
	defer pg.Wrap(&err, "store the continuation token")
	return swapped(queries.SnapshotAdvance(ctx, tx, over(from, to, last)))
}

// over says that a page was stored.
func over(from, to ledger.SnapshotProgress, last bool) dbsqlc.SnapshotAdvanceParams {
	return dbsqlc.SnapshotAdvanceParams{
		LedgerOffset: int64(from.At), EntriesBefore: from.Entries, TokenBefore: from.Next.Value,
		TokenKind: string(to.Next.Kind), Token: to.Next.Value, Added: to.Entries - from.Entries, Last: last,
	}
}

// LatestSnapshot returns the snapshot that was begun and not finished, or the one that was finished and has nothing
// after it yet; nil where there is none.
func (l *UpdatesWriter) LatestSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error) {
	unfinished, err := l.store.UnfinishedSnapshot(ctx)
	if err != nil || unfinished != nil {
		return unfinished, err
	}
	finished, err := l.finishedSnapshot(ctx, l.term.Pool)
	if err != nil || finished == nil {
		return nil, err
	}
	progress := bounds.SnapshotProgress(*finished)
	return &progress, nil
}

func (l *UpdatesWriter) copyCarried(ctx context.Context, tx pgx.Tx, c *rows.Carried) error {
	err := c.Settle(func(offset int64, nodeID int32) (bool, error) {
		return queries.SnapshotCreated(ctx, tx, dbsqlc.SnapshotCreatedParams{LedgerOffset: offset, NodeID: nodeID})
	})
	if err != nil {
		return err
	}
	return writing.CopyTables(ctx, tx, append(c.Tables(), rows.TableOf("active_contracts", c.Active)))
}
