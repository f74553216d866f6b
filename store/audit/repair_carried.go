package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// RepairCarried makes the rows of entries those that writing the entries makes, in one transaction, and adds names that
// the dictionaries lack, as RepairUpdates does. The arguments are those of CompareCarried. The active set, and what
// else follows from the entries, stay as they are.
//
// Pages are to be repaired in their order: a creation event that is stored as an active entry's is left to that entry.
func (r *Repairer) RepairCarried(ctx context.Context, at ledger.Offset, before int64,
	entries []ledger.ContractEntry) error {
	page := carriedPage{progress: ledger.SnapshotProgress{At: at, Entries: before},
		entries: r.term.Redacted.Entries(entries)}
	if err := r.repairCarried(ctx, &page); err != nil {
		return fmt.Errorf("repair entries %d to %d of the snapshot at offset %d: %w", before+1, page.end(), at,
			session.Refused(err))
	}
	return nil
}

func (r *Repairer) repairCarried(ctx context.Context, page *carriedPage) error {
	carried, wanted, err := page.rows()
	if err != nil {
		return err
	}
	refuse := func(tx pgx.Tx) error { return r.stored.refuseReplaced(ctx, tx, page.progress.At) }
	if err := r.stored.db.ReadOnly(ctx, refuse); err != nil {
		return err
	}
	r.term.Partitions.Forget()
	if err := writing.EnsureSnapshot(ctx, r.term.Partitions, page.progress.At); err != nil {
		return err
	}
	return r.repair(ctx, rolesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		if err := refuse(tx); err != nil {
			return err
		}
		if err := r.addNames(ctx, tx, wanted); err != nil {
			return err
		}
		if _, err := r.stored.resolve(ctx, tx, wanted); err != nil {
			return err
		}
		if err := r.stored.settle(ctx, tx, page, carried); err != nil {
			return err
		}
		if err := r.rewriteCarried(ctx, tx, page, carried); err != nil {
			return err
		}
		return r.repaired(ctx, tx, tables.StreamSnapshot, 0, int64(page.progress.At), writing.Repaired)
	})
}

// rewriteCarried writes the rows that the page should have in the place of those that are stored.
func (w *writer) rewriteCarried(ctx context.Context, tx pgx.Tx, page *carriedPage, carried *rows.Carried) error {
	for _, table := range tables.OfSnapshot() {
		where, arguments := page.stored(carried, table.Name)
		if _, err := tx.Exec(ctx, table.Delete(where), arguments...); err != nil {
			return fmt.Errorf("remove the stored rows of %s: %w", table.Name, err)
		}
	}
	return writing.CopyTables(ctx, tx, carried.Tables())
}

// DropCarried removes, in one transaction, rows of entries by keys from CarriedAt, and with them all rows that belong
// to none then. The creation event of an incomplete reassignment stays, without what it had of an active entry. A key
// that can't be from CarriedAt is an error.
func (r *Repairer) DropCarried(ctx context.Context, at ledger.Offset, keys []string) error {
	var dropped dbsqlc.CarriedDropParams
	for _, text := range keys {
		key, err := parseCarriedKey(text)
		if err != nil {
			return err
		}
		dropped.Kinds = append(dropped.Kinds, key.kind)
		dropped.Offsets = append(dropped.Offsets, key.offset)
		dropped.Numbers = append(dropped.Numbers, key.number)
	}
	err := r.repair(ctx, []session.Role{session.RolePruning, session.RoleUpdates},
		func(ctx context.Context, tx pgx.Tx) error {
			if err := r.stored.refuseReplaced(ctx, tx, at); err != nil {
				return err
			}
			if err := r.stored.db.Queries.CarriedDrop(ctx, tx, dropped); err != nil {
				return fmt.Errorf("remove the rows: %w", err)
			}
			if err := r.stored.db.Queries.CarriedViewsDropOrphans(ctx, tx, int64(at)); err != nil {
				return fmt.Errorf("remove interface views of no event: %w", err)
			}
			return r.repaired(ctx, tx, tables.StreamSnapshot, 0, int64(at), writing.Repaired)
		})
	if err != nil {
		return fmt.Errorf("drop %d rows of the snapshot at offset %d: %w", len(keys), at, err)
	}
	return nil
}
