package verify

import (
	"context"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// UpdateSource is what verification needs of a participant. A server that does not tell its end, or how far it was
// pruned, answers with ledger.ErrNotOffered.
type UpdateSource interface {
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	PrunedOffset(ctx context.Context) (ledger.Offset, error)
	// ReadUpdates reads on after an offset, as far as one request brings, at most up to `to`, which is not beyond the
	// ledger's end.
	ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)
	// ReadSnapshot reads one page of the snapshot at an offset, after a token; the zero token reads the first.
	ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error)
	// UpdateOfScope reads an update by its id, as the stream shows it. The error is ledger.ErrNotFound where it does not show
	// it, and ledger.ErrNotOffered where it can't look updates up.
	UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error)
	// ContractByID looks a contract up, as the parties; the error may be ledger.ErrNotFound.
	ContractByID(ctx context.Context, id string, queryingParties []string) (ledger.Contract, ledger.JSON, error)
}

// inRanges is a source whose updates are read in ranges that it can answer.
type inRanges struct {
	UpdateSource
	ranges ingest.Ranges
	logger *slog.Logger
}

// ReadUpdates is as UpdateSource has it.
func (s *inRanges) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return s.ranges.Read(ctx, s.logger, s.UpdateSource.ReadUpdates, ledger.Range{From: after, To: to})
}

// Found is told of a difference. An error of its ends the comparison and is returned by it.
type Found = func(ledger.Difference) error

// UpdateDatabase is what is compared with a participant. Everything is read; nothing is written.
type UpdateDatabase interface {
	// Bounds are what is claimed to be there. started is false where nothing was indexed.
	// FilledBelow are the ranges below the floor that are stored, in order: history that was filled in and does not reach up to it.
	FilledBelow(ctx context.Context) ([]ledger.Range, error)
	Bounds(ctx context.Context) (bounds ledger.Bounds, started bool, err error)

	// CompareCoverage compares what is held of the updates with the ledger's end (nil: not known), and the list of partitions with those
	// that there are. holes are the ranges between the history floor and the watermark that are not covered.
	CompareCoverage(ctx context.Context, end *ledger.Offset, found Found) (holes []ledger.Range, err error)
	// LastUpdate is the last stored update at or below an offset; at is 0 where there is none, and the id is empty where
	// none could be read.
	LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error)
	// Compare compares the facts of a page's range with the page.
	Compare(ctx context.Context, page ledger.Page, found Found) error
	// CompareDerived compares what follows from the facts with them, and looks for facts outside of coverage. step is
	// told what is compared next.
	CompareDerived(ctx context.Context, step func(what string), found Found) error

	// CompareActive compares what is active as of an offset, at most the watermark, with a page of the participant's
	// snapshot there. met is told a key of each entry that is stored as active.
	CompareActive(ctx context.Context, at ledger.Offset, entries []ledger.ContractEntry, met func(key string), found Found) error
	// ActiveAt tells the keys of all that is stored as active as of an offset, in no order, each with the difference
	// that it is if the participant has no such entry.
	ActiveAt(ctx context.Context, at ledger.Offset, each func(key string, extra ledger.Difference) error) error

	// FinishedSnapshot is the snapshot that is carried; nil: it began without one.
	FinishedSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error)
	// CompareCarried compares the carried rows with a page of the snapshot that they came from; before is how many
	// entries the pages before it had.
	CompareCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry, met func(key string), found Found) error
	// AnsweredLookups are contracts behind one, in the order of their ids, whose look-up was answered.
	AnsweredLookups(ctx context.Context, after string, limit int) (contractIDs []string, err error)
	// CompareLookup compares a looked-up contract.
	CompareLookup(ctx context.Context, contract ledger.Contract, found Found) error

	// CarriedAt is ActiveAt of the carried rows.
	CarriedAt(ctx context.Context, at ledger.Offset, each func(key string, extra ledger.Difference) error) error
}

// UpdateRepairer writes again what differs. Each call is one transaction, while which nobody else writes the stream. Every
// call may be repeated.
type UpdateRepairer interface {
	// RepairCoverage puts the watermark at the ledger's end, where it is beyond it, and the list of partitions right. Holes stay: writing
	// their updates closes them. No facts are removed.
	RepairCoverage(ctx context.Context, end *ledger.Offset) error
	// RepairUpdates makes the facts of a page's range those of the page, and its coverage whole. Derived rows stay.
	RepairUpdates(ctx context.Context, scope ledger.Scope, page ledger.Page) error
	// RepairDerived makes what follows from the facts follow from them, and removes facts outside of coverage.
	RepairDerived(ctx context.Context, step func(what string)) error
	// RepairCarried makes the carried rows of the entries those of the page.
	RepairCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry) error
	// RepairLookup stores an answer in the place of the stored one.
	RepairLookup(ctx context.Context, lookup ledger.Lookup) error
	// DropCarried removes carried rows by the keys that CarriedAt told.
	DropCarried(ctx context.Context, at ledger.Offset, keys []string) error
}
