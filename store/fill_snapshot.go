package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// LowerSnapshot stores a snapshot that is to lower the state floor to its offset. Its rows are carried rows that wait:
// they are not shown, and no daemon waits for them. When history is filled in from there up to the state floor, the
// last step of FillState shows them in place of the rows of the other snapshot. There is one at a time.
type LowerSnapshot struct{ leader *BackfillWriter }

// LowerSnapshot returns a writer of a snapshot below the state floor.
func (l *BackfillWriter) LowerSnapshot() *LowerSnapshot { return &LowerSnapshot{l} }

// LatestSnapshot returns the snapshot that was begun; nil: there is none.
func (s *LowerSnapshot) LatestSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error) {
	return s.leader.store.lowerSnapshot(ctx, s.leader.term.Pool)
}

// BeginSnapshot begins a snapshot at an offset, or returns the progress of the one that was begun there. It drops one
// of another offset. The error is a *ledger.Problem if the active set is known at the offset already, or if the offset
// is above the one at which indexing began.
func (s *LowerSnapshot) BeginSnapshot(ctx context.Context, _ string, scope ledger.Scope,
	at ledger.Offset) (ledger.SnapshotProgress, error) {
	progress := ledger.SnapshotProgress{At: at}
	l := s.leader
	q := l.store.db.Queries
	err := l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := q.FillTurn(ctx, tx); err != nil {
			return fmt.Errorf("wait for another process that fills in history: %w", err)
		}
		extent, err := held.Read(ctx, l.store.db, tx)
		if err != nil {
			return err
		}
		if err := refuseLowerSnapshot(&extent, at); err != nil {
			return err
		}
		row, err := q.WaitingSnapshot(ctx, tx)
		if err == nil && row.SnapshotOffset == int64(at) && row.Scope == scope.Hash() {
			progress = held.SnapshotProgress(row)
			return nil
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read the snapshot that was begun: %w", err)
		}
		if err := l.dropLowerSnapshot(ctx, tx); err != nil {
			return err
		}
		if err := q.SnapshotStart(ctx, tx, dbsqlc.SnapshotStartParams{SnapshotOffset: int64(at), Scope: scope.Hash()}); err != nil {
			return fmt.Errorf("record the snapshot: %w", err)
		}
		return q.WaitingSnapshotSet(ctx, tx, int64(at))
	})
	if err != nil {
		return ledger.SnapshotProgress{}, fmt.Errorf("begin a snapshot at offset %d, to lower the state floor: %w", at, err)
	}
	return progress, nil
}

func refuseLowerSnapshot(extent *Extent, at ledger.Offset) error {
	switch {
	case extent.StateFloor != nil && at >= *extent.StateFloor:
		return &ledger.Problem{
			What: fmt.Sprintf("a snapshot at offset %d adds nothing: what was active is known from offset %d on", at, *extent.StateFloor),
			Do:   fmt.Sprintf("give --from an offset below %d, or leave out --with-snapshot", *extent.StateFloor),
		}
	case at > extent.ProjectedFrom:
		return &ledger.Problem{
			What: fmt.Sprintf("a snapshot at offset %d does not lead to what was active at offset %d, where indexing began", at, extent.ProjectedFrom),
			Do:   fmt.Sprintf("give --from an offset of at most %d", extent.ProjectedFrom),
		}
	}
	return nil
}

// DropSnapshot removes a snapshot and everything that was stored of it.
func (s *LowerSnapshot) DropSnapshot(ctx context.Context) error {
	l := s.leader
	err := l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		// First: a process that fills in takes its turn before it changes the floors. Where nothing is indexed there is no
		// turn to take.
		if _, err := l.store.db.Queries.FillTurn(ctx, tx); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("wait for another process that fills in history: %w", err)
		}
		return l.dropLowerSnapshot(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("drop the snapshot that was to lower the state floor: %w", err)
	}
	return nil
}

