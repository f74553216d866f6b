package bounds

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

// Derived is where the records stand that follow from the updates of a network.
type Derived struct {
	Any bool                        // false: there are none, or a service sent them
	To  ledger.Offset               // they follow from the updates up to here
	At  ledger.TransactionsPosition // the last of them

	// Outdated says that they follow by the rules of another version, and that the updates are there to derive them again.
	Outdated bool
}

// ReadDerived reads where the derived records stand.
func ReadDerived(ctx context.Context, db dbsqlc.DBTX, extent *Extent) (r Derived, err error) {
	if r.At, err = TransactionsPosition(ctx, db); err != nil {
		return r, err
	}
	to, err := queries.RecordsDerivedTo(ctx, db)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read up to where records are derived: %w", err)
	}
	r.Any, r.To = true, ledger.Offset(to)
	newest, err := queries.RecordsNewest(ctx, db)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return r, fmt.Errorf("read by which rules the newest record follows: %w", err)
	}
	r.Outdated = err == nil && newest.Rules != ledger.RulesVersion && newest.LedgerOffset > int64(extent.HistoryFloor)
	return r, nil
}

// RecordsUpTo returns the seq up to which the records go that follow from updates up to an offset.
func RecordsUpTo(ctx context.Context, db dbsqlc.DBTX, at ledger.TransactionsPosition,
	upTo ledger.Offset) (seq int64, err error) {
	defer pg.Wrap(&err, "look for the records of updates after offset %d", upTo)
	return queries.RecordsUpTo(ctx, db, dbsqlc.RecordsUpToParams{UpTo: int64(upTo), LastSeq: at.LastSeq})
}

// RecordsKept returns the seq up to which the records follow from updates that were pruned: nothing derives them again.
func RecordsKept(ctx context.Context, db dbsqlc.DBTX, extent *Extent, at ledger.TransactionsPosition) (int64, error) {
	if extent.PrunedTo == 0 { // whatever the records say
		return 0, nil
	}
	return RecordsUpTo(ctx, db, at, extent.HistoryFloor)
}
