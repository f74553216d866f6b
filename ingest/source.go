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

// HistorySource is what the history loop needs of a service of the transaction history. It pages by event id; another
// kind of service can stand behind it, if it tells records by such ids.
type HistorySource interface {
	// Describe asks who the service is and whether its history is complete.
	Describe(ctx context.Context) (ledger.HistoryService, error)
	// TransactionsAfter reads on after an event id in the service's order, as far as one request brings; the empty id
	// reads from the beginning. No records: nothing follows, or the service does not know the id. The error is
	// ledger.ErrCursorRefused where the service fails for this id, and ledger.ErrNotOffered where it has no history.
	TransactionsAfter(ctx context.Context, eventID string) ([]ledger.Transaction, error)
	// NewestTransactions gives the last n records, the newest first.
	NewestTransactions(ctx context.Context, n int) ([]ledger.Transaction, error)
}

// HistorySink is where the transaction history is written.
type HistorySink interface {
	// HistoryPosition is where the history is read on. An event id is unique there if one record has it of those that the
	// service shows: while the history is read again, of those that were met since; otherwise of all stored ones but those
	// that were not met when it was last read again. The window has at least 100 marks where so many were read: a
	// shorter one begins with the history.
	HistoryPosition(ctx context.Context) (ledger.HistoryPosition, error)
	// AppendTransactions stores records that follow the last one of the position's window in the service's order, all
	// of them or nothing, and returns the new position. While the history is read again, a record that is stored
	// already, as often as it has been met since, is only noted.
	AppendTransactions(ctx context.Context, at ledger.HistoryPosition, records []ledger.Transaction) (ledger.HistoryPosition, error)
	// AppendBehind is AppendTransactions for records that are written in their turn, behind others. at is the position that those
	// lead to, though its window may be cut. The history is not being read again.
	AppendBehind(
		ctx context.Context, at ledger.HistoryPosition, order CommitOrder, records []ledger.Transaction,
	) (ledger.HistoryPosition, error)
	// RereadHistory begins to read the history again from its beginning.
	RereadHistory(ctx context.Context, at ledger.HistoryPosition) (ledger.HistoryPosition, error)
	// FinishReread ends it. gone is how many stored records were not met again: they stay, and no longer count for what is
	// unique.
	FinishReread(ctx context.Context, at ledger.HistoryPosition) (position ledger.HistoryPosition, gone int64, err error)
	// HasTransactions tells which of the event ids stand on a stored record, whether or not the service still shows it.
	HasTransactions(ctx context.Context, eventIDs []string) (map[string]bool, error)
	// MetTransactions tells which of the event ids stand on a record that was met, or stored, since the history is read
	// again. Where it is not, it tells what HasTransactions tells.
	MetTransactions(ctx context.Context, eventIDs []string) (map[string]bool, error)
}
