package storetest

import (
	"context"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/leadership"
)

// SnapshotWriter writes a snapshot, and updates after it.
type SnapshotWriter interface {
	BeginSnapshot(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (
		ledger.SnapshotProgress, error)
	WriteSnapshotPage(
		ctx context.Context, progress ledger.SnapshotProgress, order leadership.CommitOrder, page ledger.SnapshotPage,
	) (ledger.SnapshotProgress, error)
	Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
}

// RecordsWriter writes the transaction history.
type RecordsWriter interface {
	AppendTransactions(ctx context.Context, at ledger.TransactionsPosition, order leadership.CommitOrder,
		records []ledger.Record) (ledger.TransactionsPosition, error)
}

// WriteEverything writes rows into every table that is sealed, with a snapshot at offset 100.
func (d *DB) WriteEverything(up SnapshotWriter, history RecordsWriter) {
	d.T.Helper()
	ctx := d.T.Context()
	progress, err := up.BeginSnapshot(ctx, "participant::1", Scope, 100)
	require.NoError(d.T, err)
	_, err = up.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true, Entries: EveryEntry()})
	require.NoError(d.T, err)
	require.NoError(d.T, up.Append(ctx, Scope, EveryKind(100)))
	_, err = history.AppendTransactions(ctx, ledger.TransactionsPosition{}, nil, EveryTransaction(d.T))
	require.NoError(d.T, err)
	d.Exec(`UPDATE indexer.transactions SET exact = '{"mint.amount": "007"}' WHERE seq = 1`)
}
