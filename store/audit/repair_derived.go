package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// RepairDerived makes what follows from the facts follow from them, and removes facts outside of coverage: all that
// CompareDerived compares. Rows that are right are not touched. An update that is missing beside its events, and a name
// that rows refer to, can't be made right here: writing the updates again does that, and until then they stay. step, if
// not nil, is called with what is done next.
//
// It is one transaction, in which everything is computed again: it takes about as long as comparing does, and the
// writer of the updates waits meanwhile, or fails and tries again.
func (r *Repairer) RepairDerived(ctx context.Context, step func(what string)) error {
	if err := inTurn(ctx, []part{{"partitions of lifetimes", r.ensureLifetimes}}, step); err != nil {
		return fmt.Errorf("repair what follows from the facts: %w", err)
	}
	err := r.repair(ctx, []session.Role{session.RolePruning, session.RoleUpdates},
		func(ctx context.Context, tx pgx.Tx) error { return r.derive(ctx, tx, step) })
	if err != nil {
		return fmt.Errorf("repair what follows from the facts: %w", err)
	}
	return nil
}

// derive computes what follows from the facts again, in a transaction that excludes the writer of the updates.
func (r *Repairer) derive(ctx context.Context, tx pgx.Tx, step func(what string)) error {
	base, err := r.stored.projectionBase(ctx, tx)
	if err != nil || !base.Started {
		return err
	}
	if _, err := tx.Exec(ctx, "SET LOCAL work_mem = '"+derivedMemory+"'"); err != nil {
		return fmt.Errorf("set the memory for sorting: %w", err)
	}
	f, err := r.stored.newFollowing(ctx, tx, tables.Projections, base.arguments(), nil)
	if err != nil {
		return err
	}
	d := derivation{tx, base}
	parts := []part{{"facts outside of coverage", d.outOfCoverage}}
	for _, group := range tables.BySource(tables.Projections) {
		parts = append(parts, part{what(group), func(ctx context.Context) error {
			// a grant adds some, and what it has not committed would be removed as too much
			if group[0].Name == "reader_lists" {
				if err := names.Turn(ctx, tx); err != nil {
					return err
				}
			}
			return f.repair(ctx, group)
		}})
	}
	if err := inTurn(ctx, parts, step); err != nil {
		return err
	}
	return writing.NoteRewrite(ctx, tx, tables.StreamUpdates, 0, int64(base.Watermark), writing.Repaired)
}

// ensureLifetimes attaches the partitions that rows of lifetimes may need. One offset of each of the smallest
// partitions stands for the others there: partitions begin and end where those do.
func (r *Repairer) ensureLifetimes(ctx context.Context) error {
	var events []string
	for _, table := range tables.In(tables.Facts) {
		if table.Activity {
			events = append(events, "SELECT s.ledger_offset FROM "+table.Name+" s")
		}
	}
	sql := "SELECT max(e.ledger_offset) FROM (" + strings.Join(events, " UNION ALL ") + ") e GROUP BY e.ledger_offset / $1"
	offsets, err := pg.Column[int64](ctx, r.term.Pool, sql, r.term.Partitions.Smallest())
	if err != nil {
		return fmt.Errorf("look for the offsets of events: %w", err)
	}
	r.term.Partitions.Forget() // the writer of the updates attaches some too
	return r.term.Partitions.Ensure(ctx, "lifetimes", slices.Values(offsets))
}

// derivation computes what follows from the facts, in a transaction that excludes other writers.
type derivation struct {
	tx   pgx.Tx
	base *projectionBase
}

// outOfCoverage removes facts outside of coverage.
func (d *derivation) outOfCoverage(ctx context.Context) error {
	arguments := d.base.arguments()
	for _, s := range d.base.outOfCoverage() {
		if _, err := d.tx.Exec(ctx, s.table.Delete(s.where), arguments); err != nil {
			return err
		}
	}
	return nil
}
