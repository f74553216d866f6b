package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// How long pruning lets the leader of the updates wait, and pauses before it tries again.
const (
	// writersWait is how long the leader of the updates may wait at a time.
	writersWait = 5 * time.Second
	prunePause  = 2 * time.Second
)

// Prune removes everything of the updates up to an offset except the contracts that were active there, and makes the
// offset the floor of history and state: the database is as if indexing had begun with a snapshot there. All of it is
// one transaction, so nothing has to be continued or cleaned up after a failure. Readers and the leader of the updates
// wait only for its last part. Then the planner's statistics forget what went.
//
// First it copies what was active into partitions of their own, as of a snapshot. A partition with offsets on both
// sides of the floor is replaced by a copy of the rows that stay. They are copied up to the watermark beforehand, so
// that little is left to be copied in the last part, which drops the old partitions.
//
// Its lease, LeasePruning, keeps others from pruning meanwhile. Where nothing is stored
// up to the offset nothing happens. Errors: what PlanPrune refuses, a *ledger.Problem where other transactions don't
// let go of the tables, ErrNotLeader, or the database's.
func (l *PruningWriter) Prune(ctx context.Context, floor ledger.Offset) error {
	return l.prune(ctx, floor, nil)
}

// PruneExported is Prune of what files hold that end at another offset, to. change is the number of the newest change
// (ledger.rewrites) when that was planned. If something that the files have has changed since, the files may be gone:
// nothing is pruned, and the error is a *ledger.Problem.
func (l *PruningWriter) PruneExported(ctx context.Context, floor, to ledger.Offset, change int64) error {
	return l.prune(ctx, floor,
		func(ctx context.Context, tx pgx.Tx) error { return l.refuseRewritten(ctx, tx, to, change) })
}

func (l *PruningWriter) prune(ctx context.Context, floor ledger.Offset, refuse func(context.Context,
	pgx.Tx) error) error {
	var pruned bool
	err := l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		resets, err := queries.PruneResets(ctx, tx)
		if err != nil {
			return fmt.Errorf("read which reset or change of the scope was the last: %w", err)
		}
		extent, err := bounds.Read(ctx, tx)
		if err != nil {
			return err
		}
		if err := l.store.refusePrune(ctx, &extent, floor); err != nil || floor <= extent.HistoryFloor {
			return err
		}
		if err := l.store.refuseWithoutRecords(ctx, tx, &extent, floor); err != nil {
			return err
		}
		p := pruning{leader: l, tx: tx, floor: int64(floor), from: int64(extent.HistoryFloor),
			copied: int64(extent.Watermark), resets: resets, refuse: refuse}
		pruned = true
		return p.run(ctx)
	})
	if err != nil {
		return fmt.Errorf("prune up to offset %d: %w", floor, session.Refused(err))
	}
	if pruned {
		l.forgetStatistics(ctx)
	}
	return nil
}

// refuseWithoutRecords refuses to prune a network's updates from which records have still to follow.
func (s *Store) refuseWithoutRecords(ctx context.Context, tx pgx.Tx, extent *Extent, floor ledger.Offset) error {
	if !s.OfNetwork() {
		return nil
	}
	derived, err := bounds.ReadDerived(ctx, tx, extent)
	if err != nil || derived.Any && !derived.Outdated && derived.To >= floor {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("records that follow from the updates up to offset %d have to be derived first, and could not be "+
			"after pruning", floor),
		Do: "let the daemon (`indexer run`) derive them, and prune again: the metric derived_offset says how far it is",
	}
}

// forgetStatistics takes the values of what was pruned out of the planner's statistics. What was pruned stays so if
// that fails.
func (l *PruningWriter) forgetStatistics(ctx context.Context) {
	var names []string
	for _, table := range tables.All() {
		if table.Pruned {
			names = append(names, table.Name)
		}
	}
	if err := pg.Analyze(ctx, l.term.Pool, l.store.db.Config.Schemas.Tables, names); err != nil {
		l.store.db.Config.Logger.WarnContext(ctx, "the planner's statistics may have values of what was pruned until the "+
			"next ANALYZE", "error", err.Error())
	}
}

