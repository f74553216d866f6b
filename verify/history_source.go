package verify

import (
	"context"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// HistoryDatabase is what is compared with a service of the transaction history. Everything is read; nothing is written.
type HistoryDatabase interface {
	// HistoryStanding is how far the history was read, and of which network it is; empty: it is not known.
	HistoryStanding(ctx context.Context) (at ledger.HistoryPosition, networkID string, err error)
	// HistoryMarks are the last records up to a seq of the generation that is shown, the oldest first: enough to read on behind them.
	HistoryMarks(ctx context.Context, upTo int64) ([]ledger.HistoryMark, error)
	// CompareRecords compares what is stored under the seqs after one with records that follow one another.
	CompareRecords(ctx context.Context, after int64, records []ledger.Transaction, found Found) error
	// ComparePosition compares the tables of the history's records with the position and with one another. step is
	// told what is compared next.
	ComparePosition(ctx context.Context, step func(what string), found Found) error
	// CompareBalances compares what follows from the records with them.
	CompareBalances(ctx context.Context, step func(what string), found Found) error
}

// HistoryRepairer writes again what differs: into a generation beside the one that is shown.
type HistoryRepairer interface {
	ingest.HistorySink
	// RestartHistory begins a generation, whatever is stored. It may be repeated.
	RestartHistory(ctx context.Context) error
	// RepairBalances makes what follows from the records follow from them. It may be repeated.
	RepairBalances(ctx context.Context, step func(what string)) error
}
