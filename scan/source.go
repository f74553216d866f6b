package scan

import (
	"context"
	"time"

	"ledgerindexer/ledger"
)

// Source reads the updates of a network: from one Scan service ([Updates]) or from several ([Several]). It is safe for concurrent use.
type Source interface {
	// Party returns the party that operates the network.
	Party(ctx context.Context) (string, error)
	// Expect says that an update at or above an offset was served before.
	Expect(offset ledger.Offset)
	// Changes counts the events after which another server may answer.
	Changes() int64
	// LedgerEnd returns the offset of the newest update; 0 if there is none.
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	// PrunedOffset returns ledger.ErrNotOffered: the history is kept from its beginning.
	PrunedOffset(ctx context.Context) (ledger.Offset, error)
	// ReadUpdates reads updates from after, exclusive, to to, inclusive, as far as one request brings.
	ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)
	// ReadUpdatesWithin is ReadUpdates with a limit on the answer, in bytes of JSON; ledger.ErrByteLimit where that is too little.
	ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, maxBytes int64) (ledger.Page, error)
	// TailUpdates waits for updates after an offset.
	TailUpdates(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (page ledger.Page, full bool, err error)
	// UpdateOfScope reads an update by its id; ledger.ErrNotFound where the network has none.
	UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error)
	// SnapshotOffset returns the offset of the newest snapshot at or below an offset.
	SnapshotOffset(ctx context.Context, upTo ledger.Offset) (ledger.Offset, error)
	// ReadSnapshot reads one page of the snapshot at an offset, after a token; the zero token reads the first.
	ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error)
	// Stretches returns the parts of a range in which there are updates.
	Stretches(ctx context.Context, r ledger.Range) ([]ledger.Range, error)
	// Version returns the release of the service, of the first one that answers if there are several.
	Version(ctx context.Context) (string, error)
	// Close ends all requests.
	Close()
}

var _, _ Source = (*Updates)(nil), (*Several)(nil)
