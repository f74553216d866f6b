package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// RefillSnapshot makes the carried rows of the entries of a page, which begins after a number of entries of the carried
// snapshot, those of the page, with what follows from them: where these contracts are active. The last page says in
// which scope the snapshot was read. It comes after all updates above the snapshot are complete for the scope in force,
// so that what ended a contract is known. A page may come again; a run that ended begins with the first one.
//
// Each page is one transaction, in which the writer of the updates waits. Errors are as those of Refill.
func (r *Refiller) RefillSnapshot(ctx context.Context, scope ledger.Scope, at ledger.Offset, before int64,
	page ledger.SnapshotPage) error {
	p := carriedPage{progress: ledger.SnapshotProgress{At: at, Entries: before},
		entries: r.term.Redacted.Entries(page.Entries)}
	if err := r.refillSnapshot(ctx, scope, &p, page.Last); err != nil {
		return fmt.Errorf("read entries %d to %d of the snapshot at offset %d again, in the scope in force: %w", before+1,
			p.end(), at, session.Refused(err))
	}
	return nil
}

func (r *Refiller) refillSnapshot(ctx context.Context, scope ledger.Scope, page *carriedPage, last bool) error {
	carried, wanted, err := page.rows()
	if err != nil {
		return err
	}
	if err := r.term.Resolve(ctx, wanted); err != nil {
		return err
	}
	at := page.progress.At
	return r.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.term.Exclude(ctx, tx, session.RoleUpdates); err != nil {
			return err
		}
		earlier, err := r.lastEarlier(ctx, tx)
		if err != nil {
			return err
		}
		if earlier == nil || !earlier.Snapshot || earlier.To != at || earlier.Scope.Hash() != scope.Hash() {
			return fmt.Errorf("the carried snapshot is not what comes next to be read in scope %s: try again", scope.Canonical())
		}
		if err := r.stored.settle(ctx, tx, page, carried); err != nil {
			return err
		}
		before, err := r.carriedEnds(ctx, tx, carried.Active)
		if err != nil {
			return err
		}
		if err := r.rewriteCarried(ctx, tx, page, carried); err != nil {
			return err
		}
		if err := r.projectCarried(ctx, tx, carried.Active, before); err != nil {
			return err
		}
		if last {
			if err := r.endSnapshot(ctx, tx, scope, page); err != nil {
				return err
			}
		}
		if err := writing.Unseal(ctx, tx, findings.SealedSnapshot, 0); err != nil {
			return err
		}
		return writing.NoteRewrite(ctx, tx, findings.SealedSnapshot, 0, int64(at), writing.FilledIn)
	})
}

// carriedEnds returns where carried contracts end, as far as that is stored; 0: they are active.
func (r *Refiller) carriedEnds(ctx context.Context, tx pgx.Tx, list []rows.ActiveContract) ([]int64, error) {
	q := r.stored.db.Queries
	if err := q.DerivePlainly(ctx, tx); err != nil {
		return nil, fmt.Errorf("have contracts looked up by index: %w", err)
	}
	var asked dbsqlc.CarriedEndsParams
	for i := range list {
		asked.ContractIds, asked.SynchronizerRefs = append(asked.ContractIds, list[i].ContractID),
			append(asked.SynchronizerRefs, *list[i].SynchronizerRef)
	}
	ends, err := q.CarriedEnds(ctx, tx, asked)
	if err != nil {
		return nil, fmt.Errorf("look for what ended %d carried contracts: %w", len(list), err)
	}
	return ends, nil
}

// projectCarried writes again where carried contracts are, or were, active. before has the offsets at which they ended
// so far: a contract whose views had left the scope may be back with the views that it has now.
func (r *Refiller) projectCarried(ctx context.Context, tx pgx.Tx, list []rows.ActiveContract, before []int64) error {
	ends, err := r.carriedEnds(ctx, tx, list)
	if err != nil {
		return err
	}
	var places dbsqlc.ActiveContractsRemoveParams
	var open []rows.ActiveContract
	var closed []rows.Lifetime
	var closedAt []int64
	for i, ended := range ends {
		a := &list[i]
		places.ActivatedOffsets, places.ActivatedNodeIds = append(places.ActivatedOffsets, a.ActivatedOffset),
			append(places.ActivatedNodeIds, a.ActivatedNodeID)
		if ended == 0 {
			open = append(open, *a)
		} else {
			closed, closedAt = append(closed, active.Ended(a, ended)), append(closedAt, ended)
		}
	}
	if err := r.term.Partitions.Ensure(ctx, "lifetimes", slices.Values(closedAt)); err != nil {
		return err
	}
	gone := dbsqlc.LifetimesRemoveParams{ActivatedOffsets: places.ActivatedOffsets,
		ActivatedNodeIds: places.ActivatedNodeIds, DeactivatedOffsets: before}
	return r.reproject(ctx, tx, places, gone, open, closed)
}

func (r *Refiller) endSnapshot(ctx context.Context, tx pgx.Tx, scope ledger.Scope, page *carriedPage) error {
	q := r.stored.db.Queries
	if err := q.ScopeRecord(ctx, tx, dbsqlc.ScopeRecordParams{Scope: scope.Hash(), Definition: scope.Canonical()}); err != nil {
		return fmt.Errorf("record the scope: %w", err)
	}
	err := q.CarriedUnknownForgetFrom(ctx, tx, dbsqlc.CarriedUnknownForgetFromParams{At: int64(page.progress.At), FromOrdinal: page.end()})
	if err != nil {
		return fmt.Errorf("remove entries of unknown kinds behind the end of the snapshot: %w", err)
	}
	err = q.SnapshotReadAgain(ctx, tx, dbsqlc.SnapshotReadAgainParams{SnapshotOffset: int64(page.progress.At), Scope: scope.Hash(), Entries: page.end()})
	if err != nil {
		return fmt.Errorf("record in which scope the snapshot was read: %w", err)
	}
	if err := writing.ForgetCarriedLookups(ctx, tx); err != nil {
		return err
	}
	return writing.ForgetScopes(ctx, tx)
}
