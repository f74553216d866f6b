package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// PruneBefore says what is pruned: the updates before an offset, before a time, or of an age. One of them is set.
type PruneBefore struct {
	Offset *ledger.Offset
	Time   time.Time // updates with an earlier record time
	// Age counts back from the record time of the last update that is shown, or from the database's clock if that is
	// earlier. So a clock that is ahead does not prune too much, and a ledger without new updates loses nothing more.
	Age time.Duration
}

// PrunePlan is what pruning removes.
type PrunePlan struct {
	From  ledger.Offset `json:"from"`           // the history floor now. Everything after it up to Floor is removed
	Floor ledger.Offset `json:"floor"`          // the floors afterwards; not above From: there is nothing to prune
	Until time.Time     `json:"until,omitzero"` // record time of the last update that is removed; zero: it has none

	Tables []PrunedTable `json:"tables"` // those that lose rows
	// Active is how many contracts stay, with their creation, because they were active at Floor. One on two synchronizers
	// counts twice.
	Active int64 `json:"active_contracts"`
	// Copied is the number of rows that have to be copied because others in their partitions are removed.
	Copied int64 `json:"rows_copied"`
}

// PrunedTable is what a table loses. Its JSON form, and that of PrunePlan, are for scripts.
type PrunedTable struct {
	Relation   string `json:"relation"`
	Partitions int    `json:"partitions"` // that are dropped, or replaced by a smaller one
	Rows       int64  `json:"rows"`       // that are removed, about
	// on the disk, with indexes, about; of a table without partitions 0, because it keeps them for other rows
	Bytes int64 `json:"bytes"`
}

// Empty reports whether there is nothing to prune.
func (p *PrunePlan) Empty() bool { return p.Floor <= p.From }

// Worthwhile reports whether at least as many rows go as have to be copied.
func (p *PrunePlan) Worthwhile() bool { return !p.Empty() && p.Rows() >= p.Copied }

// Rows returns about how many rows are removed.
func (p *PrunePlan) Rows() (rows int64) {
	for _, table := range p.Tables {
		rows += table.Rows
	}
	return rows
}

// Bytes returns about how much disk space is freed.
func (p *PrunePlan) Bytes() (bytes int64) {
	for _, table := range p.Tables {
		bytes += table.Bytes
	}
	return bytes
}

// PlanPrune says what pruning would remove, without changing anything. If the database can't be pruned there, the error
// is a *ledger.Problem.
func (s *Store) PlanPrune(ctx context.Context, before PruneBefore) (plan PrunePlan, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := bounds.Read(ctx, tx)
		if err != nil {
			return err
		}
		if plan.Floor, err = s.pruneFloor(ctx, tx, &extent, before); err != nil {
			return err
		}
		plan.From = extent.HistoryFloor
		if err := s.refusePrune(ctx, &extent, plan.Floor); err != nil {
			return err
		}
		if plan.Empty() {
			return nil
		}
		return s.planPrune(ctx, tx, &plan)
	})
	return plan, err
}

// pruneFloor returns the last offset that is removed.
func (s *Store) pruneFloor(ctx context.Context, tx pgx.Tx, extent *Extent,
	before PruneBefore) (floor ledger.Offset, err error) {
	switch {
	case before.Offset != nil:
		return *before.Offset - 1, nil
	case !extent.Started:
		return 0, nil
	}
	newest, err := s.recordTime(ctx, tx, extent.Watermark)
	if err != nil {
		return 0, err
	}
	var now time.Time
	if err := tx.QueryRow(ctx, "SELECT now()").Scan(&now); err != nil {
		return 0, fmt.Errorf("read the database's clock: %w", err)
	}
	until := before.Time
	if until.IsZero() {
		if newest.IsZero() {
			return extent.HistoryFloor, nil
		}
		if now.Before(newest) {
			newest = now
		}
		until = newest.Add(-before.Age)
	} else if until.After(now) && until.After(newest) { // offset_at answers nothing for the future
		until = now
		if newest.After(now) {
			until = newest.Add(time.Microsecond)
		}
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT offset_at($1::timestamptz - interval '1 microsecond')", until).Scan(&floor)
	})
	if pg.HasCode(err, pg.InvalidParameterValue) { // the first update that is stored is later
		return extent.HistoryFloor, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for the last update before %s: %w", until.UTC().Format(time.RFC3339), err)
	}
	return floor, nil
}

