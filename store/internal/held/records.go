package held

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/moved"
	"ledgerindexer/store/internal/session"
)

// mostAtOnce is how many updates are looked through at once for the first records that follow from them.
const mostAtOnce = 2_000

// RecordOrigin returns the offset of the update that the record with a seq follows from, and the version of the rules
// by which it does. stored is false where there is no such update, or no such record.
func RecordOrigin(ctx context.Context, d *session.Database, db dbsqlc.DBTX,
	seq int64) (at ledger.Offset, rules int32, stored bool, err error) {
	row, err := d.Queries.RecordOrigin(ctx, db, seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("look for the update of the record with seq %d: %w", seq, err)
	}
	return ledger.Offset(row.LedgerOffset), row.Rules, true, nil
}

// Underivable returns how many of the first records after one seq, up to another, can't be derived again, because the
// updates that they follow from were pruned. Whatever else removes updates begins a generation before. The first
// records that can be show it; where none of them is stored, it is searched for.
func Underivable(ctx context.Context, d *session.Database, db dbsqlc.DBTX, after, to int64) (n int64, err error) {
	derived, err := d.Queries.RecordsAreDerived(ctx, db)
	if err != nil || !derived || to <= after {
		return 0, err
	}
	extent, err := Read(ctx, d, db)
	if err != nil || extent.PrunedTo == 0 {
		return 0, err
	}
	before, found, err := beforeDerivable(ctx, d, db, extent, after, to)
	if err != nil || found {
		return before - after, err
	}
	n = int64(sort.Search(int(to-after), func(i int) bool {
		from, _, stored, failed := RecordOrigin(ctx, d, db, after+1+int64(i))
		err = cmp.Or(err, failed)
		return stored && from > extent.PrunedTo
	}))
	return n, err
}

// beforeDerivable returns the seq after which, among those after one up to another, the records begin that follow from
// the updates that are left. found is false if none of the first ones is stored, or only as other rules had it.
func beforeDerivable(ctx context.Context, d *session.Database, db dbsqlc.DBTX, extent Extent, after,
	to int64) (before int64, found bool, err error) {
	ids, err := firstDerivable(ctx, d, db, extent)
	if err != nil || len(ids) == 0 {
		return 0, false, err
	}
	rows, err := d.Queries.RecordsDerivedBy(ctx, db, dbsqlc.RecordsDerivedByParams{EventIds: ids, FromExclusive: after,
		ToInclusive: to, Rules: ledger.RulesVersion})
	if err != nil {
		return 0, false, fmt.Errorf("look for the first records of updates after offset %d: %w", extent.PrunedTo, err)
	}
	if len(rows) == 0 {
		return 0, false, nil
	}
	ahead := int64(slices.Index(ids, rows[0].EventID)) // so many stand before it, or are lost
	return max(rows[0].Seq-1-ahead, after), true, nil
}

// firstDerivable returns the event ids of the first records that follow from the updates that are left, in order.
func firstDerivable(ctx context.Context, d *session.Database, db dbsqlc.DBTX, extent Extent) (ids []string, err error) {
	at := max(extent.HistoryFloor, extent.PrunedTo)
	for atOnce := int32(50); at < extent.Watermark && len(ids) == 0; atOnce = min(4*atOnce, mostAtOnce) {
		to, err := d.Queries.UpdatesWindow(ctx, db, dbsqlc.UpdatesWindowParams{
			FromExclusive: int64(at), ToInclusive: int64(extent.Watermark), Beyond: atOnce - 1,
		})
		if err != nil {
			return nil, fmt.Errorf("look for the updates after offset %d: %w", at, err)
		}
		updates, err := moved.Updates(ctx, d.Queries, db, at, ledger.Offset(to))
		if err != nil {
			return nil, err
		}
		for i := range updates {
			for _, record := range updates[i].Records() {
				ids = append(ids, record.EventID)
			}
		}
		at = ledger.Offset(to)
	}
	return ids, nil
}

// Derivable returns the seq after which the records that are shown can be compared with what they were read or derived
// from.
func Derivable(ctx context.Context, d *session.Database, db dbsqlc.DBTX,
	at ledger.TransactionsPosition) (after int64, err error) {
	gone, err := Underivable(ctx, d, db, at.ShownAfter, at.ShownTo)
	return at.ShownAfter + gone, err
}
