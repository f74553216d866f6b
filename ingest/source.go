package ingest

import (
	"context"
	"time"

	"ledgerindexer/ledger"
)

// UpdateSource is what the updates loop needs of a participant. A server that does not tell its end, or how far it
// was pruned, answers with ledger.ErrNotOffered.
type UpdateSource interface {
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	PrunedOffset(ctx context.Context) (ledger.Offset, error)
	// ReadUpdates reads on after an offset, as far as one request brings, at most up to `to`, which is not beyond the
	// ledger's end.
	ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)
	// TailUpdates waits for updates after an offset: until limit elements came (full), or idle has passed without one.
	TailUpdates(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (page ledger.Page, full bool, err error)
}

// UpdateSink is where updates are written.
type UpdateSink interface {
	// Watermark is where the stream resumes; ok is false where nothing was started.
	Watermark(ctx context.Context) (at ledger.Offset, ok bool, err error)
	// Start sets the first watermark; stateKnown says that the active set is known there.
	Start(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset, stateKnown bool) error
	// Append writes pages that follow one another from the watermark on, all of them or nothing.
	Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
}

// SnapshotSource is what the snapshot loop needs of a participant.
type SnapshotSource interface {
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	PrunedOffset(ctx context.Context) (ledger.Offset, error)
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
	// puts the watermark at its offset.
	WriteSnapshotPage(ctx context.Context, progress ledger.SnapshotProgress, page ledger.SnapshotPage) (ledger.SnapshotProgress, error)
}
