package audit

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// CompareSeals compares everything that was sealed with its digest, without any source, and reports each window that
// holds something else now, that differed from its source when it was compared, or that is missing between others and
// did not go with a redaction. step is called with how many windows were compared.
func (s *Stored) CompareSeals(ctx context.Context, step func(done, of int64), found Found) error {
	summary, err := queries.VerificationSummary(ctx, s.db.Pool)
	if err != nil {
		return fmt.Errorf("count what was sealed: %w", err)
	}
	done := int64(0)
	for _, stream := range []string{tables.StreamSnapshot, tables.StreamUpdates, tables.StreamTransactions} {
		at, more := int64(-1), true // -1: before the first window
		for more {
			step(done, max(done, summary.Windows))
			// Each by itself: whatever repairs or seals meanwhile has its way.
			err := s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
				at, more, err = s.compareSeal(ctx, tx, stream, at, found)
				return err
			})
			if err != nil {
				return fmt.Errorf("compare what was sealed of %s after %d: %w", stream, at, err)
			}
			if more {
				done++
			}
		}
	}
	step(done, done)
	return nil
}

// compareSeal compares the first window that begins at a place or after it, and says where it ends; more is false where
// there is none.
func (s *Stored) compareSeal(ctx context.Context, tx pgx.Tx, stream string, at int64,
	found Found) (end int64, more bool, err error) {
	list, err := queries.VerificationFrom(ctx, tx, dbsqlc.VerificationFromParams{Stream: stream, FromExclusive: at})
	if err != nil || len(list) == 0 {
		return at, false, err
	}
	w := list[0]
	if at, err = s.firstSealed(ctx, tx, stream, at, w.FromExclusive); err != nil {
		return at, false, err
	}
	if w.FromExclusive > at {
		redacted, err := queries.RedactionWithin(ctx, tx, dbsqlc.RedactionWithinParams{Stream: stream,
			FromExclusive: at, ToInclusive: w.FromExclusive})
		if err != nil {
			return at, false, err
		}
		if !redacted {
			found(derivedDifference(Missing, "verifications", windowName(stream, at, w.FromExclusive)))
		}
	}
	d := derivedDifference(Altered, "verifications", windowName(stream, w.FromExclusive, w.ToInclusive))
	if w.Result == string(SealDifferent) {
		equal := string(SealEqual)
		d.Column, d.Wanted, d.Stored = "result", &equal, &w.Result
		found(d)
		return w.ToInclusive, true, nil
	}
	rows, err := s.rowsDigest(ctx, tx, stream, w.FromExclusive, w.ToInclusive)
	if err != nil {
		return at, false, err
	}
	if sealed, now := hex.EncodeToString(w.Digest), hex.EncodeToString(sealOf(&w, rows)); sealed != now {
		d.Column, d.Wanted, d.Stored = "digest", &sealed, &now
		found(d)
	}
	return w.ToInclusive, true, nil
}

// firstSealed returns where the next window of a stream is to begin, if at is before it; else at. After pruning
// what is left of a window that was pruned in part is not sealed. found is where the next window begins.
func (s *Stored) firstSealed(ctx context.Context, tx pgx.Tx, stream string, at, found int64) (int64, error) {
	switch stream {
	case tables.StreamSnapshot, tables.StreamTransactions:
		return max(at, 0), nil
	}
	extent, err := bounds.Read(ctx, tx)
	if err != nil || at <= int64(extent.PrunedTo) && extent.PrunedTo > 0 {
		return max(at, found), err
	}
	if at >= 0 {
		return at, nil
	}
	return int64(extent.HistoryFloor), nil
}

func windowName(stream string, from, to int64) string {
	return fmt.Sprintf("stream %s, from_exclusive %d, to_inclusive %d", stream, from, to)
}