func (s *Store) refusePrune(ctx context.Context, extent *Extent, floor ledger.Offset) error {
	address := s.Address()
	switch {
	case !extent.Started:
		return s.NothingIndexed(ctx, "prune")
	case floor >= extent.Watermark && floor > extent.HistoryFloor:
		return &ledger.Problem{
			What: fmt.Sprintf("database %s holds the ledger up to offset %d: nothing would be left after pruning everything "+
				"up to offset %d", address, extent.Watermark, floor),
			Do: fmt.Sprintf("give --before an offset of at most %d, or an earlier time", extent.Watermark),
		}
	case extent.StateFloor == nil:
		return &ledger.Problem{
			What: fmt.Sprintf("indexing into database %s began at offset %d without a snapshot: it is not known what is "+
				"active, and so what has to stay", address, extent.HistoryFloor),
			Do: fmt.Sprintf("index into a new database that begins with a snapshot (`%s`)", s.Backfill()),
		}
	}
	return nil
}

// planPrune counts rows. For partitions that are dropped it takes the planner's estimate, if there is one.
func (s *Store) planPrune(ctx context.Context, tx pgx.Tx, plan *PrunePlan) error {
	var err error
	if plan.Until, err = s.recordTime(ctx, tx, plan.Floor); err != nil {
		return err
	}
	if plan.Active, err = queries.PruneActive(ctx, tx, int64(plan.Floor)); err != nil {
		return fmt.Errorf("count what was active at offset %d: %w", plan.Floor, err)
	}
	partitions, err := queries.PrunePartitions(ctx, tx, int64(plan.Floor))
	if err != nil {
		return fmt.Errorf("look for partitions up to offset %d: %w", plan.Floor, err)
	}
	for _, table := range tables.All() {
		if !table.Pruned {
			continue
		}
		pruned := PrunedTable{Relation: table.Name}
		if !table.Partitioned {
			pruned.Rows, _, err = countUpTo(ctx, tx, table.Name, table.Place, prunedAfter(&table, int64(plan.From)), plan.Floor)
		}
		for _, p := range partitions {
			if err == nil && p.Relation == table.Name && p.ToOffset > prunedAfter(&table, int64(plan.From))+1 {
				err = pruned.add(ctx, tx, &p, table.Place, plan)
			}
		}
		if err != nil {
			return err
		}
		if pruned.Rows > 0 || pruned.Partitions > 0 {
			plan.Tables = append(plan.Tables, pruned)
		}
	}
	return nil
}

func (t *PrunedTable) add(ctx context.Context, tx pgx.Tx, p *dbsqlc.PrunePartitionsRow, place string,
	plan *PrunePlan) error {
	t.Partitions++
	if p.ToOffset <= int64(plan.Floor)+1 && p.AboutRows >= 0 {
		t.Rows += p.AboutRows
		t.Bytes += p.Bytes
		return nil
	}
	gone, all, err := countUpTo(ctx, tx, p.Name, place, -1, plan.Floor)
	if err != nil {
		return err
	}
	plan.Copied += all - gone
	t.Rows += gone
	t.Bytes += int64(float64(p.Bytes) * float64(gone) / float64(max(1, all)))
	return nil
}

// prunedAfter returns the offset after which a table's rows are pruned, where the history floor is now at an offset: up
// to there only entries of the snapshot lie in their tables.
func prunedAfter(table *tables.Table, floor int64) int64 {
	if table.Snapshot == nil {
		return -1
	}
	return floor
}

// countUpTo counts a table's rows after one offset up to another, and all of them.
func countUpTo(ctx context.Context, tx pgx.Tx, table, place string, after int64,
	upTo ledger.Offset) (rows, all int64, err error) {
	defer pg.Wrap(&err, "count the rows of %s up to offset %d", table, upTo)
	counting := fmt.Sprintf("SELECT count(*) FILTER (WHERE %s <= $1 AND %[1]s > $2), count(*) FROM %[2]s", place,
		pgx.Identifier{table}.Sanitize())
	err = tx.QueryRow(ctx, counting, int64(upTo), after).Scan(&rows, &all)
	return rows, all, err
}

// OffsetBefore returns the last offset that is earlier than a limit.
func (s *Store) OffsetBefore(ctx context.Context, before PruneBefore) (at ledger.Offset, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := bounds.Read(ctx, tx)
		if err != nil {
			return err
		}
		at, err = s.pruneFloor(ctx, tx, &extent, before)
		return err
	})
	return at, err
}
