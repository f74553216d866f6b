package ingest

import (
	"context"
	"time"

	"ledgerindexer/ledger"
)

// UpdateReader is what detecting a fork needs of a participant, or a Scan service.
type UpdateReader interface {
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	// ReadUpdates reads on after an offset, as far as one request brings, at most up to `to`, which is not beyond the
	// ledger's end.
	ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)
	// UpdateOfScope reads an update by its id, as the stream shows it, and returns it with the answer as the server sent
	// it. The error is ledger.ErrNotFound if the server does not show it, and ledger.ErrNotOffered if it can't look
	// updates up.
	UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error)
}

// StoredUpdates is what detecting a fork needs of a database.
type StoredUpdates interface {
	// OfNetwork reports whether the database, or pair of schemas, holds the updates of a network, not a participant's.
	OfNetwork() bool
	// LastUpdate returns the last stored update at or below an offset, projected or not. at is 0 if there is none. The id
	// is empty if the update had none that could be read.
	LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error)
	// Deviation compares what is stored of a page's range with the page.
	Deviation(ctx context.Context, page ledger.Page) (Deviation, error)
}

// Deviation is in what the stored rows of a range are not as the ledger shows them. The zero value: in nothing.
type Deviation struct {
	Differences int64
	Lacking     int64  // of the Differences: columns that are NULL, of which the ledger shows a value
	First       string // of the Differences, as a sentence

	UpdateLost    bool // the row of an update is missing
	UpdateAltered bool // that row has another value, in another column than its id
	ElementsLost  int  // rows of elements of an update that are missing, as ledger.Update.Elements counts them
}

// UpdateSource is what the updates loop needs of a participant.
type UpdateSource interface {
	ServedSource
	UpdateReader
	// ReadUpdatesWithin is ReadUpdates with a limit on the answer, in bytes of JSON. The error is ledger.ErrByteLimit for
	// a larger one. It is safe for concurrent use.
	ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, maxBytes int64) (ledger.Page, error)
	// TailUpdates waits for updates after an offset: until limit elements came (full), or none came for the time idle.
	TailUpdates(ctx context.Context, after ledger.Offset, limit int,
		idle time.Duration) (page ledger.Page, full bool, err error)
	// Changes counts how often another server may have begun to answer, such as with each new connection, or when one
	// ended with a request on it. It grows before the first answer of the other server is returned.
	Changes() int64
}

// UpdateSink is where updates are written.
type UpdateSink interface {
	StoredUpdates
	// Watermark returns the offset at which the stream resumes; ok is false if it was never started.
	Watermark(ctx context.Context) (at ledger.Offset, ok bool, err error)
	// Start sets the first watermark; stateKnown says that the active set is known there.
	Start(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset, stateKnown bool) error
	// Append stores consecutive pages from the watermark on, and moves the watermark to their end, in one transaction.
	Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	// StoredAhead returns the ranges above the watermark that WriteAhead has stored, in order, adjacent ones merged.
	StoredAhead(ctx context.Context) ([]ledger.Range, error)
	// WriteAhead stores the facts of consecutive pages, which may begin anywhere above the watermark, in one transaction.
	// Readers see them when MoveWatermark has passed them. It is safe for concurrent use.
	WriteAhead(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	// MoveWatermark moves the watermark from one offset to another, and updates the projections. Everything between must
	// be stored.
	MoveWatermark(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error
}

// SnapshotSource is what the snapshot loop needs of a participant, or a Scan service.
type SnapshotSource interface {
	ServedSource
	// SnapshotOffset returns the highest offset up to another one at which there is a snapshot. The error is a
	// *ledger.Problem, which wraps ledger.ErrNotOffered, if there is none.
	SnapshotOffset(ctx context.Context, upTo ledger.Offset) (ledger.Offset, error)
	// ReadSnapshot reads one page of the snapshot at an offset, after a token; the zero token reads the first.
	ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error)
}

// SnapshotSink is where a snapshot is written.
type SnapshotSink interface {
	// LatestSnapshot returns a snapshot that is unfinished, or finished with no updates stored after it yet; nil if there
	// is none.
	LatestSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error)
	DropSnapshot(ctx context.Context) error
	// BeginSnapshot begins a snapshot, or returns the progress of the one that was begun at that offset.
	BeginSnapshot(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (
		ledger.SnapshotProgress, error)
	// WriteSnapshotPage stores a page with the token of the next one, both or neither. The last page finishes the snapshot
	// and sets the watermark to its offset. Consecutive pages may be written concurrently, in order, but not one with
	// incomplete reassignments.
	WriteSnapshotPage(
		ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
	) (ledger.SnapshotProgress, error)
}

// TransactionsSource is what the transactions loop needs of a Scan service.
type TransactionsSource interface {
	// Describe asks who the service is and whether its history is complete.
	Describe(ctx context.Context) (ledger.TransactionsService, error)
	// TransactionsAfter reads the records after the one with an event id, in the service's order, as far as one request
	// brings; from the beginning if the id is empty. No records: none follow, or the service does not know the id. The
	// error is ledger.ErrCursorRefused if the service fails for this id, and ledger.ErrNotOffered if it has no transaction
	// history.
	TransactionsAfter(ctx context.Context, eventID string) ([]ledger.Record, error)
	// NewestTransactions returns the last n records, the newest first.
	NewestTransactions(ctx context.Context, n int) ([]ledger.Record, error)
}

// TransactionsSink is where the transaction history is written.
type TransactionsSink interface {
	// TransactionsPosition returns the position at which reading resumes, with the last records, the oldest first:
	// ledger.TransactionsTail of them, or all.
	TransactionsPosition(ctx context.Context) (ledger.TransactionsPosition, []ledger.TransactionsMark, error)
	// AppendTransactions stores records after the position, all of them or none, and returns the position after them. It
	// may be called while records before them are written, with the position that these will return: order is their place
	// among those.
	AppendTransactions(ctx context.Context, at ledger.TransactionsPosition, order CommitOrder,
		records []ledger.Record) (ledger.TransactionsPosition, error)
	// ClearTransactions removes all records and what follows from them, so that they are read again.
	ClearTransactions(ctx context.Context, at ledger.TransactionsPosition) (ledger.TransactionsPosition, error)
	// CompleteTransactions notes that the end of the history was reached since it was cleared.
	CompleteTransactions(ctx context.Context, at ledger.TransactionsPosition) (ledger.TransactionsPosition, error)
	// StoredTransactions reports whether each of the event ids is that of a stored record.
	StoredTransactions(ctx context.Context, eventIDs []string) (bool, error)
}
