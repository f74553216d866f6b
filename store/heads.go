package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// Heads is how far each stream of a database has come. It is cheap to read, however much the database holds.
type Heads struct {
	Watermark  ledger.Offset // 0: nothing is indexed
	Frontier   ledger.Offset // at least Watermark
	RecordTime time.Time     // of the last update up to the watermark; zero: there is none
	Seq        int64         // of the last record of the transaction history that was read; 0: none was
}

// Heads reads how far each stream has come.
func (s *Store) Heads(ctx context.Context) (Heads, error) {
	q := s.db.Queries
	var heads Heads
	err := s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		row, err := q.StatusHeads(ctx, tx)
		if err != nil {
			return fmt.Errorf("read how far the streams have come: %w", err)
		}
		heads = Heads{Watermark: ledger.Offset(row.Watermark), Frontier: ledger.Offset(row.Watermark), Seq: row.Seq}
		if heads.Watermark == 0 {
			return nil
		}
		frontier, err := q.StatusFrontier(ctx, tx)
		if err != nil {
			return fmt.Errorf("read the frontier: %w", err)
		}
		heads.Frontier = ledger.Offset(frontier)
		heads.RecordTime, err = s.recordTime(ctx, tx, heads.Watermark)
		return err
	})
	return heads, err
}
