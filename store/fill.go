package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// Filling in writes history below where indexing began, in ranges of any order, by the leader of RoleBackfill, while
// the leader of RoleUpdates continues above. What is filled in is never projected into active_contracts: what was
// active where indexing began is there already.

// Bounds is Store.Bounds.
func (l *BackfillWriter) Bounds(ctx context.Context) (bounds ledger.Bounds, started bool, err error) {
	return l.store.Bounds(ctx)
}

// Unfilled are the parts of a range that are not stored, in order.
func (l *BackfillWriter) Unfilled(ctx context.Context, r ledger.Range) ([]ledger.Range, error) {
	stored, err := held.Covered(ctx, l.store.db, l.term.Pool, int64(r.To))
	if err != nil {
		return nil, err
	}
	return stored.Missing(r), nil
}

// FilledBelow are the ranges below the history floor that are stored, in order: history that was filled in and does not
// reach up to it.
func (s *Store) FilledBelow(ctx context.Context) (below []ledger.Range, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := held.Read(ctx, s.db, tx)
		if err != nil || !extent.Started {
			return err
		}
		below, err = held.Covered(ctx, s.db, tx, int64(extent.HistoryFloor))
		return err
	})
	return below, err
}

// Fill stores consecutive pages below the history floor: facts and coverage, in one transaction. It removes the carried
// rows of that range, because the events themselves take their place. It lowers the history floor as far as everything
// is stored up to it. The order of ranges does not matter, and they may be filled in concurrently.
//
// Errors: ErrNotLeader, ErrCovered, a *ledger.Problem where the pages lack a contract that a snapshot brought, or the
// scope was changed, or the database's. After any error the outcome is unknown: ask Unfilled again.
func (l *BackfillWriter) Fill(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	if len(pages) == 0 {
		return nil
	}
	b, err := l.prepare(ctx, pages)
	if err != nil || b.from == b.to {
		return err
	}
	if err := writing.EnsurePartitions(ctx, l.term.Partitions, &b.facts); err != nil {
		return session.Refused(err)
	}
	err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.cover(ctx, tx, scope, b.from, b.to); err != nil {
			return err
		}
		replaced, err := l.forgetCarried(ctx, tx, b)
		if err != nil {
			return err
		}
		if err := writing.CopyFacts(ctx, l.store.db, tx, &b.facts); err != nil {
			return err
		}
		if err := l.keepCheckpoints(ctx, tx, b.wanted, b.pages); err != nil {
			return err
		}
		if err := l.forgetLookups(ctx, tx, &b.facts); err != nil {
			return err
		}
		if err := l.lowerFloor(ctx, tx, scope, int64(b.from), int64(b.to)); err != nil {
			return err
		}
		if replaced { // after the floors were locked, so that nobody seals the snapshot meanwhile
			if err := writing.Unseal(ctx, tx, findings.SealedSnapshot, 0); err != nil {
				return err
			}
		}
		if err := (&UpdatesWriter{Leader: l.Leader}).deriveFilled(ctx, tx); err != nil {
			return err
		}
		return writing.NoteRewrite(ctx, tx, findings.SealedUpdates, int64(b.from), int64(b.to), writing.FilledIn)
	})
	if err != nil {
		return fmt.Errorf("fill in offsets after %d up to %d: %w", b.from, b.to, session.Refused(err))
	}
	l.wrote(b)
	return nil
}

// forgetCarried removes the carried rows of a batch's range: its facts take their place. It reports whether there were
// any.
func (l *BackfillWriter) forgetCarried(ctx context.Context, tx pgx.Tx, b *batch) (replaced bool, err error) {
	q := l.store.db.Queries
	gone, err := q.CarriedCreatedForget(ctx, tx, dbsqlc.CarriedCreatedForgetParams{FromExclusive: int64(b.from),
		ToInclusive: int64(b.to)})
	if err != nil {
		return false, fmt.Errorf("remove what a snapshot brought: %w", err)
	}
	created := map[rows.EventPlace]bool{}
	if len(gone) > 0 {
		for i := range b.facts.Created {
			created[rows.EventPlace{Offset: b.facts.Created[i].LedgerOffset, NodeID: b.facts.Created[i].NodeID}] = true
		}
	}
	for _, c := range gone {
		if c.Active && !created[rows.EventPlace{Offset: c.LedgerOffset, NodeID: c.NodeID}] {
			return false, &ledger.Problem{
				What: fmt.Sprintf("the snapshot that is carried has contract %s, created at offset %d (node %d), and the "+
					"participant's updates don't show that",
					c.ContractID, c.LedgerOffset, c.NodeID),
				Do: fmt.Sprintf("the participant contradicts itself: nothing of this range was stored; report it to its operator, "+
					"and fill in from offset %d on with --from meanwhile", c.LedgerOffset),
			}
		}
	}
	removed, err := q.CarriedRestForget(ctx, tx, dbsqlc.CarriedRestForgetParams{FromExclusive: int64(b.from),
		ToInclusive: int64(b.to)})
	if err != nil {
		return false, fmt.Errorf("remove what a snapshot brought: %w", err)
	}
	return removed > 0 || len(gone) > 0, nil
}

