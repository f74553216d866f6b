package audit

import (
	"context"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// UpdateSource is what verification needs of a participant, or a Scan service.
type UpdateSource interface {
	ingest.UpdateReader
	ingest.SnapshotSource
	ingest.LookupSource
	// Changes is that of ingest.UpdateSource.
	Changes() int64
}

// inRanges is an UpdateSource that reads updates through ingest.Ranges.
type inRanges struct {
	UpdateSource
	ranges ingest.Ranges
	logger *slog.Logger
}

// ReadUpdates implements UpdateSource.
func (s *inRanges) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return s.ranges.Read(ctx, s.logger, s.UpdateSource.ReadUpdates, ledger.Range{From: after, To: to})
}

// UpdateDatabase is the stored updates and what follows from them. Its methods only read.
type UpdateDatabase interface {
	ingest.StoredUpdates
	// Compare compares what is stored of a page's range with the page. An error of found ends it and is returned.
	Compare(ctx context.Context, page ledger.Page, found Found) error
	// Bounds returns floors and watermark, as recorded. started is false if nothing was indexed.
	Bounds(ctx context.Context) (bounds ledger.Bounds, started bool, err error)
	// Led reports whether a process leads now that moves the watermark.
	Led(ctx context.Context) (bool, error)

	// CompareCoverage compares the watermark with the ledger's end (nil: not known).
	// holes are the ranges between the history floor and the watermark without a coverage row.
	CompareCoverage(ctx context.Context, end *ledger.Offset, found Found) (holes []ledger.Range, err error)
	// CompareDerived compares the tables that follow from the facts with the facts, and looks for facts outside of the
	// coverage. It calls step with what it compares next.
	CompareDerived(ctx context.Context, step func(what string), found Found) error

	// CompareActive compares the contracts that are active at an offset, at most the watermark, with a page of the
	// participant's snapshot there. It calls seen with a key of each entry that is stored as active.
	CompareActive(ctx context.Context, at ledger.Offset, entries []ledger.ContractEntry, seen func(key string),
		found Found) error
	// ActiveAt calls each with the keys of all that is stored as active at an offset, in no order, and with the difference
	// that such a row is if the participant has no entry for it.
	ActiveAt(ctx context.Context, at ledger.Offset, each func(key string, extra Difference) error) error

	// FinishedSnapshot returns the carried snapshot; nil: indexing began without one.
	FinishedSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error)
	// CompareCarried compares the carried rows with a page of the snapshot that they came from; before is the number of
	// entries of the pages before. It calls seen with a key of each entry that is stored.
	CompareCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry,
		seen func(key string), found Found) error
	// AnsweredLookups returns the next contracts after one, in the order of their ids, whose look-up was answered.
	AnsweredLookups(ctx context.Context, after string, limit int) (contractIDs []string, err error)
	// CompareLookup compares a looked-up contract.
	CompareLookup(ctx context.Context, contract ledger.Contract, found Found) error

	// CarriedAt is ActiveAt of the carried rows.
	CarriedAt(ctx context.Context, at ledger.Offset, each func(key string, extra Difference) error) error
}

// UpdateRepairer writes again what differs. Each call is one transaction that excludes other writers of the stream.
// Every call may be repeated.
type UpdateRepairer interface {
	// RepairCoverage lowers the watermark to the ledger's end if it is beyond. Holes stay: writing their updates closes
	// them. No facts are removed.
	RepairCoverage(ctx context.Context, end *ledger.Offset) error
	// RepairUpdates makes the facts of a page's range those of the page, and covers the range. Derived rows stay.
	RepairUpdates(ctx context.Context, scope ledger.Scope, page ledger.Page) error
	// RepairDerived computes the tables that follow from the facts again, and removes facts outside of the coverage.
	RepairDerived(ctx context.Context, step func(what string)) error
	// TakeIn begins entries that are not active as of an offset, and ends what has the keys from ActiveAt, there.
	TakeIn(ctx context.Context, at ledger.Offset, entries []ledger.ContractEntry, gone []string) error
	// RepairCarried makes the carried rows of the entries those of the page.
	RepairCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry) error
	// RepairLookup replaces the stored answer of a look-up.
	RepairLookup(ctx context.Context, lookup ledger.Lookup) error
	// DropCarried removes carried rows by the keys from CarriedAt.
	DropCarried(ctx context.Context, at ledger.Offset, keys []string) error
}
