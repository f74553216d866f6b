// Package writing has what is written alike by the writers of the streams and by repairs: facts, answers to look-ups,
// positions, and what readers and seals must learn.
package writing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

var queries = dbsqlc.New()

// CheckPage refuses a page that does not begin where the one before ended, and updates outside of its range: their
// rows would stand at offsets that are not covered.
func CheckPage(page *ledger.Page, after ledger.Offset) error {
	if page.From != after || page.To < page.From {
		return fmt.Errorf("page from offset %d to %d does not follow offset %d", page.From, page.To, after)
	}
	at := page.From
	for i := range page.Updates {
		offset := page.Updates[i].Offset
		if offset <= at || offset > page.To {
			return fmt.Errorf("page from offset %d to %d has an update with offset %d after offset %d", page.From, page.To,
				offset, at)
		}
		at = offset
	}
	return nil
}

// CopyFacts COPYs the facts.
func CopyFacts(ctx context.Context, d *session.Database, tx pgx.Tx, f *rows.Facts) error {
	started := time.Now()
	if err := CopyTables(ctx, tx, f.Tables()); err != nil {
		return err
	}
	d.Config.Observe(ctx, "copy", time.Since(started))
	return nil
}

// EnsureSnapshot attaches the partitions of the entries of a snapshot at an offset, before their transaction begins.
func EnsureSnapshot(ctx context.Context, set *partitions.Set, at ledger.Offset) error {
	for _, table := range tables.OfSnapshot() {
		if !table.Partitioned {
			continue
		}
		if err := set.EnsureUpTo(ctx, table.Name, int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// EnsurePartitions attaches what facts are about to need, before their transaction begins.
func EnsurePartitions(ctx context.Context, set *partitions.Set, f *rows.Facts) error {
	for _, table := range f.Tables() {
		described := tables.Get(tables.Facts, table.Name)
		if !described.Partitioned {
			continue
		}
		if err := set.Ensure(ctx, table.Name, table.Numbers(described.Place)); err != nil {
			return err
		}
	}
	return nil
}