// forgetLookups forgets the look-ups of contracts whose creation has come.
func (l *BackfillWriter) forgetLookups(ctx context.Context, tx pgx.Tx, f *rows.Facts) error {
	contracts := make([]string, len(f.Created))
	for i := range f.Created {
		contracts[i] = f.Created[i].ContractID
	}
	return writing.ForgetLookups(ctx, tx, contracts)
}

// mergeTries is how often the coverage row above is looked for again: the leader of the updates replaces it with each
// of its transactions.
const mergeTries = 1000

// lowerFloor makes one coverage row of what was just covered and its neighbours, and lowers the history floor to where
// it begins, if it reaches up to there. It comes last in its transaction: those who write other ranges, and the leader
// of the updates, may wait for it.
func (l *BackfillWriter) lowerFloor(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to int64) error {
	q := l.store.db.Queries
	began, err := q.FillTurn(ctx, tx)
	if err != nil {
		return fmt.Errorf("wait for another process that fills in history: %w", err)
	}
	if to > began {
		return fmt.Errorf("offset %d, where indexing began, lies below", began)
	}
	parts, err := q.CoverageTake(ctx, tx, dbsqlc.CoverageTakeParams{Stream: StreamUpdates, Scope: scope.Hash(), At: from})
	if err != nil {
		return fmt.Errorf("merge coverage: %w", err)
	}
	for _, part := range parts {
		from = min(from, part)
	}
	if err := l.coverDown(ctx, tx, scope, from, to, to == began); err != nil {
		return fmt.Errorf("merge coverage: %w", err)
	}
	if err := q.FloorLower(ctx, tx, StreamUpdates); err != nil {
		return fmt.Errorf("lower the history floor: %w", err)
	}
	return l.refuseChanged(ctx, tx, scope)
}

// refuseChanged is the end where the scope was changed since the scope to fill in was chosen, and that lacks something
// now. It comes after the floors were written, for which it waits while the scope is changed.
func (l *BackfillWriter) refuseChanged(ctx context.Context, tx pgx.Tx, scope ledger.Scope) error {
	now, ok, err := l.store.scopeInForce(ctx, tx)
	if err != nil || !ok || len(scope.Lacks(now)) == 0 {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("history was being filled in in scope %s into database %s, and the scope was changed meanwhile",
			scope.Canonical(), l.store.Address()),
		Do: "nothing of this range was stored: run `backfill history` with the flags of the scope that is in force now",
	}
}

// coverDown claims a range by extending the coverage row that begins where the range ends, if there is one. The leader
// of the updates may be about to replace that row: then coverDown waits for it, and looks for the row again. first says
// that the row may also be that leader's first one, which is not visible before it is committed.
func (l *BackfillWriter) coverDown(ctx context.Context, tx pgx.Tx, scope ledger.Scope, from, to int64,
	first bool) error {
	q := l.store.db.Queries
	for range mergeTries {
		lowered, err := q.CoverageLower(ctx, tx, dbsqlc.CoverageLowerParams{Stream: StreamUpdates, Scope: scope.Hash(),
			FromOffset: to, ToOffset: from})
		if err != nil || lowered > 0 {
			return err
		}
		begins, err := q.CoverageBegins(ctx, tx, dbsqlc.CoverageBeginsParams{Stream: StreamUpdates, Scope: scope.Hash(),
			At: to})
		if err != nil {
			return err
		}
		if !begins && !first {
			return l.cover(ctx, tx, scope, ledger.Offset(from), ledger.Offset(to))
		}
		if !begins {
			first = false
			if err := q.CheckpointHold(ctx, tx, StreamUpdates); err != nil {
				return fmt.Errorf("wait for the first coverage above: %w", err)
			}
		}
	}
	return fmt.Errorf("the row from offset %d on changes all the time", to)
}
