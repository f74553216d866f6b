package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/writing"
)

// sealTries is how often a transaction that writes seals is tried: a repair, or a new leader, can make one that reads
// in one snapshot begin again.
const sealTries = 5

// within returns the windows that lie in a range as a whole.
func (w *writer) within(ctx context.Context, tx pgx.Tx, stream string, from,
	to int64) (list []dbsqlc.Verifications, err error) {
	defer pg.Wrap(&err, "read what was sealed")
	return queries.VerificationsWithin(ctx, tx, dbsqlc.VerificationsWithinParams{Stream: stream,
		FromExclusive: from, ToInclusive: to})
}

// writeSeals runs fn at this leader's epoch, and in one snapshot of the database: what is digested is what was
// compared.
func (w *writer) writeSeals(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := w.term.Transact(ctx, leadership.WriteTimeout, "BEGIN ISOLATION LEVEL REPEATABLE READ", fn)
		if !pg.HasCode(err, pg.SerializationFailure) || try == sealTries {
			return err
		}
	}
}

// sealCompared seals what was compared in this transaction.
func (w *writer) sealCompared(ctx context.Context, tx pgx.Tx, stream string, from, to int64, c Comparison) error {
	rows, err := w.stored.rowsDigest(ctx, tx, stream, from, to)
	if err != nil {
		return err
	}
	return w.sealRows(ctx, tx, stream, from, to, c.Result(), c.Differences, rows)
}

func (w *writer) sealRows(ctx context.Context, tx pgx.Tx, stream string, from, to int64, result SealResult,
	differences int64, rows []byte) error {
	now, err := queries.VerificationClock(ctx, tx, dbsqlc.VerificationClockParams{Stream: stream, FromExclusive: from})
	if err != nil {
		return fmt.Errorf("ask for the time: %w", err)
	}
	window := dbsqlc.Verifications{Stream: stream, FromExclusive: from, ToInclusive: to, VerifiedAt: now,
		Result: string(result), Differences: differences}
	err = queries.VerificationSet(ctx, tx, dbsqlc.VerificationSetParams{Stream: stream, FromExclusive: from,
		ToInclusive: to, VerifiedAt: now, Result: string(result), Differences: differences, Digest: sealOf(&window, rows)})
	if err != nil {
		return fmt.Errorf("store the window: %w", err)
	}
	return nil
}

// repaired notes, in the repair's transaction, that rows of a range were written again, for verification and for
// readers. The range is from exclusive, to inclusive; stream is one of the streams of package tables, and
// reason says why. Windows that overlap the range keep their seals until they are compared again as a whole: a new
// digest would also vouch for rows that were not compared.
func (w *writer) repaired(ctx context.Context, tx pgx.Tx, stream string, from, to int64, reason string) error {
	err := queries.VerificationsRepaired(ctx, tx, dbsqlc.VerificationsRepairedParams{Stream: stream,
		FromExclusive: from, ToInclusive: to})
	if err != nil {
		return fmt.Errorf("note what was repaired: %w", err)
	}
	return writing.NoteRewrite(ctx, tx, stream, from, to, reason)
}

// reseal is like repaired, for a range that is stored as its source shows it, because it was compared in this
// transaction, and written again where it differed: the windows that lie in it as a whole are sealed.
func (w *writer) reseal(ctx context.Context, tx pgx.Tx, stream string, from, to int64) error {
	if err := w.repaired(ctx, tx, stream, from, to, writing.Repaired); err != nil {
		return err
	}
	whole, err := w.within(ctx, tx, stream, from, to)
	if err != nil {
		return err
	}
	for _, window := range whole {
		if err := w.sealCompared(ctx, tx, stream, window.FromExclusive, window.ToInclusive, Comparison{}); err != nil {
			return err
		}
	}
	return nil
}