// pruning is a running Prune.
type pruning struct {
	leader   *PruningWriter
	tx       pgx.Tx
	from     int64 // the history floor before
	floor    int64
	carrying carrying
	cuts     []partitions.Cut
	copied   int64 // up to here what stays of partitions is copied
	resets   int64 // number of the last reset or change of the scope when pruning began
	// refuse is the last check of PruneExported; nil: none.
	refuse func(context.Context, pgx.Tx) error
	// lookups are the new places of look-ups whose contracts have events that stay. They are written in the last part,
	// because the leader of the updates, which adds look-ups too, would wait for these rows.
	lookups dbsqlc.PruneMoveLookupsParams
}

func (p *pruning) run(ctx context.Context) error {
	if err := queries.TimeoutsOff(ctx, p.tx); err != nil {
		return fmt.Errorf("switch the limits on time off: %w", err)
	}
	if _, err := p.tx.Exec(ctx, "SET LOCAL work_mem = '256MB'; SET LOCAL maintenance_work_mem = '256MB'"); err != nil {
		return fmt.Errorf("set the memory for sorting: %w", err)
	}
	var err error
	if p.cuts, err = p.findPartitions(ctx, p.tx); err != nil {
		return err
	}
	if err := p.keepFromVacuum(ctx); err != nil {
		return err
	}
	p.carrying = carrying{db: p.leader.store.db, tx: p.tx, from: p.from, floor: p.floor}
	entries, err := p.carrying.run(ctx)
	if err != nil {
		return err
	}
	if err := p.removeRows(ctx); err != nil {
		return err
	}
	unknown, err := p.carrying.moveUnknown(ctx)
	if err != nil {
		return err
	}
	err = queries.PruneSnapshot(ctx, p.tx, dbsqlc.PruneSnapshotParams{Floor: p.floor, Entries: entries + unknown})
	if err != nil {
		return fmt.Errorf("record the snapshot at offset %d: %w", p.floor, err)
	}
	for i := range p.cuts {
		if err := p.cuts[i].Begin(ctx, p.tx, p.copied); err != nil {
			return err
		}
	}
	return patiently(ctx, prunePause, func() error { return p.end(ctx) })
}

// findPartitions returns the partitions that lose rows, without those that it has found before.
func (p *pruning) findPartitions(ctx context.Context, tx pgx.Tx) (found []partitions.Cut, err error) {
	list, err := queries.PartitionList(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read partitions: %w", err)
	}
	for _, table := range tables.All() {
		if !table.Pruned || !table.Partitioned {
			continue
		}
		for _, partition := range list {
			cut := partitions.Cut{Relation: table.Name, Name: partition.Name, Floor: p.floor, To: partition.ToOffset}
			if partition.Relation == table.Name && partition.FromOffset <= p.floor && !slices.Contains(p.cuts, cut) {
				found = append(found, cut)
			}
		}
	}
	return found, nil
}

// keepFromVacuum locks autovacuum out of the partitions that lose rows, so that the last part need not wait for it.
func (p *pruning) keepFromVacuum(ctx context.Context) error {
	if len(p.cuts) == 0 {
		return nil
	}
	names := make([]string, len(p.cuts))
	for i := range p.cuts {
		names[i] = pgx.Identifier{p.cuts[i].Name}.Sanitize()
	}
	if _, err := p.tx.Exec(ctx, "LOCK TABLE "+strings.Join(names, ", ")+" IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		return fmt.Errorf("lock the partitions up to offset %d: %w", p.floor, err)
	}
	return nil
}

