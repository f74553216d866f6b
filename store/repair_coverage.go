package store

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// RepairCoverage makes checkpoint, floors, coverage, scope, snapshot and the list of partitions say what CompareCoverage
// wants them to. Holes stay: a difference that is one alone changes nothing here. No facts are removed. The leader of the
// updates begins a new term, because it may remember partitions that there are not.
//
// A scope that nothing stored names, a ledger that ends before indexing began, and one that ends before updates that are
// stored, are *ledger.Problem.
func (r *Repairer) RepairCoverage(ctx context.Context, scope ledger.Scope, end *ledger.Offset) error {
	err := r.repair(ctx, []Role{RoleHistory, RoleUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		c, err := r.store.readClaims(ctx, tx)
		if err != nil {
			return err
		}
		a, err := r.store.agree(ctx, tx, c, end)
		if err != nil {
			return err
		}
		partitions, err := r.store.partitionDifferences(ctx, tx)
		if err != nil || len(partitions) == 0 && !slices.ContainsFunc(c.differences(a), curable) {
			return err
		}
		if err := r.repairPartitionList(ctx, tx); err != nil {
			return err
		}
		if err := r.repairClaims(ctx, tx, c, a, scope, end); err != nil {
			return err
		}
		return r.endTerms(ctx, tx, []Role{RoleHistory, RoleUpdates})
	})
	r.partitions.Forget()
	if err != nil {
		return fmt.Errorf("repair the coverage: %w", err)
	}
	return nil
}

// curable differences are those that claims can be made to end: all but holes.
func curable(d ledger.Difference) bool {
	return d.Relation != "coverage" || d.Kind != ledger.Missing
}

func (r *Repairer) repairClaims(ctx context.Context, tx pgx.Tx, c *claims, a *agreement, scope ledger.Scope, end *ledger.Offset) error {
	if !a.started {
		return nil
	}
	votes := c.scopeVotes()
	if len(votes) > 0 && !slices.Contains(votes, scope.Hash()) {
		return &ledger.Problem{
			What: fmt.Sprintf("database %s holds scope %s, but this run is configured for scope %s", r.store.Address(), a.scope, scope.Hash()),
			Do:   "set --parties, --templates, --interfaces, --shape, --blobs, --reassignments and --topology as they were",
		}
	}
	if end != nil {
		if err := r.refuseBeyond(ctx, tx, c, *end); err != nil {
			return err
		}
	}
	if err := r.writeCoverage(ctx, tx, a, scope); err != nil {
		return err
	}
	if c.fill != nil || a.floor < a.base {
		if err := r.store.queries.FillClaim(ctx, tx, a.base); err != nil {
			return fmt.Errorf("record what was filled in: %w", err)
		}
	}
	return r.writeSnapshot(ctx, tx, c, a, scope)
}

// refuseBeyond refuses to lower the watermark to the ledger's end where updates are stored beyond it, as all claims say that
// there are: then it is the ledger that is another one.
func (r *Repairer) refuseBeyond(ctx context.Context, tx pgx.Tx, c *claims, end ledger.Offset) error {
	claimed := int64(math.MaxInt64)
	if at := c.checkpoint(); at != nil {
		claimed = *at
	}
	if n := len(c.coverage); n > 0 {
		claimed = min(claimed, c.coverage[n-1].ToInclusive)
	}
	last, err := r.store.queries.ClaimLastUpdate(ctx, tx, dbsqlc.ClaimLastUpdateParams{After: int64(end), UpTo: claimed})
	if err != nil {
		return fmt.Errorf("look for the last update after offset %d: %w", end, err)
	}
	if last == 0 {
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the ledger ends at offset %d, and database %s holds updates up to offset %d", end, r.store.Address(), last),
		Do: fmt.Sprintf("check --ledger-url: a replica that lags behind ends too early; if the participant was restored from an older backup, "+
			"and that is to stay, run `indexer reset --to-offset %d`, or to an earlier offset where its history is another one already", end),
	}
}

func (r *Repairer) writeCoverage(ctx context.Context, tx pgx.Tx, a *agreement, scope ledger.Scope) error {
	q := r.store.queries
	if err := q.CoverageClear(ctx, tx); err != nil {
		return fmt.Errorf("remove coverage: %w", err)
	}
	for _, c := range a.coverage {
		if err := r.cover(ctx, tx, scope, ledger.Offset(c.from), ledger.Offset(c.to)); err != nil {
			return err
		}
	}
	if err := q.ClaimsDropStrays(ctx, tx); err != nil {
		return fmt.Errorf("remove checkpoints and floors of unknown streams: %w", err)
	}
	if err := q.CheckpointSet(ctx, tx, dbsqlc.CheckpointSetParams{Stream: StreamUpdates, LedgerOffset: a.watermark}); err != nil {
		return fmt.Errorf("set the checkpoint: %w", err)
	}
	if err := r.buildMissingIndexes(ctx, tx); err != nil {
		return err
	}
	err := q.FloorsSet(ctx, tx, dbsqlc.FloorsSetParams{Stream: StreamUpdates, HistoryFloor: a.floor, StateFloor: a.stateFloor})
	if err != nil {
		return fmt.Errorf("set the floors: %w", err)
	}
	if err := q.ScopesClear(ctx, tx); err != nil {
		return fmt.Errorf("forget the scope: %w", err)
	}
	if err := q.ScopeRecord(ctx, tx, dbsqlc.ScopeRecordParams{Scope: scope.Hash(), Definition: scope.Canonical()}); err != nil {
		return fmt.Errorf("record the scope: %w", err)
	}
	return nil
}

func (r *Repairer) writeSnapshot(ctx context.Context, tx pgx.Tx, c *claims, a *agreement, scope ledger.Scope) error {
	q := r.store.queries
	if a.snapshot && len(c.snapshots) == 1 {
		if err := q.SnapshotMove(ctx, tx, a.base); err != nil {
			return fmt.Errorf("put the snapshot at offset %d: %w", a.base, err)
		}
	}
	if err := q.SnapshotsKeep(ctx, tx, dbsqlc.SnapshotsKeepParams{Kept: a.snapshot, SnapshotOffset: a.base}); err != nil {
		return fmt.Errorf("remove other snapshots: %w", err)
	}
	if !a.snapshot {
		return nil
	}
	if err := q.SnapshotRestore(ctx, tx, dbsqlc.SnapshotRestoreParams{SnapshotOffset: a.base, Scope: scope.Hash()}); err != nil {
		return fmt.Errorf("record the snapshot at offset %d: %w", a.base, err)
	}
	return nil
}

// repairPartitionList lists the partitions that there are.
func (r *Repairer) repairPartitionList(ctx context.Context, tx pgx.Tx) error {
	listed, attached, err := r.store.partitionLists(ctx, tx)
	if err != nil {
		return err
	}
	there := map[dbsqlc.PartitionsAttachedRow]bool{}
	for _, p := range attached {
		there[p] = true
	}
	for _, p := range listed {
		if there[dbsqlc.PartitionsAttachedRow(p)] {
			delete(there, dbsqlc.PartitionsAttachedRow(p))
			continue
		}
		err := r.store.queries.PartitionForget(ctx, tx, dbsqlc.PartitionForgetParams{Relation: p.Relation, FromOffset: p.FromOffset})
		if err != nil {
			return fmt.Errorf("forget a partition of %s: %w", p.Relation, err)
		}
	}
	for p := range there {
		if err := r.store.queries.PartitionRecord(ctx, tx, dbsqlc.PartitionRecordParams(p)); err != nil {
			return fmt.Errorf("record a partition of %s: %w", p.Relation, err)
		}
	}
	return nil
}
