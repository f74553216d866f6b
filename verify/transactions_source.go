package verify

import (
	"context"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// TransactionsDatabase is the stored transaction history. Its methods only read.
type TransactionsDatabase interface {
	// TransactionsStanding returns the position of the stored history, and its network; empty: not known.
	TransactionsStanding(ctx context.Context) (at ledger.TransactionsPosition, networkID string, err error)
	// TransactionsMarks returns the last records up to a seq, the oldest first: enough to read after them.
	TransactionsMarks(ctx context.Context, upTo int64) ([]ledger.TransactionsMark, error)
	// CompareRecords compares the rows with the seqs after one with consecutive records.
	CompareRecords(ctx context.Context, after int64, records []ledger.Transaction, found Found) error
	// ComparePosition compares the tables of records with the position and with one another. It calls step with what it
	// compares next.
	ComparePosition(ctx context.Context, step func(what string), found Found) error
	// CompareBalances compares the tables that follow from the records with the records.
	CompareBalances(ctx context.Context, step func(what string), found Found) error
}

// TransactionsRepairer writes the history again.
type TransactionsRepairer interface {
	ingest.TransactionsSink
	// RestartTransactions clears the history, whatever is stored of it. It may be repeated.
	RestartTransactions(ctx context.Context) error
	// RepairBalances computes the tables that follow from the records again. It may be repeated.
	RepairBalances(ctx context.Context, step func(what string)) error
}