// removeRows removes the rows of tables without partitions, which are few. Rows that move are removed at the end.
func (p *pruning) removeRows(ctx context.Context) error {
	for _, table := range tables.All() {
		if !table.Pruned || table.Partitioned || table.Moved {
			continue
		}
		where := table.Delete("s." + table.Place + " <= $1 AND s." + table.Place + " > $2")
		if _, err := p.tx.Exec(ctx, where, p.floor, prunedAfter(&table, p.from)); err != nil {
			return fmt.Errorf("remove rows of %s: %w", table.Name, err)
		}
	}
	return p.findLookups(ctx, p.tx, p.floor, p.copied)
}

// end is the last part. It copies what the leader of the updates has written meanwhile, locks the leader and the
// readers out, copies once more, and removes what is pruned. It is tried again until it gets the locks.
func (p *pruning) end(ctx context.Context) error {
	watermark, _, err := bounds.Watermark(ctx, p.tx)
	if err != nil {
		return err
	}
	if err := p.copyLater(ctx, p.tx, int64(watermark)); err != nil {
		return err
	}
	p.copied = int64(watermark)
	return pgx.BeginFunc(ctx, p.tx, func(tx pgx.Tx) error {
		if err := p.lock(ctx, tx); err != nil {
			return err
		}
		if err := p.refuseReset(ctx, tx); err != nil {
			return err
		}
		if err := p.copyLater(ctx, tx, math.MaxInt64); err != nil {
			return err
		}
		attached, err := p.findPartitions(ctx, tx) // meanwhile, of tables that had no rows there
		if err != nil {
			return err
		}
		for i := range attached {
			if err := attached[i].Begin(ctx, tx, math.MaxInt64); err != nil {
				return err
			}
		}
		for _, cut := range slices.Concat(p.cuts, attached) {
			if err := cut.Finish(ctx, tx); err != nil {
				return err
			}
		}
		if err := p.carrying.attach(ctx, tx); err != nil {
			return err
		}
		return p.moveFloors(ctx, tx)
	})
}

// refuseReset ends pruning if the updates were reset meanwhile, or their scope was changed: no lease excludes these,
// and what they removed may have been copied. It also ends pruning if records began to be derived again, which needs
// the updates.
func (p *pruning) refuseReset(ctx context.Context, tx pgx.Tx) error {
	resets, err := queries.PruneResets(ctx, tx)
	if err != nil {
		return fmt.Errorf("see whether the updates were reset, or their scope was changed: %w", err)
	}
	if resets != p.resets {
		return &ledger.Problem{
			What: fmt.Sprintf("database %s was reset meanwhile, or its scope was changed, so nothing was pruned",
				p.leader.store.Address()), Do: "prune again",
		}
	}
	if p.refuse != nil {
		if err := p.refuse(ctx, tx); err != nil {
			return err
		}
	}
	extent, err := bounds.Read(ctx, tx)
	if err != nil {
		return err
	}
	return p.leader.store.refuseWithoutRecords(ctx, tx, &extent, ledger.Offset(p.floor))
}

// refuseRewritten ends pruning if something changed after the change with a number: then files may not hold what would
// be removed.
func (l *PruningWriter) refuseRewritten(ctx context.Context, tx pgx.Tx, upTo ledger.Offset, change int64) error {
	rewritten, err := queries.PruneRewritten(ctx, tx, dbsqlc.PruneRewrittenParams{Newest: change, UpTo: int64(upTo)})
	if err != nil {
		return fmt.Errorf("see whether something changed after it had been compared with files: %w", err)
	}
	if rewritten {
		return &ledger.Problem{
			What: fmt.Sprintf("something up to offset %d changed in database %s after it had been compared with the files of "+
				"the export, so nothing was pruned",
				upTo, l.store.Address()),
			Do: "export again, which writes again what changed, and prune then",
		}
	}
	return nil
}

// copyLater copies the rows after those that are copied already, up to an offset.
func (p *pruning) copyLater(ctx context.Context, tx pgx.Tx, upTo int64) error {
	if upTo <= p.copied {
		return nil
	}
	for i := range p.cuts {
		if err := p.cuts[i].Copy(ctx, tx, p.copied, upTo); err != nil {
			return err
		}
	}
	return p.findLookups(ctx, tx, p.copied, upTo)
}

