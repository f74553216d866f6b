package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

// AmuletSums say whether the sums of updates agree: what they archive and mint is what they create and burn.
type AmuletSums struct {
	From, To   ledger.Offset `json:"-"` // after one, up to the other
	Updates    int64         `json:"updates"`
	Unbalanced int64         `json:"unbalanced"`             // of them those whose sums don't agree
	Unproved   int64         `json:"unproved"`               // and those of which something is not stored, or was redacted
	First      ledger.Offset `json:"first_offset,omitempty"` // of an unbalanced one; 0: there is none
	FirstID    string        `json:"first_update_id,omitempty"`
}

// add adds the sums of the updates that follow.
func (a *AmuletSums) add(b AmuletSums) {
	a.To = b.To
	a.Updates, a.Unbalanced, a.Unproved = a.Updates+b.Updates, a.Unbalanced+b.Unbalanced, a.Unproved+b.Unproved
	if a.First == 0 {
		a.First = b.First
	}
}

// checkedAtOnce is how many updates' sums are computed by one statement.
const checkedAtOnce = 10_000

// AmuletSums adds up the amulets of all updates that are stored, and calls step with how far it has come.
func (s *Store) AmuletSums(ctx context.Context, step func(at ledger.Offset)) (sums AmuletSums, err error) {
	for {
		more, watermark := AmuletSums{}, ledger.Offset(0)
		err := s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
			more, watermark, err = s.nextSums(ctx, tx, sums)
			return err
		})
		if err != nil {
			return sums, err
		}
		sums = more
		step(sums.To)
		if sums.To >= watermark {
			return sums, s.nameFirst(ctx, s.db.Pool, &sums)
		}
	}
}

// nextSums adds the sums of some updates after those that were added up before; of all again where they begin below.
func (s *Store) nextSums(ctx context.Context, tx pgx.Tx,
	before AmuletSums) (sums AmuletSums, watermark ledger.Offset, err error) {
	extent, err := bounds.Read(ctx, tx)
	if err != nil {
		return before, 0, err
	}
	floor, watermark := extent.HistoryFloor, extent.Watermark
	if floor < before.From || before.To == 0 {
		before = AmuletSums{From: floor, To: floor}
	}
	if before.To = max(before.To, floor); before.To >= watermark {
		return before, watermark, nil
	}
	to, err := queries.UpdatesWindow(ctx, tx, dbsqlc.UpdatesWindowParams{FromExclusive: int64(before.To),
		ToInclusive: int64(watermark), Beyond: checkedAtOnce - 1})
	if err != nil {
		return before, 0, fmt.Errorf("look for the updates after offset %d: %w", before.To, err)
	}
	row, err := queries.AmuletSumsCount(ctx, tx, dbsqlc.AmuletSumsCountParams{FromExclusive: int64(before.To),
		ToInclusive: to})
	if err != nil {
		return before, 0, fmt.Errorf("add up the amulets of the updates after offset %d up to %d: %w", before.To, to, err)
	}
	sums = before
	sums.add(AmuletSums{
		To: ledger.Offset(to), Updates: row.Updates, Unbalanced: row.Unbalanced, Unproved: row.Unproved,
		First: ledger.Offset(row.FirstOffset),
	})
	return sums, watermark, nil
}

func (s *Store) nameFirst(ctx context.Context, db dbsqlc.DBTX, sums *AmuletSums) (err error) {
	if sums.First == 0 {
		return nil
	}
	defer pg.Wrap(&err, "read the id of the update at offset %d", sums.First)
	sums.FirstID, err = queries.AmuletUpdateID(ctx, db, int64(sums.First))
	return err
}
