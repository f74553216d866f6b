package audit

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
)

// sealsOf returns the sealed windows of updates and records in which something is about to be erased. It leaves out
// damaged ones, whose digests stay, so that the damage is still found.
func (r *Repairer) sealsOf(ctx context.Context, tx pgx.Tx, t *toRedact) (seals []dbsqlc.Verifications, err error) {
	for stream, places := range t.sealed {
		windows, err := r.stored.db.Queries.RedactionWindows(ctx, tx, dbsqlc.RedactionWindowsParams{Stream: stream,
			Places: places})
		if err != nil {
			return nil, fmt.Errorf("look for sealed windows: %w", err)
		}
		for _, w := range windows {
			rows, err := r.stored.rowsDigest(ctx, tx, stream, w.FromExclusive, w.ToInclusive)
			if err != nil {
				return nil, err
			}
			if bytes.Equal(sealOf(&w, rows), w.Digest) {
				seals = append(seals, w)
			}
		}
	}
	return seals, nil
}

// resealRedacted gives windows the digests of their rows without what was erased. What was found when they were
// compared stays, and when.
func (r *Repairer) resealRedacted(ctx context.Context, tx pgx.Tx, seals []dbsqlc.Verifications) error {
	for i := range seals {
		rows, err := r.stored.rowsDigest(ctx, tx, seals[i].Stream, seals[i].FromExclusive, seals[i].ToInclusive)
		if err != nil {
			return err
		}
		if err := r.sealRedacted(ctx, tx, &seals[i], rows); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repairer) sealRedacted(ctx context.Context, tx pgx.Tx, w *dbsqlc.Verifications, rows []byte) error {
	err := r.stored.db.Queries.RedactionSeal(ctx, tx, dbsqlc.RedactionSealParams{
		Stream: w.Stream, FromExclusive: w.FromExclusive, ToInclusive: w.ToInclusive, VerifiedAt: w.VerifiedAt,
		RepairedAt: w.RepairedAt, Digest: sealOf(w, rows),
	})
	if err != nil {
		return fmt.Errorf("seal %s again: %w", windowName(w.Stream, w.FromExclusive, w.ToInclusive), err)
	}
	return nil
}

// snapshotSeal is the window of the carried snapshot. Its digest takes too long for the writers to wait, so it is
// computed before something is erased, and after. Meanwhile the window is marked to be compared again, which the daemon
// does if it is not sealed here. Nobody else repairs meanwhile; filling in history and pruning may change the rows,
// which the mark shows.
type snapshotSeal struct {
	window dbsqlc.Verifications
	mark   string
	rows   []byte
	marked bool // it waits to be compared again
}

// snapshotSeal returns the window of the carried snapshot; nil: it is not sealed.
func (r *Repairer) snapshotSeal(ctx context.Context) (*snapshotSeal, error) {
	carried, err := r.stored.FinishedSnapshot(ctx)
	if err != nil || carried == nil {
		return nil, err
	}
	places := dbsqlc.RedactionWindowsParams{Stream: findings.SealedSnapshot, Places: []int64{int64(carried.At)}}
	windows, err := r.stored.db.Queries.RedactionWindows(ctx, r.term.Pool, places)
	if err != nil || len(windows) == 0 {
		return nil, err
	}
	s := &snapshotSeal{window: windows[0]}
	return s, r.digestSnapshot(ctx, s)
}

// digestSnapshot makes the digest of the carried rows, and marks what may change them.
func (r *Repairer) digestSnapshot(ctx context.Context, s *snapshotSeal) (err error) {
	if s.mark, err = r.stored.db.Queries.FillMark(ctx, r.term.Pool); err != nil {
		return fmt.Errorf("ask for what was filled in last: %w", err)
	}
	digest, err := r.stored.SnapshotRows(ctx, ledger.Offset(s.window.ToInclusive))
	s.rows = digest.Rows
	return err
}

// same keeps history from being filled in until the transaction ends, and reports whether the carried rows are those of
// the digest.
func (r *Repairer) same(ctx context.Context, tx pgx.Tx, s *snapshotSeal) (bool, error) {
	if err := r.stored.db.Queries.FillHold(ctx, tx); err != nil {
		return false, fmt.Errorf("keep history from being filled in: %w", err)
	}
	mark, err := r.stored.db.Queries.FillMark(ctx, tx)
	if err != nil {
		return false, fmt.Errorf("ask for what was filled in last: %w", err)
	}
	carried, err := held.CarriedSnapshot(ctx, r.stored.db, tx)
	return err == nil && mark == s.mark && carried != nil && int64(carried.At) == s.window.ToInclusive, err
}

// unsealSnapshot marks the window of the snapshot to be compared again. One that is damaged is left as it is.
func (r *Repairer) unsealSnapshot(ctx context.Context, tx pgx.Tx, s *snapshotSeal) error {
	if s == nil {
		return nil
	}
	same, err := r.same(ctx, tx, s)
	if err != nil || same && !bytes.Equal(sealOf(&s.window, s.rows), s.window.Digest) {
		return err
	}
	s.marked = same
	w := &s.window
	err = r.stored.db.Queries.VerificationsRepaired(ctx, tx, dbsqlc.VerificationsRepairedParams{Stream: w.Stream,
		FromExclusive: w.FromExclusive, ToInclusive: w.ToInclusive})
	if err != nil {
		return fmt.Errorf("note that the snapshot is to be sealed again: %w", err)
	}
	return nil
}

// resealSnapshot is like resealRedacted, for the snapshot. If something else has changed its rows meanwhile, it is
// compared again.
func (r *Repairer) resealSnapshot(ctx context.Context, s *snapshotSeal) error {
	if s == nil || !s.marked {
		return nil
	}
	if err := r.digestSnapshot(ctx, s); err != nil {
		return err
	}
	return r.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if same, err := r.same(ctx, tx, s); err != nil || !same {
			return err
		}
		return r.sealRedacted(ctx, tx, &s.window, s.rows)
	})
}