// dropLowerSnapshot removes the lower snapshot, with the lifetimes that were computed from there on. The caller holds
// the lock of those who fill in history (FillTurn).
func (l *BackfillWriter) dropLowerSnapshot(ctx context.Context, tx pgx.Tx) error {
	dropped, err := l.dropWaiting(ctx, tx)
	if err != nil {
		return fmt.Errorf("remove its rows: %w", err)
	}
	if !dropped {
		return nil
	}
	return l.dropLifetimes(ctx, tx)
}

// dropWaiting removes the snapshot that waits, with its rows, and reports whether there was one.
func (l *BackfillWriter) dropWaiting(ctx context.Context, tx pgx.Tx) (dropped bool, err error) {
	for _, table := range tables.In(tables.Waiting) {
		if _, err := tx.Exec(ctx, table.Delete("true")); err != nil {
			return false, err
		}
	}
	n, err := l.store.db.Queries.WaitingSnapshotDrop(ctx, tx)
	return n > 0, err
}

// WriteSnapshotPage is UpdatesWriter.WriteSnapshotPage, except for what follows from the last page: nothing does before
// FillState.
func (s *LowerSnapshot) WriteSnapshotPage(
	ctx context.Context, progress ledger.SnapshotProgress, turn CommitOrder, page ledger.SnapshotPage,
) (ledger.SnapshotProgress, error) {
	// Lifetimes that were computed from the beginning of the ledger on are dropped: they begin at the snapshot now.
	return s.leader.writeSnapshotPage(ctx, progress, turn, page, snapshotTarget{finish: s.leader.dropLifetimes})
}

// dropLifetimes removes the lifetimes that were computed below the state floor, if computing them is under way.
func (l *BackfillWriter) dropLifetimes(ctx context.Context, tx pgx.Tx) error {
	return writing.ForgetLifetimes(ctx, tx, -1)
}

// contradicted returns how the stored updates, or the other snapshot, contradict the snapshot; nil: they do not.
func (l *BackfillWriter) contradicted(ctx context.Context, tx pgx.Tx, at int64) (*ledger.Problem, error) {
	list, err := l.store.db.Queries.WaitingSnapshotContradicted(ctx, tx, at)
	if err != nil {
		return nil, fmt.Errorf("compare the snapshot at offset %d with what is stored: %w", at, err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	c := list[0]
	what := fmt.Sprintf("the snapshot at offset %d has contract %s, created at offset %d (node %d), and the participant's updates don't show that",
		at, c.ContractID, c.LedgerOffset, c.NodeID)
	if c.Lacking {
		what = fmt.Sprintf("the snapshot at offset %d lacks contract %s, which a later snapshot shows as active since offset %d (node %d)",
			at, c.ContractID, c.LedgerOffset, c.NodeID)
	}
	return &ledger.Problem{
		What: what,
		Do: "the participant contradicts itself, or what is stored was altered: what was read of the snapshot was dropped, and the history stays; " +
			"run `indexer verify --all`, report it to the participant's operator, and try another offset with --from",
	}, nil
}

// show makes the snapshot at an offset the shown one, and the offset the state floor. It removes the rows of the other
// snapshot, and those that are facts now, because history covers them. Offset 0 stands for no snapshot. Afterwards no
// snapshot waits.
func (l *BackfillWriter) show(ctx context.Context, tx pgx.Tx, at int64) error {
	for _, table := range tables.In(tables.Snapshot) {
		if _, err := tx.Exec(ctx, table.Delete("s."+table.SnapshotOffset+" <> $1 OR "+held.CoveredS), at); err != nil {
			return fmt.Errorf("remove rows of %s that others have taken the place of: %w", table.Name, err)
		}
	}
	if err := l.store.db.Queries.SnapshotsKeep(ctx, tx, at); err != nil {
		return fmt.Errorf("forget the other snapshots: %w", err)
	}
	return writing.ForgetCarriedLookups(ctx, tx)
}
