// Package bounds reads what the database says that it holds: how far updates and the transaction history go, what is
// covered, which snapshot is carried.
package bounds

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

var queries = dbsqlc.New()

// Extent is how much of the ledger a database holds.
type Extent struct {
	Started   bool          `json:"-"`         // false: nothing was indexed, and the other fields say nothing
	Watermark ledger.Offset `json:"watermark"` // everything up to here is stored and shown
	// events after here are complete, and active contracts and lifetimes computed from them
	HistoryFloor ledger.Offset  `json:"history_floor"`
	StateFloor   *ledger.Offset `json:"-"` // from here on it is known what is active; nil: nowhere

	// an operator pruned up to here, which is the HistoryFloor then; 0: nothing was pruned
	PrunedTo ledger.Offset `json:"-"`

	// ChangedTo is the hash of the scope in force, while something is covered in another one; empty: nothing is.
	ChangedTo string `json:"-"`
}

// Read reads the extent.
func Read(ctx context.Context, db dbsqlc.DBTX) (Extent, error) {
	watermark, started, err := Watermark(ctx, db)
	if err != nil || !started {
		return Extent{}, err
	}
	floors, err := queries.FloorsGet(ctx, db, tables.StreamUpdates)
	if err != nil {
		return Extent{}, fmt.Errorf("read the floors: %w", err)
	}
	return Extent{
		Started: true, Watermark: watermark, HistoryFloor: ledger.Offset(floors.HistoryFloor),
		StateFloor: (*ledger.Offset)(floors.StateFloor), PrunedTo: ledger.Offset(floors.PrunedTo),
		ChangedTo: floors.ChangedTo,
	}, nil
}

// Watermark returns the offset up to which everything is stored and shown; ok is false if nothing was started.
func Watermark(ctx context.Context, db dbsqlc.DBTX) (at ledger.Offset, ok bool, err error) {
	row, err := queries.CheckpointGet(ctx, db, tables.StreamUpdates)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read the watermark: %w", err)
	}
	return ledger.Offset(*row.LedgerOffset), true, nil
}

// TransactionsPosition returns how far the transaction history has been read.
func TransactionsPosition(ctx context.Context, db dbsqlc.DBTX) (ledger.TransactionsPosition, error) {
	row, err := queries.TransactionsPositionGet(ctx, db)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.TransactionsPosition{}, &ledger.Problem{
			What: "how far the transaction history was read is lost: table transactions_position has no row",
			Do:   "restore the row from a backup of the database, or index into a new one",
		}
	}
	if err != nil {
		return ledger.TransactionsPosition{}, fmt.Errorf("read the position in the transaction history: %w", err)
	}
	return ledger.TransactionsPosition(row), nil
}

// CarriedSnapshot returns the snapshot whose rows are carried; nil: there is none.
func CarriedSnapshot(ctx context.Context, db dbsqlc.DBTX) (carried *ledger.SnapshotProgress, err error) {
	defer pg.Wrap(&err, "look for the snapshot whose rows are carried")
	row, err := queries.SnapshotFinished(ctx, db)
	return Snapshot(row.Snapshots, err)
}

// Snapshot returns what a query returned of a snapshot; nil: no row.
func Snapshot(row dbsqlc.Snapshots, err error) (*ledger.SnapshotProgress, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	progress := SnapshotProgress(row)
	return &progress, nil
}

// SnapshotProgress returns what a row says of a snapshot.
func SnapshotProgress(row dbsqlc.Snapshots) ledger.SnapshotProgress {
	return ledger.SnapshotProgress{
		At:      ledger.Offset(row.SnapshotOffset),
		Next:    ledger.Token{Kind: ledger.TokenKind(row.TokenKind), Value: row.Token},
		Entries: row.Entries, Finished: row.FinishedAt.Valid, Pruned: row.Pruned != nil && *row.Pruned,
		Mixed: row.Mixed != nil && *row.Mixed,
	}
}
