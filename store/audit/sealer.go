package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

// Sealer compares what a source shows with what is stored of it, and seals the result, as long as its leader leads. It
// is safe for concurrent use.
type Sealer struct {
	*Stored
	writer
}

// NewSealer returns the Sealer of a leader of the database.
func NewSealer(s *store.Store, leader *store.Leader) *Sealer {
	w := newWriter(s, leader)
	return &Sealer{w.stored, w}
}

// SealUpdates compares a page with what is stored of its range, and seals the range as one window with a digest of just
// the rows that were compared. The page may replace a window with the same bounds, and must not overlap with another.
//
// Errors: store.ErrNotLeader, store.ErrWatermarkMoved where the page reaches beyond what is stored, or the database's.
// After any error the outcome is unknown: ask NextWindow again.
func (s *Sealer) SealUpdates(ctx context.Context, page ledger.Page) (Comparison, error) {
	return s.seal(ctx, tables.StreamUpdates, int64(page.From), int64(page.To), func(ctx context.Context, tx pgx.Tx,
		found Found) error {
		return s.stored.compare(ctx, tx, page, found)
	})
}

// SealRecords is like SealUpdates, for records of the transaction history: those that its service shows after a seq, in
// its order. The error is store.ErrPositionMoved where not as many are stored any more.
func (s *Sealer) SealRecords(ctx context.Context, after int64, records []ledger.Record) (Comparison, error) {
	return s.seal(ctx, tables.StreamTransactions, after, after+int64(len(records)),
		func(ctx context.Context, tx pgx.Tx, found Found) error {
			return s.stored.compareRecords(ctx, tx, after, records, found)
		})
}

func (s *Sealer) seal(ctx context.Context, stream string, from, to int64,
	compare func(ctx context.Context, tx pgx.Tx, found Found) error) (c Comparison, err error) {
	err = s.writeSeals(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c = Comparison{}
		if err := s.stored.refuseGone(ctx, tx, stream, from, to); err != nil {
			return err
		}
		if err := compare(ctx, tx, c.Add); err != nil {
			return err
		}
		return s.sealCompared(ctx, tx, stream, from, to, c)
	})
	if err != nil {
		err = fmt.Errorf("seal %s after %s %d up to %d: %w", stream, unitOf(stream), from, to, err)
	}
	return c, err
}

// unitOf returns what the rows of a stream are numbered by.
func unitOf(stream string) string {
	if stream == tables.StreamTransactions {
		return "seq"
	}
	return "offset"
}

// refuseGone refuses to seal what is not shown any more since the window was chosen: it was pruned, or the history was
// cleared to be read again. No window could follow one that reaches beyond the floor.
func (s *Stored) refuseGone(ctx context.Context, tx pgx.Tx, stream string, from, to int64) error {
	switch stream {
	case tables.StreamUpdates:
		extent, err := bounds.Read(ctx, tx)
		if err == nil && (!extent.Started || from < int64(extent.HistoryFloor) || to > int64(extent.Watermark)) {
			err = session.ErrWatermarkMoved
		}
		return err
	case tables.StreamTransactions:
		at, err := bounds.TransactionsPosition(ctx, tx)
		if err == nil && (at.Rereading || to > at.LastSeq) {
			err = session.ErrPositionMoved
		}
		return err
	}
	return nil
}

// SnapshotRows returns a digest of all rows that the snapshot at an offset brought. Making it takes as long as reading
// them.
func (s *Stored) SnapshotRows(ctx context.Context, at ledger.Offset) (digest RowsDigest, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if digest.Repairs, err = s.lastRepair(ctx, tx); err != nil {
			return err
		}
		digest.Rows, err = s.rowsDigest(ctx, tx, tables.StreamSnapshot, 0, int64(at))
		return err
	})
	return digest, err
}

// lastRepair returns a mark that changes with each repair of the updates or the carried snapshot.
func (s *Stored) lastRepair(ctx context.Context, tx pgx.Tx) (mark string, err error) {
	defer pg.Wrap(&err, "ask for the last repair")
	return queries.LeadershipMark(ctx, tx, string(session.LeaseUpdates))
}

// errRepaired is the error of sealing a snapshot that something was repaired of since its rows were digested.
var errRepaired = errors.New("something was repaired while its rows were read: try again")

// refuseRepaired refuses a digest of a snapshot when something was repaired since. Nothing else writes its rows.
func (s *Stored) refuseRepaired(ctx context.Context, tx pgx.Tx, digest RowsDigest) error {
	repairs, err := s.lastRepair(ctx, tx)
	if err == nil && repairs != digest.Repairs {
		err = errRepaired
	}
	return err
}

// SealSnapshot seals the rows that the snapshot at an offset brought, after they were compared. digest is what
// SnapshotRows said before that: where something was repaired since, nothing is sealed and ok is false.
func (s *Sealer) SealSnapshot(ctx context.Context, at ledger.Offset, digest RowsDigest,
	c Comparison) (ok bool, err error) {
	err = s.writeSeals(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := s.stored.refuseRepaired(ctx, tx, digest); err != nil {
			return err
		}
		return s.sealRows(ctx, tx, tables.StreamSnapshot, 0, int64(at), c.Result(), c.Differences, digest.Rows)
	})
	if err != nil && !errors.Is(err, errRepaired) {
		return false, fmt.Errorf("seal the snapshot at offset %d: %w", at, err)
	}
	return err == nil, nil
}

// SealUnseen seals a window that can't be compared, so that it is noticed when it changes. why is SealNotShown, or
// SealPruned of snapshots. What was found to be different before stays so. Errors are those of SealUpdates and
// SealRecords.
func (s *Sealer) SealUnseen(ctx context.Context, stream string, from, to int64, why SealResult) (err error) {
	defer pg.Wrap(&err, "seal %s after %s %d up to %d, which can't be compared", stream, unitOf(stream), from, to)
	// That of a snapshot is made before the transaction, which repairs would wait for too long.
	var digest RowsDigest
	if stream == tables.StreamSnapshot {
		if digest, err = s.stored.SnapshotRows(ctx, ledger.Offset(to)); err != nil {
			return err
		}
	}
	return s.writeSeals(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if stream == tables.StreamSnapshot {
			err = s.stored.refuseRepaired(ctx, tx, digest)
		} else if err = s.stored.refuseGone(ctx, tx, stream, from, to); err == nil {
			digest.Rows, err = s.stored.rowsDigest(ctx, tx, stream, from, to)
		}
		if err != nil {
			return err
		}
		result, differences := why, int64(0)
		before, err := s.within(ctx, tx, stream, from, to)
		if err != nil {
			return err
		}
		if len(before) == 1 && before[0].Result == string(SealDifferent) {
			result, differences = SealDifferent, before[0].Differences
		}
		return s.sealRows(ctx, tx, stream, from, to, result, differences, digest.Rows)
	})
}
