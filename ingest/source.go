package ingest

import (
	"context"
	"time"

	"ledgerindexer/ledger"
)

// UpdateSource is what the updates loop needs of a participant.
type UpdateSource interface {
	ServedSource
	UpdateReader
	// ReadUpdatesWithin is ReadUpdates with a byte limit on the JSON; the error is ledger.ErrNoRoom where the request brings
	// more. It is safe for concurrent use.
	ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, room int64) (ledger.Page, error)
	// TailUpdates waits for updates after an offset: until limit elements came (full), or idle has passed without one.
	TailUpdates(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (page ledger.Page, full bool, err error)
	// Changes counts how often another server may have begun to answer than before: it grows before anything is returned
	// that the other one answered.
	Changes() int64
}

// UpdateSink is where updates are written.
type UpdateSink interface {
	StoredUpdates
	// Watermark is where the stream resumes; ok is false where nothing was started.
	Watermark(ctx context.Context) (at ledger.Offset, ok bool, err error)
	// Start sets the first watermark; stateKnown says that the active set is known there.
	Start(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset, stateKnown bool) error
	// Append writes pages that follow one another from the watermark on, all of them or nothing.
	Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	// Ahead are the ranges behind the watermark that are stored and not shown yet, in order, those that touch merged into
	// one.
	Ahead(ctx context.Context) ([]ledger.Range, error)
	// Write stores pages that follow one another, anywhere behind the watermark, all of them or nothing. They are shown by
	// Project. It is safe for concurrent use.
	Write(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	// Project moves the watermark from one offset to another, up to which everything is stored.
	Project(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error
}

// SnapshotSource is what the snapshot loop needs of a participant.
type SnapshotSource interface {
	ServedSource
	// ReadSnapshot reads one page of the snapshot at an offset, after a token; the zero token reads the first.
	ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error)
}

// SnapshotSink is where a snapshot is written.
type SnapshotSink interface {
	// LatestSnapshot is the one that was begun, or finished with nothing behind it yet; nil where there is none.
	LatestSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error)
	DropSnapshot(ctx context.Context) error
	// BeginSnapshot begins one, or tells how far the one begun at that offset has come, or that it is finished.
	BeginSnapshot(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error)
	// WriteSnapshotPage stores a page with the token behind it, both or neither. The last page closes the snapshot and
	// puts the watermark at its offset. A page can be written in its turn while the one before it is, unless it has
	// incomplete reassignments.
	WriteSnapshotPage(
		ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
	) (ledger.SnapshotProgress, error)
}

// HistorySource is what the history loop needs of a service of the transaction history.
type HistorySource interface {
	// Describe asks who the service is and whether its history is complete.
	Describe(ctx context.Context) (ledger.HistoryService, error)
	// TransactionsAfter reads on after a cursor in the service's order, as far as one request brings. No records: nothing follows,
	// or the service does not know the cursor. The error is ledger.ErrCursorRefused where the service fails for this cursor, and
	// ledger.ErrNotOffered where it has no history.
	TransactionsAfter(ctx context.Context, after ledger.HistoryCursor) ([]ledger.Transaction, error)
	// NewestTransactions gives the last n records, the newest first.
	NewestTransactions(ctx context.Context, n int) ([]ledger.Transaction, error)
}

// HistorySink is where the transaction history is written.
type HistorySink interface {
	// HistoryPosition is where the history is read on, with the last records of the generation that is read, the oldest first:
	// HistoryWindowLimit of them, or all.
	HistoryPosition(ctx context.Context) (ledger.HistoryPosition, []ledger.HistoryMark, error)
	// AppendTransactions stores records behind the position, all of them or nothing, and returns the position behind them, which is
	// at.Behind(len(batch.Records)). order is their place among writes that go on at the same time; nil: there are no others. The error
	// may be a *ledger.KnownEventIDError.
	AppendTransactions(ctx context.Context, at ledger.HistoryPosition, order CommitOrder, batch ledger.HistoryBatch) (ledger.HistoryPosition, error)
	// BeginGeneration begins to read the history from its beginning, into a generation that is not shown yet. One that was begun
	// before and is not shown is given up.
	BeginGeneration(ctx context.Context, at ledger.HistoryPosition) (ledger.HistoryPosition, error)
	// ShowGeneration shows the generation that is read, in place of the one that is shown.
	ShowGeneration(ctx context.Context, at ledger.HistoryPosition) (ledger.HistoryPosition, error)
	// DropLeftovers removes the rows of generations that are neither shown nor read, bit by bit.
	DropLeftovers(ctx context.Context, at ledger.HistoryPosition) (ledger.HistoryPosition, error)
	// StoredTransactions tells which of the event ids stand on a record of the generation that is read.
	StoredTransactions(ctx context.Context, at ledger.HistoryPosition, eventIDs []string) (map[string]bool, error)
}
