package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// Place is where the streams of a database stand, as far as that is read in a moment whatever the database holds.
type Place struct {
	Watermark  ledger.Offset // 0: nothing is indexed
	Frontier   ledger.Offset // at least Watermark
	RecordTime time.Time     // of the last update up to the watermark; zero: there is none
	Seq        int64         // of the last record of the transaction history that was read; 0: none was
}

// Place reads where the streams stand.
func (s *Store) Place(ctx context.Context) (Place, error) {
	q := s.db.Queries
	var place Place
	err := s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		row, err := q.StatusPlace(ctx, tx)
		if err != nil {
			return fmt.Errorf("read where the streams stand: %w", err)
		}
		place = Place{Watermark: ledger.Offset(row.Watermark), Frontier: ledger.Offset(row.Watermark), Seq: row.Seq}
		if place.Watermark == 0 {
			return nil
		}
		frontier, err := q.StatusFrontier(ctx, tx)
		if err != nil {
			return fmt.Errorf("read the frontier: %w", err)
		}
		place.Frontier = ledger.Offset(frontier)
		place.RecordTime, err = s.recordTime(ctx, tx, place.Watermark)
		return err
	})
	return place, err
}

// Sizes is what a database takes on disk, in bytes, and the server that it lies on.
type Sizes struct {
	Database      int64 // all of the database, what others keep in it included
	Ledger        int64 // the tables of this ledger, with their indexes
	Partitions    int64
	ServerVersion string // of PostgreSQL
}

// Sizes reads what the database takes on disk.
func (s *Store) Sizes(ctx context.Context) (Sizes, error) {
	row, err := s.db.Queries.StatusSizes(ctx, s.db.Pool)
	if err != nil {
		return Sizes{}, fmt.Errorf("read the size of the database: %w", err)
	}
	return Sizes(row), nil
}
