package verify

import (
	"context"

	"ledgerindexer/ledger"
)

// HistoryDatabase is what is compared with a service of the transaction history. Everything is read; nothing is written.
type HistoryDatabase interface {
	// HistoryStanding is what is claimed of the history.
	HistoryStanding(ctx context.Context) (ledger.HistoryStanding, error)
	// FindRecords tells which records are stored with one of some event ids, and which under some seqs, by seq; and what is
	// claimed at the same moment.
	FindRecords(ctx context.Context, eventIDs []string, seqs []int64) (ledger.HistoryStanding, []ledger.StoredRecord, error)
	// CompareRecords compares what is stored under the seqs of records with these records.
	CompareRecords(ctx context.Context, records []ledger.NumberedRecord, found Found) error
	// ComparePosition compares what is claimed of the history, and the tables of its records, with one another. step is
	// told what is compared next.
	ComparePosition(ctx context.Context, step func(what string), found Found) error
	// CompareBalances compares what follows from the records with them.
	CompareBalances(ctx context.Context, step func(what string), found Found) error
}

// HistoryRepairer writes again what differs. Each call is one transaction, while which nobody else writes the history. Every
// call may be repeated but AddRecords and RemoveRecords.
type HistoryRepairer interface {
	// RewriteRecords makes what is stored under the seqs of records these records. What follows from them stays.
	RewriteRecords(ctx context.Context, records []ledger.NumberedRecord) error
	// AddRecords stores records that are not stored: in seqs that are free, else behind the last one, where the order of
	// seq is not the service's any more. ok is false where the history's revision is another one by now: nothing was done.
	AddRecords(ctx context.Context, revision int64, records []ledger.Transaction) (ok bool, err error)
	// RemoveRecords removes what is stored under some seqs. What stood behind them moves up, so that no seq is free.
	RemoveRecords(ctx context.Context, seqs []int64) error
	// MarkGone notes that the service shows some stored records no more, and others again.
	MarkGone(ctx context.Context, gone, shown []int64) error
	// RepairPosition makes what is claimed of the history follow from its records, and removes rows that belong to none.
	// Records that are missing stay so.
	RepairPosition(ctx context.Context, step func(what string)) error
	// RepairNetwork records the network whose history this is.
	RepairNetwork(ctx context.Context, networkID string) error
	// RepairBalances makes what follows from the records follow from them.
	RepairBalances(ctx context.Context, step func(what string)) error
}
