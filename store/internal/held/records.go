package held

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/session"
)

// RecordOrigin returns the offset of the update that the record with a seq follows from, and the version of the rules by which it does. stored is
// false where there is no such update, or no such record.
func RecordOrigin(ctx context.Context, d *session.Database, db dbsqlc.DBTX, seq int64) (at ledger.Offset, rules int32, stored bool, err error) {
	row, err := d.Queries.RecordOrigin(ctx, db, seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("look for the update of the record with seq %d: %w", seq, err)
	}
	return ledger.Offset(row.LedgerOffset), row.Rules, true, nil
}

// Underivable returns how many of the first records after one seq, up to another, can't be derived again, because the updates that they follow from
// were pruned. Whatever else removes updates begins a generation before.
func Underivable(ctx context.Context, d *session.Database, db dbsqlc.DBTX, after, to int64) (n int64, err error) {
	derived, err := d.Queries.RecordsAreDerived(ctx, db)
	if err != nil || !derived {
		return 0, err
	}
	extent, err := Read(ctx, d, db)
	if err != nil || extent.PrunedTo == 0 {
		return 0, err
	}
	n = int64(sort.Search(int(to-after), func(i int) bool {
		from, _, stored, failed := RecordOrigin(ctx, d, db, after+1+int64(i))
		err = cmp.Or(err, failed)
		return stored && from > extent.PrunedTo
	}))
	return n, err
}

// Derivable returns the seq after which the records that are shown can be compared with what they were read or derived from.
func Derivable(ctx context.Context, d *session.Database, db dbsqlc.DBTX, at ledger.TransactionsPosition) (after int64, err error) {
	gone, err := Underivable(ctx, d, db, at.ShownAfter, at.ShownTo)
	return at.ShownAfter + gone, err
}
