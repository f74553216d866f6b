package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/pg"
)

// Held reports whether anything is stored, or claimed to be, of the updates and of the transaction history. A snapshot
// that was begun and not finished is nothing yet.
func (s *Store) Held(ctx context.Context) (updates, history bool, err error) {
	defer pg.Wrap(&err, "look for what is stored")
	held, err := queries.AnythingHeld(ctx, s.db.Pool)
	return held.Updates, held.History, err
}

// Begun reports whether updates, a snapshot of them included that is not finished, have begun to be stored. A database
// without the schemas holds none.
func (s *Store) Begun(ctx context.Context) (begun bool, err error) {
	var exists bool
	err = s.db.Pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.db.Config.Schemas.VersionTable()).Scan(&exists)
	if err != nil {
		return false, s.db.Unusable(fmt.Errorf("database %s: %w", s.Address(), err))
	}
	if !exists {
		return false, nil
	}
	if begun, _, err = s.Held(ctx); err != nil || begun {
		return begun, err
	}
	unfinished, err := s.UnfinishedSnapshot(ctx)
	return unfinished != nil, err
}

// Extent reads how much of the ledger the database claims to hold.
func (s *Store) Extent(ctx context.Context) (extent Extent, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
		extent, err = bounds.Read(ctx, tx)
		return err
	})
	return extent, err
}

// Watermark returns the offset up to which everything is stored and shown; ok is false where nothing was started.
func (s *Store) Watermark(ctx context.Context) (at ledger.Offset, ok bool, err error) {
	at, ok, err = bounds.Watermark(ctx, s.db.Pool)
	return at, ok, s.db.Unusable(err)
}

// UnfinishedSnapshot returns the snapshot that a backfill has begun and not finished; nil: there is none.
func (s *Store) UnfinishedSnapshot(ctx context.Context) (progress *ledger.SnapshotProgress, err error) {
	defer s.db.Wrap(&err, "read the unfinished snapshot")
	return bounds.Snapshot(queries.SnapshotUnfinished(ctx, s.db.Pool))
}

// Heads is how far each stream of a database has come. It is cheap to read, however much the database holds.
type Heads struct {
	Watermark  ledger.Offset // 0: nothing is indexed
	Frontier   ledger.Offset // at least Watermark
	RecordTime time.Time     // of the last update up to the watermark; zero: there is none
	Seq        int64         // of the last record of the transaction history that was read; 0: none was
}

// Heads reads how far each stream has come.
func (s *Store) Heads(ctx context.Context) (Heads, error) {
	var heads Heads
	err := s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		row, err := queries.StatusHeads(ctx, tx)
		if err != nil {
			return fmt.Errorf("read how far the streams have come: %w", err)
		}
		heads = Heads{Watermark: ledger.Offset(row.Watermark), Frontier: ledger.Offset(row.Watermark), Seq: row.Seq}
		if heads.Watermark == 0 {
			return nil
		}
		frontier, err := queries.StatusFrontier(ctx, tx)
		if err != nil {
			return fmt.Errorf("read the frontier: %w", err)
		}
		heads.Frontier = ledger.Offset(frontier)
		heads.RecordTime, err = s.recordTime(ctx, tx, heads.Watermark)
		return err
	})
	return heads, err
}
