package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// CheckChange is CheckIdentity for a run that may change the scope: another scope is refused only if ChangeScope would refuse it.
func (s *Store) CheckChange(ctx context.Context, participantID string, scope ledger.Scope) error {
	in, ok, err := s.Scope(ctx)
	if err != nil {
		return err
	}
	if !ok || in.Hash() == scope.Hash() {
		return s.CheckIdentity(ctx, participantID, scope)
	}
	if err := s.CheckIdentity(ctx, participantID, in); err != nil {
		return err
	}
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.refuseChange(ctx, tx, scope) })
}

// ChangeScope puts a scope in force that shows more than the one before: from the watermark on updates are written in it. What was
// stored before stays as it is, covered in the scope in which it was read, until package audit's Refiller has made it complete. What
// was written ahead of the watermark is removed, and is read again. Answers to look-ups are forgotten, because they depend on the
// parties.
//
// changed is false if the scope is in force already, or nothing was started. It is called before anything is written in a term.
// A scope that does not show all that is covered, and a database whose past can't be completed, are *ledger.Problem.
func (l *UpdatesWriter) ChangeScope(ctx context.Context, scope ledger.Scope) (changed bool, err error) {
	before, ok, err := l.store.Scope(ctx)
	if err != nil || !ok || before.Hash() == scope.Hash() {
		return false, err
	}
	q := l.store.db.Queries
	err = l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.store.refuseChange(ctx, tx, scope); err != nil {
			return err
		}
		watermark, _, err := held.Watermark(ctx, l.store.db, tx)
		if err != nil {
			return err
		}
		if _, err := l.removeAfter(ctx, tx, watermark); err != nil {
			return err
		}
		if err := q.LookupsAgain(ctx, tx); err != nil {
			return fmt.Errorf("forget the answers to look-ups: %w", err)
		}
		err = q.ScopeRecord(ctx, tx, dbsqlc.ScopeRecordParams{Scope: scope.Hash(), Definition: scope.Canonical()})
		if err != nil {
			return fmt.Errorf("record the scope: %w", err)
		}
		return writing.PutInForce(ctx, tx, scope.Hash())
	})
	if err != nil {
		return false, fmt.Errorf("change the scope: %w", err)
	}
	return true, nil
}

// refuseChange refuses a scope that does not show all that is covered, and a database whose past can't be completed.
func (s *Store) refuseChange(ctx context.Context, tx pgx.Tx, scope ledger.Scope) error {
	covered, err := s.db.Queries.ScopesCovered(ctx, tx, StreamUpdates)
	if err != nil {
		return fmt.Errorf("read which scopes are covered: %w", err)
	}
	for _, row := range covered {
		var stored ledger.Scope
		if err := s.decodeScope(row.Scope, []byte(row.Definition), &stored); err != nil {
			return err
		}
		if lacks := scope.Lacks(stored); len(lacks) > 0 {
			return &ledger.Problem{
				What: fmt.Sprintf("the scope can't be changed to %s: in %s it lacks something of %s, which database %s holds",
					scope.Canonical(), strings.Join(lacks, ", "), stored.Canonical(), s.Address()),
				Do: "add to --parties, --templates and --interfaces only, and leave the other settings as they were; what is stored of what you " +
					"would take away could not be kept up to date: index the smaller scope into a new database or pair of schemas (--tables-schema, --views-schema)",
			}
		}
	}
	extent, err := held.Read(ctx, s.db, tx)
	if err != nil || !extent.Started || len(covered) == 0 && extent.HistoryFloor == extent.Watermark && extent.StateFloor == nil {
		return err
	}
	carried, err := held.CarriedSnapshot(ctx, s.db, tx)
	if err != nil {
		return err
	}
	waiting, err := s.lowerSnapshot(ctx, tx)
	if err != nil {
		return err
	}
	if carried != nil || waiting != nil || extent.HistoryFloor > 0 || extent.StateFloor == nil || *extent.StateFloor > 0 {
		return &ledger.Problem{
			What: fmt.Sprintf("the scope can't be changed: database %s does not hold the ledger from its beginning on (its events begin after offset %d), "+
				"so contracts of what is added that were active there would be missing for ever", s.Address(), extent.HistoryFloor),
			Do: "run `backfill history` in the scope as it was until history reaches the beginning of the ledger, and change the scope then; " +
				"where the participant is pruned, or was pruned here, index the new scope into a new database or pair of schemas " +
				"(--tables-schema, --views-schema), seeded with `backfill`",
		}
	}
	return nil
}

// ScopeAt returns the scope in which what follows an offset is covered, and the offset up to which that holds. inForce is true for the
// scope in force, and where nothing is covered: then scope says nothing.
func (s *Store) ScopeAt(ctx context.Context, after ledger.Offset) (scope ledger.Scope, inForce bool, upTo ledger.Offset, err error) {
	row, err := s.db.Queries.ScopeAt(ctx, s.db.Pool, dbsqlc.ScopeAtParams{Stream: tables.StreamUpdates, After: int64(after)})
	if err != nil {
		return scope, false, 0, s.db.Unusable(fmt.Errorf("read in which scope offsets after %d are covered: %w", after, err))
	}
	if row.InForce {
		return scope, true, ledger.Offset(row.UpTo), nil
	}
	return scope, false, ledger.Offset(row.UpTo), s.decodeScope(row.Scope, []byte(row.Definition), &scope)
}
