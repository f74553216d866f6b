package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/amulets"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// comparedAtOnce is how many updates' records are compared at once.
const comparedAtOnce = 2_000

// CompareFollowing derives the records that follow from the stored updates of a network again, and compares them with
// those that are stored. Everything is read in one snapshot.
//
// step is called with the offset up to which it has come, found for each difference; if found returns an error, the
// comparison stops with it.
func (s *Stored) CompareFollowing(ctx context.Context, step func(at ledger.Offset),
	found func(Difference) error) (c Following, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		c, err = s.compareFollowing(ctx, tx, step, found)
		return err
	})
	return c, err
}

func (s *Stored) compareFollowing(ctx context.Context, tx pgx.Tx, step func(at ledger.Offset),
	found func(Difference) error) (c Following, err error) {
	extent, err := bounds.Read(ctx, s.db, tx)
	if err != nil {
		return c, err
	}
	d, err := bounds.ReadDerived(ctx, s.db, tx, &extent)
	if err != nil || !d.Any {
		return c, err
	}
	if c.Outdated = d.Outdated; c.Outdated {
		return c, nil
	}
	if c.Kept, err = bounds.RecordsKept(ctx, s.db, tx, &extent, d.At); err != nil {
		return c, err
	}
	after := c.Kept
	for at := extent.HistoryFloor; at < d.To; {
		updates, to, err := amulets.Window(ctx, s.db.Queries, tx, at, d.To, comparedAtOnce)
		if err != nil {
			return c, err
		}
		records := amulets.Records(updates)
		if err := s.compareRecords(ctx, tx, after, records, found); err != nil {
			return c, err
		}
		at, after, c.Records = to, after+int64(len(records)), c.Records+int64(len(records))
		step(at)
	}
	for seq := after + 1; seq <= d.At.LastSeq; seq++ {
		if err := found(Difference{Kind: Extra, Relation: "transactions", Seq: seq}); err != nil {
			return c, err
		}
	}
	return c, nil
}

// DeriveAgain derives the records of a network's updates again, but for those whose updates were pruned: it removes
// them, and writes them anew up to the watermark. Readers see those that are written already.
func (r *Repairer) DeriveAgain(ctx context.Context, step func(at ledger.Offset)) error {
	writer := store.UpdatesWriter{Leader: r.Leader}
	err := r.repair(ctx, []session.Role{session.RoleUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		extent, err := bounds.Read(ctx, r.stored.db, tx)
		if err != nil {
			return err
		}
		at, err := bounds.TransactionsPosition(ctx, r.stored.db, tx)
		if err != nil {
			return err
		}
		return writer.RemoveDerived(ctx, tx, &extent, at, writing.Repaired)
	})
	if err != nil {
		return fmt.Errorf("remove the records that follow from updates: %w", session.Refused(err))
	}
	for {
		derived, err := writer.DeriveRecords(ctx)
		if errors.Is(err, session.ErrPositionMoved) { // the daemon derives them too
			continue
		}
		if err != nil {
			return err
		}
		step(derived.To)
		if !derived.More {
			return nil
		}
	}
}

// Following is what was compared of the records that follow from the updates of a network.
type Following struct {
	Records  int64 // that were derived again, and compared
	Kept     int64 // that follow from updates that were pruned, and so were not compared
	Outdated bool  // they follow by other rules, and will be derived again: nothing was compared
}
