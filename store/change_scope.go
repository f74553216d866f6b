package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// CheckChange is CheckIdentity for a run that may change the scope: another scope is refused only if ChangeScope would
// refuse it.
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

// ChangeScope puts another scope in force: from the watermark on updates are written in it. What was stored before
// stays as it is, covered in the scope in which it was read; What only the scope before showed ends at the watermark, and a contract that it ended before and
// shows again is active again. What was written ahead of the watermark is removed, and is read again. Answers to
// look-ups are asked for again, because they depend on the parties, but contracts that were found stay: they may not be found again.
//
// changed is false if the scope is in force already, or nothing was started. It is called before anything is written in
// a term. A scope of another form, and one that shows more than what is stored, are *ledger.Problem.
func (l *UpdatesWriter) ChangeScope(ctx context.Context, scope ledger.Scope) (changed bool, err error) {
	before, ok, err := l.store.Scope(ctx)
	if err != nil || !ok || before.Hash() == scope.Hash() {
		return false, err
	}
	err = l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.store.refuseChange(ctx, tx, scope); err != nil {
			return err
		}
		watermark, _, err := held.Watermark(ctx, l.store.db, tx)
		if err != nil {
			return err
		}
		end, err := l.store.storedTo(ctx, tx, watermark)
		if err != nil {
			return err
		}
		if err := l.removeAfter(ctx, tx, watermark, &ResetReport{}); err != nil {
			return err
		}
		if err := l.store.db.Queries.LookupsAgain(ctx, tx); err != nil {
			return fmt.Errorf("forget the answers to look-ups: %w", err)
		}
		err = l.store.db.Queries.ScopeRecord(ctx, tx, dbsqlc.ScopeRecordParams{Scope: scope.Hash(),
			Definition: scope.Canonical()})
		if err != nil {
			return fmt.Errorf("record the scope: %w", err)
		}
		if err := writing.PutInForce(ctx, tx, scope.Hash()); err != nil {
			return err
		}
		if err := l.settleScope(ctx, tx, int64(watermark)); err != nil {
			return err
		}
		// Readers never saw what was stored ahead, but replicated copies have it.
		if err := writing.NoteRewrite(ctx, tx, findings.SealedUpdates, int64(watermark), int64(end),
			writing.Reset); err != nil {
			return err
		}
		return writing.NoteRewrite(ctx, tx, findings.SealedUpdates, int64(watermark)-1, int64(watermark),
			writing.ScopeChanged)
	})
	if err != nil {
		return false, fmt.Errorf("change the scope: %w", err)
	}
	return true, nil
}

// refuseChange refuses a scope of another form than what is covered, and one that shows more.
func (s *Store) refuseChange(ctx context.Context, tx pgx.Tx, scope ledger.Scope) error {
	covered, err := s.db.Queries.ScopesCovered(ctx, tx, StreamUpdates)
	if err != nil {
		return fmt.Errorf("read which scopes are covered: %w", err)
	}
	for _, row := range covered {
		stored, err := s.decodeScope(row.Scope, []byte(row.Definition))
		if err != nil {
			return err
		}
		if other := scope.OtherForm(stored); len(other) > 0 {
			asked, holds := scope.Differences(stored)
			return &ledger.Problem{
				What: fmt.Sprintf("the scope can't be changed to %s: in %s it has another form than what database %s holds, "+
					"which is %s",
					asked, strings.Join(other, ", "), s.Address(), holds),
				Do: "leave these settings as they were: parties, templates and interfaces can be added and taken away, and " +
					"nothing else; for another form index into a new database or pair of schemas (--tables-schema, --views-schema)",
			}
		}
		if lacks := stored.Lacks(scope); len(lacks) > 0 {
			return &ledger.Problem{
				What: fmt.Sprintf("the scope can't be changed: database %s lacks what the new scope adds (%s), also what is active "+
					"of it", s.Address(), strings.Join(lacks, ", ")),
				Do: "build a database beside this one in the new scope, with `backfill` and `indexer run`",
			}
		}
	}
	extent, err := held.Read(ctx, s.db, tx)
	if err != nil || !extent.Started {
		return err
	}
	return s.refuseSnapshotOnly(ctx, tx, &extent, extent.Watermark, scope)
}

// ScopeAt returns the scope in which what follows an offset is covered, and the offset up to which that holds. inForce
// is true for the scope in force, and where nothing is covered: then scope says nothing.
func (s *Store) ScopeAt(ctx context.Context,
	after ledger.Offset) (scope ledger.Scope, inForce bool, upTo ledger.Offset, err error) {
	row, err := s.db.Queries.ScopeAt(ctx, s.db.Pool, dbsqlc.ScopeAtParams{Stream: tables.StreamUpdates,
		After: int64(after)})
	if err != nil {
		return scope, false, 0, s.db.Unusable(fmt.Errorf("read in which scope offsets after %d are covered: %w", after, err))
	}
	if row.InForce {
		return scope, true, ledger.Offset(row.UpTo), nil
	}
	scope, err = s.decodeScope(row.Scope, []byte(row.Definition))
	return scope, false, ledger.Offset(row.UpTo), err
}
