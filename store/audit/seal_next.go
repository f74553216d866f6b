package audit

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// Window is a range of a stream that is compared with its source, and sealed, as a whole.
type Window struct {
	From, To int64 // From exclusive; offsets, or seqs of the transaction history
	Full     bool  // it will not grow: it has as many updates as a window may have, or another window follows
	Again    bool  // it was sealed before, and has to be compared again with the same bounds
	Pruned   bool  // of a snapshot: its rows were made of what was stored, so that it is sealed and not compared
}

// SealResult is the result of comparing a window, as ledger.verifications names it.
type SealResult string

// The results.
const (
	SealEqual     SealResult = "equal"
	SealDifferent SealResult = "different"
	SealNotShown  SealResult = "not_shown" // the source does not show it any more
	// pruned here: of records, the updates that they follow from; of a snapshot, which pruning made, those below it
	SealPruned SealResult = "pruned"
)

// firstDifferences is how many differences a Comparison keeps.
const firstDifferences = 5

// Comparison is the result of comparing a window with its source.
type Comparison struct {
	Differences int64
	Lacking     int64        // how many of them are Lacking
	First       []Difference // the first few of them
	Rendered    int64        // interface views that the server renders otherwise, which are no differences
	AsRendered  []Difference // the first few of these
}

// Add counts a difference, or a view that is rendered otherwise.
func (c *Comparison) Add(d Difference) {
	if d.Rendering != nil {
		c.Rendered++
		if len(c.AsRendered) < firstDifferences {
			c.AsRendered = append(c.AsRendered, d)
		}
		return
	}
	c.Differences++
	if d.Lacking() {
		c.Lacking++
	}
	if len(c.First) < firstDifferences {
		c.First = append(c.First, d)
	}
}

// Result returns SealEqual or SealDifferent.
func (c *Comparison) Result() SealResult {
	if c.Differences > 0 {
		return SealDifferent
	}
	return SealEqual
}

// RowsDigest is a digest of a window's rows, and identifies the repairs up to then.
type RowsDigest struct {
	Rows    []byte // SHA-256
	Repairs string // changes with each repair
}

// NextWindow returns what is to be compared and sealed next of the updates or the transaction history; nil: everything
// is. A window that has to be compared again comes first: one that begins at again or after it and differed, or one
// that was repaired in part since. Where again is negative none does. size is how many updates or records make a window
// full. Before the window that begins at known there are no holes; 0, or an offset where none begins: they are looked
// for everywhere.
func (s *Stored) NextWindow(ctx context.Context, stream string, size, again, known int64) (next *Window, err error) {
	defer pg.Wrap(&err, "look for what of %s is not sealed yet", stream)
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if again >= 0 {
			if next, err = s.windowAgain(ctx, tx, stream, again); err != nil || next != nil {
				return err
			}
		}
		next, err = s.unsealedWindow(ctx, tx, stream, size, known)
		return err
	})
	return next, err
}

// SnapshotWindow returns the window of the snapshot that is carried, where it is to be compared and sealed; nil: it is
// sealed, or there is none. again is as for NextWindow: greater than 0 leaves out that it differed before.
func (s *Stored) SnapshotWindow(ctx context.Context, again int64) (next *Window, err error) {
	begun, err := s.FinishedSnapshot(ctx)
	if err != nil || begun == nil || begun.At == 0 {
		return nil, err
	}
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if next, err = s.windowAgain(ctx, tx, tables.StreamSnapshot, again); err != nil {
			return err
		}
		if next != nil {
			next.Pruned = begun.Pruned
			return nil
		}
		sealed, err := queries.VerificationFrom(ctx, tx, dbsqlc.VerificationFromParams{Stream: tables.StreamSnapshot})
		if err == nil && len(sealed) == 0 {
			next = &Window{To: int64(begun.At), Full: true, Pruned: begun.Pruned}
		}
		return err
	})
	return next, err
}

func (s *Stored) windowAgain(ctx context.Context, tx pgx.Tx, stream string, again int64) (*Window, error) {
	list, err := queries.VerificationAgain(ctx, tx, dbsqlc.VerificationAgainParams{Stream: stream, AtLeast: again})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &Window{From: list[0].FromExclusive, To: list[0].ToInclusive, Full: true, Again: true}, nil
}

// Unsealed returns the ranges of what is shown of the updates or the transaction history that no window claims.
func (s *Stored) Unsealed(ctx context.Context, stream string) (gaps []Window, err error) {
	defer pg.Wrap(&err, "look for what of %s is not sealed", stream)
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		floor, upTo, err := s.shown(ctx, tx, stream)
		for err == nil && floor < upTo {
			var gap *Window
			if gap, err = s.unsealed(ctx, tx, stream, floor, 0, upTo); gap == nil {
				break
			}
			gaps, floor = append(gaps, *gap), gap.To
		}
		return err
	})
	return gaps, err
}

// shown returns where what is shown of the updates or the transaction history begins, exclusive, and ends.
func (s *Stored) shown(ctx context.Context, tx pgx.Tx, stream string) (from, to int64, err error) {
	if stream == tables.StreamTransactions {
		position, err := bounds.TransactionsPosition(ctx, tx)
		return 0, position.LastSeq, err
	}
	extent, err := bounds.Read(ctx, tx)
	return int64(extent.HistoryFloor), int64(extent.Watermark), err
}

// unsealed returns the first range up to a place that no window claims; nil: there is none.
func (s *Stored) unsealed(ctx context.Context, tx pgx.Tx, stream string, floor, known, upTo int64) (*Window, error) {
	row, err := queries.VerificationUnsealed(ctx, tx, dbsqlc.VerificationUnsealedParams{Stream: stream, Floor: floor,
		Known: known})
	if err != nil || row.FromExclusive >= upTo {
		return nil, err
	}
	return &Window{From: row.FromExclusive, To: min(upTo, row.NextWindow), Full: row.NextWindow <= upTo}, nil
}

// unsealedWindow returns the first window, of up to so many updates or records, that no window claims; nil: there is
// none.
func (s *Stored) unsealedWindow(ctx context.Context, tx pgx.Tx, stream string, size, known int64) (*Window, error) {
	floor, upTo, err := s.shown(ctx, tx, stream)
	if err != nil {
		return nil, err
	}
	w, err := s.unsealed(ctx, tx, stream, floor, known, upTo)
	if err != nil || w == nil {
		return nil, err
	}
	if stream == tables.StreamTransactions {
		if w.To-w.From >= size {
			w.To, w.Full = w.From+size, true
		}
		return w, nil
	}
	end, err := queries.VerificationUpdatesEnd(ctx, tx, dbsqlc.VerificationUpdatesEndParams{FromExclusive: w.From,
		ToInclusive: w.To, Skip: size - 1})
	if err == nil && len(end) > 0 {
		w.To, w.Full = end[0], true
	}
	return w, err
}
