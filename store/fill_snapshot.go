package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
)

// LowerSnapshot is where a BackfillWriter keeps a snapshot that is to lower the state floor to its offset. Nobody sees it,
// and nobody waits for it, until the last step of FillState makes it the snapshot that the database carries: when history is
// filled in from there up to where it is known what was active. There is one at a time.
type LowerSnapshot struct{ leader *BackfillWriter }

// LowerSnapshot is where a snapshot below the state floor is kept.
func (l *BackfillWriter) LowerSnapshot() *LowerSnapshot { return &LowerSnapshot{l} }

// LatestSnapshot is the one that was begun; nil where there is none.
func (s *LowerSnapshot) LatestSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error) {
	return s.leader.store.lowerSnapshot(ctx, s.leader.pool)
}

// lowerSnapshot is the snapshot that is to lower the state floor; nil where there is none.
func (s *Store) lowerSnapshot(ctx context.Context, db dbsqlc.DBTX) (*ledger.SnapshotProgress, error) {
	row, err := s.queries.FillSnapshotGet(ctx, db)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the snapshot that is to lower the state floor: %w", err)
	}
	progress := snapshotProgress(dbsqlc.Snapshots(row))
	return &progress, nil
}

// BeginSnapshot begins a snapshot at an offset, or tells how far the one that was begun there has come, or that it is finished. One
// of another offset is dropped. An offset from which on it is known what was active, or from which no history leads to where that
// is worked out, is a *ledger.Problem.
func (s *LowerSnapshot) BeginSnapshot(ctx context.Context, _ string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error) {
	progress := ledger.SnapshotProgress{At: at}
	l := s.leader
	q := l.store.queries
	err := l.writeWithin(ctx, repairTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := q.FillTurn(ctx, tx); err != nil {
			return fmt.Errorf("wait for others who fill in history: %w", err)
		}
		extent, err := l.store.extent(ctx, tx)
		if err != nil {
			return err
		}
		if err := refuseLowerSnapshot(&extent, at); err != nil {
			return err
		}
		row, err := q.FillSnapshotGet(ctx, tx)
		if err == nil && row.SnapshotOffset == int64(at) && row.Scope == scope.Hash() {
			progress = snapshotProgress(dbsqlc.Snapshots(row))
			return nil
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read the snapshot that was begun: %w", err)
		}
		if err := l.dropLowerSnapshot(ctx, tx); err != nil {
			return err
		}
		return q.FillSnapshotStart(ctx, tx, dbsqlc.FillSnapshotStartParams{SnapshotOffset: int64(at), Scope: scope.Hash()})
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
			What: fmt.Sprintf("a snapshot at offset %d tells nothing new: what was active is known from offset %d on", at, *extent.StateFloor),
			Do:   fmt.Sprintf("give --from an offset below %d, or leave out --with-snapshot", *extent.StateFloor),
		}
	case at > extent.ProjectedFrom:
		return &ledger.Problem{
			What: fmt.Sprintf("a snapshot at offset %d does not tell what was active at offset %d, where indexing began", at, extent.ProjectedFrom),
			Do:   fmt.Sprintf("give --from an offset of at most %d", extent.ProjectedFrom),
		}
	}
	return nil
}

// DropSnapshot removes a snapshot and everything that was stored of it.
func (s *LowerSnapshot) DropSnapshot(ctx context.Context) error {
	err := s.leader.writeWithin(ctx, repairTimeout, s.leader.dropLowerSnapshot)
	if err != nil {
		return fmt.Errorf("drop the snapshot that was to lower the state floor: %w", err)
	}
	return nil
}

// dropLowerSnapshot removes it, with the lifetimes that were worked out from there on.
func (l *Leader) dropLowerSnapshot(ctx context.Context, tx pgx.Tx) error {
	dropped, err := l.store.queries.FillSnapshotDrop(ctx, tx)
	if err != nil {
		return fmt.Errorf("remove its rows: %w", err)
	}
	if dropped == 0 {
		return nil
	}
	return l.dropLifetimes(ctx, tx)
}

// WriteSnapshotPage is UpdatesWriter.WriteSnapshotPage, but for what follows from the last page: nothing does before FillState.
func (s *LowerSnapshot) WriteSnapshotPage(
	ctx context.Context, progress ledger.SnapshotProgress, turn CommitOrder, page ledger.SnapshotPage,
) (ledger.SnapshotProgress, error) {
	return s.leader.writeSnapshotPage(ctx, progress, turn, page, s.copy, s.advance)
}

func (s *LowerSnapshot) copy(ctx context.Context, tx pgx.Tx, c *rows.Carried) error {
	q := s.leader.store.queries
	err := c.Settle(func(offset int64, nodeID int32) (bool, error) {
		return q.FillCarriedCreatedExists(ctx, tx, dbsqlc.FillCarriedCreatedExistsParams{LedgerOffset: offset, NodeID: nodeID})
	})
	if err != nil {
		return err
	}
	for _, table := range c.Tables() {
		if err := copyInto(ctx, tx, "fill_"+table.Name, table.Rows); err != nil {
			return err
		}
	}
	return nil
}

func (s *LowerSnapshot) advance(ctx context.Context, tx pgx.Tx, from, to ledger.SnapshotProgress, last bool) error {
	moved, err := s.leader.store.queries.FillSnapshotAdvance(ctx, tx, dbsqlc.FillSnapshotAdvanceParams{
		SnapshotOffset: int64(from.At), EntriesBefore: from.Entries, TokenBefore: from.Next.Value,
		TokenKind: string(to.Next.Kind), Token: to.Next.Value, Added: to.Entries - from.Entries, Last: last,
	})
	if err == nil && moved == 0 {
		return ErrWatermarkMoved
	}
	if err != nil {
		return fmt.Errorf("store the continuation token: %w", err)
	}
	if !last {
		return nil
	}
	return s.leader.dropLifetimes(ctx, tx) // those that were begun from the beginning of the ledger on
}

// dropLifetimes removes what was worked out of lifetimes before where it is known what was active, if that is under way.
func (l *Leader) dropLifetimes(ctx context.Context, tx pgx.Tx) error {
	place, err := l.store.queries.FillPlace(ctx, tx)
	if err != nil || place.LifetimesTo == nil {
		return err
	}
	if _, err := l.store.queries.FillLifetimesBegin(ctx, tx, nil); err != nil {
		return fmt.Errorf("remove the lifetimes that were worked out: %w", err)
	}
	return nil
}

// contradicted tells what else is stored and contradicts the snapshot; nil: nothing does.
func (l *BackfillWriter) contradicted(ctx context.Context, tx pgx.Tx, at int64) (*ledger.Problem, error) {
	list, err := l.store.queries.FillSnapshotContradicted(ctx, tx, at)
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

// carry makes the snapshot the one that the database carries, in the place of the one that indexing began with. Those of its rows
// that history covers are left out: the events themselves are there.
func (l *BackfillWriter) carry(ctx context.Context, tx pgx.Tx) error {
	q := l.store.queries
	for _, part := range []struct {
		what string
		do   func(context.Context, dbsqlc.DBTX) error
	}{
		{"forget the look-ups of contracts that the snapshot brings", q.FillSnapshotForgetLookups},
		{"remove what a later snapshot brought", q.CarriedForgetAll},
		{"carry the rows of the snapshot", q.FillSnapshotCarry},
	} {
		if err := part.do(ctx, tx); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return nil
}
