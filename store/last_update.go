package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// LastUpdate is the last stored update at or below an offset. at is 0 where there is none, and the id is empty where none
// could be read of an update of an unknown kind.
func (s *Store) LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error) {
	row, err := s.db.Queries.UpdateLast(ctx, s.db.Pool, int64(upTo))
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", s.db.Unusable(fmt.Errorf("read the last stored update up to offset %d: %w", upTo, err))
	}
	return ledger.Offset(row.LedgerOffset), row.UpdateID, nil
}

// LastUpdate is Store.LastUpdate.
func (l *Leader) LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error) {
	return l.store.LastUpdate(ctx, upTo)
}

// RecordTime is that of the last stored update at or below an offset that has one; zero where none has.
func (s *Store) RecordTime(ctx context.Context, upTo ledger.Offset) (time.Time, error) {
	return s.recordTime(ctx, s.db.Pool, upTo)
}

func (s *Store) recordTime(ctx context.Context, db dbsqlc.DBTX, upTo ledger.Offset) (time.Time, error) {
	recordTime, err := s.db.Queries.UpdateRecordTime(ctx, db, int64(upTo))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the record time of the last stored update up to offset %d: %w", upTo, err)
	}
	return recordTime.Time, nil
}
