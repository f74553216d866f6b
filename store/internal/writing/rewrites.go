package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

// The reasons for which rows that readers may have seen were changed, as in ledger.rewrites.
const (
	Repaired  = "repaired"
	Reset     = "reset"
	ReadAgain = "read again" // or derived again
	Pruned    = "pruned"
	Redacted  = "redacted"

	ScopeChanged = "scope changed"
)

// NoteRewrite notes for readers that this transaction changed something of a stream after one place up to another.
// Other transactions that call it wait until this one ends, so it comes last. stream is one of the
// streams of package tables.
func NoteRewrite(ctx context.Context, tx pgx.Tx, stream string, from, to int64, reason string) error {
	if from >= to {
		return nil
	}
	if err := queries.RewritesLock(ctx, tx); err != nil {
		return fmt.Errorf("wait for another process that notes a rewrite: %w", err)
	}
	err := queries.RewriteNote(ctx, tx, dbsqlc.RewriteNoteParams{Stream: stream, FromExclusive: from, ToInclusive: to,
		Reason: reason})
	if err != nil {
		return fmt.Errorf("note for readers what changed of %s after %d up to %d: %w", stream, from, to, err)
	}
	return nil
}

// Unseal forgets the windows of a stream that reach beyond a place: what is stored there will be something else.
func Unseal(ctx context.Context, db dbsqlc.DBTX, stream string, after int64) (err error) {
	defer pg.Wrap(&err, "forget what was sealed of %s after %d", stream, after)
	return queries.VerificationsRemove(ctx, db, dbsqlc.VerificationsRemoveParams{Stream: stream, After: after})
}