// lock waits for the leader of the updates, and then for the readers. It waits for every transaction that has read or
// locked the floors or the watermark. So a transaction that reads in one snapshot, and begins with these, sees
// everything either as it was before pruning or as it is afterwards (see session.Database.ReadOnly).
func (p *pruning) lock(ctx context.Context, tx pgx.Tx) error {
	if err := pg.WaitAtMost(ctx, tx, writersWait); err != nil {
		return err
	}
	if err := p.leader.term.Exclude(ctx, tx, LeaseUpdates); err != nil {
		return err
	}
	names := []string{"floors", "checkpoints"}
	for _, table := range tables.All() {
		if table.Pruned && table.Partitioned {
			names = append(names, table.Name)
		}
	}
	return lockOut(ctx, tx, names)
}

// moveFloors records that nothing up to the floor is stored any more.
func (p *pruning) moveFloors(ctx context.Context, tx pgx.Tx) error {
	for _, step := range []func(context.Context, dbsqlc.DBTX,
		int64) error{p.moveLookups, queries.PruneCoverage, queries.PruneSeals, queries.PruneFloors} {
		if err := step(ctx, tx, p.floor); err != nil {
			return fmt.Errorf("move the floors, and look-ups: %w", err)
		}
	}
	if err := writing.ForgetScopes(ctx, tx); err != nil { // of an earlier scope nothing may be left
		return err
	}
	return writing.NoteRewrite(ctx, tx, tables.StreamUpdates, p.from, p.floor, writing.Pruned)
}

// lookupsAfter finds, for each contract that has a look-up up to a floor, $3, or will have no stored creation after
// pruning up to there, its first event after $1 up to $2.
const lookupsAfter = `(
SELECT DISTINCT ON (k.contract_id COLLATE "C") k.contract_id, k.ledger_offset, k.node_id
FROM lookup_events($2) k
WHERE k.ledger_offset > $1
  AND NOT EXISTS (
      SELECT FROM created c
      WHERE c.contract_id = k.contract_id AND c.ledger_offset + 0 <= $2 AND c.ledger_offset > $3)
  AND NOT EXISTS (SELECT FROM @created c WHERE c.contract_id = k.contract_id)
  AND NOT EXISTS (SELECT FROM lookups l WHERE l.contract_id = k.contract_id)
ORDER BY k.contract_id COLLATE "C", k.ledger_offset, k.node_id
)
UNION ALL
(
SELECT DISTINCT ON (l.ledger_offset, l.node_id) l.contract_id, k.ledger_offset, k.node_id
FROM lookups l
JOIN lookup_events($2) k ON k.contract_id = l.contract_id AND k.ledger_offset > $1
WHERE l.ledger_offset <= $3
ORDER BY l.ledger_offset, l.node_id, k.ledger_offset, k.node_id
)`

// findLookups finds new places for look-ups. A look-up moves with its answer, which the participant may not give again.
func (p *pruning) findLookups(ctx context.Context, tx pgx.Tx, after, upTo int64) (err error) {
	defer pg.Wrap(&err, "look for contracts whose look-up or creation goes")
	var contract string
	var offset int64
	var node int32
	into := []any{&contract, &offset, &node}
	return pg.Each(ctx, tx, p.carrying.named(lookupsAfter), []any{after, upTo, p.floor}, into, func() error {
		p.lookups.ContractIds = append(p.lookups.ContractIds, contract)
		p.lookups.LedgerOffsets = append(p.lookups.LedgerOffsets, offset)
		p.lookups.NodeIds = append(p.lookups.NodeIds, node)
		return nil
	})
}

// moveLookups moves look-ups to the places that findLookups has found, and removes the others up to the floor.
func (p *pruning) moveLookups(ctx context.Context, db dbsqlc.DBTX, floor int64) error {
	p.lookups.Floor = floor
	if err := queries.PruneMoveLookups(ctx, db, p.lookups); err != nil {
		return err
	}
	return queries.PruneForgetLookups(ctx, db, floor)
}
