package audit

import (
	"context"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Updates verifies what is stored of a participant's updates. It may run beside the daemon, while the ledger grows: it
// compares what was stored when it began.
type Updates struct {
	*Verification
	Source    UpdateSource
	Scope     ledger.Scope
	Selection Selection
	// Stretches returns approximately the parts of a range in which there are updates, in order. Random offsets are picked
	// in these. nil: updates are everywhere.
	Stretches func(ctx context.Context, r ledger.Range) ([]ledger.Range, error)

	result       UpdatesResult
	end          *ledger.Offset // of the ledger; nil: the server does not report it
	beyond       *ledger.Offset // the end if the watermark is beyond it; else nil
	pruned       ledger.Offset
	carriedRead  bool
	carriedWhole bool // what pruning kept here is what the participant shows there

	// where interface views are rendered otherwise: a repair stores them so, and what follows from them differs then
	refreshed suspects

	undecided bool  // a note says that a fork can't be ruled out
	changes   int64 // of the source when a fork was last looked for
}

// Selection selects the updates to read again.
type Selection struct {
	All      bool
	From, To *ledger.Offset // from exclusive, to inclusive; nil: the history floor, or the watermark
	Sample   int            // without All, From and To: this many pages from random offsets
	Seed     uint64         // of the random offsets; 0: a new one each time
}

// UpdatesResult is what was compared. Its JSON form is for scripts.
type UpdatesResult struct {
	store.Extent
	ActiveAt ledger.Offset `json:"active_at,omitempty"` // where the active set was compared
	Updates  int64         `json:"updates"`             // that were read again
	Active   int64         `json:"active_contracts"`    // entries of the snapshot that were compared
	Carried  int64         `json:"carried_entries"`     // entries of the carried snapshot that were compared
	Lookups  int64         `json:"-"`                   // contracts that were looked up again
	Repaired int64         `json:"repairs"`             // windows that were written again
	Seed     uint64        `json:"seed,omitempty"`      // of the random offsets that were read; 0: none were
	// at least one answer of the source was compared, an empty one included
	Compared bool `json:"-"`
	// a range was chosen, and nothing in it was compared
	Unread bool `json:"-"`
}

// differing compares, and reports whether anything is to be written again: what differs, or is rendered otherwise.
func (u *Updates) differing(compare func(Found) error) (differences int64, repair bool, err error) {
	err = compare(func(d Difference) {
		if repair = true; d.Rendering == nil {
			differences++
		} else {
			u.refreshed.add(d.Offset)
		}
		u.Found(d)
	})
	return differences, repair && u.Repairer != nil, err
}

// compared compares, repairs what differs, and compares again.
func (u *Updates) compared(ctx context.Context, compare func(Found) error,
	repair func() error) (differences int64, err error) {
	differences, differs, err := u.differing(compare)
	if err != nil || !differs {
		return differences, err
	}
	return differences, u.repaired(ctx, compare, repair)
}

// repaired repairs what differs, and compares again. Holes in the coverage do not count as left: a later step closes
// them, or counts what of them it can't.
func (u *Updates) repaired(ctx context.Context, compare func(Found) error, repair func() error) error {
	if err := u.repair(ctx, repair); err != nil {
		return err
	}
	return compare(func(d Difference) {
		if d.Relation != "coverage" || d.Kind != Missing {
			u.remains(d)
		}
	})
}

func (u *Updates) repair(ctx context.Context, repair func() error) error {
	err := u.Verification.repair(ctx, repair)
	if err == nil {
		u.result.Repaired++
	}
	return err
}

// checkFork refuses a participant with a fork of the stored updates: a comparison would mean nothing, and a repair
// would mix the two. It looks at the last update that is stored up to at. empty says that there is certainly none
// between that update and at.
func (u *Updates) checkFork(ctx context.Context, at ledger.Offset, empty bool) error {
	var unknown error
	err := Retry(ctx, u.Logger, func() (err error) {
		unknown, err = ingest.CheckFork(ctx, u.Source, u.Database, at, empty)
		return err
	})
	if unknown != nil && !u.undecided {
		u.undecided = true
		u.Note("whether the participant has the history that is stored: the last stored update can't be read again: %v",
			unknown)
	}
	return err
}

// sameLedger is called after each answer, before anything is compared with it. It looks for a fork if another server
// may have answered: the participant may have been restored meanwhile.
func (u *Updates) sameLedger(ctx context.Context) error {
	now := u.Source.Changes()
	if now == u.changes {
		return nil
	}
	if err := u.checkFork(ctx, u.result.Watermark, false); err != nil {
		return err
	}
	u.changes = now
	return nil
}

// readRange reads a range again, page by page, and compares it. uncovered says that its pages have no coverage row:
// they are written also where all of their facts are stored.
func (u *Updates) readRange(ctx context.Context, step string, r ledger.Range, uncovered bool) error {
	for at := r.From; at < r.To; {
		u.Begin(Progress{Step: step, Done: int64(at - r.From), Of: int64(r.To - r.From)})
		page, err := u.comparePage(ctx, ledger.Range{From: at, To: r.To}, uncovered)
		if err != nil {
			return err
		}
		at = page.To
	}
	return nil
}

// comparePage reads the beginning of a range again, and compares it. A repair compares it once more, while nobody
// else writes, so what it has written is not compared again.
func (u *Updates) comparePage(ctx context.Context, r ledger.Range, uncovered bool) (page ledger.Page, err error) {
	page, err = withRetry(ctx, u.Logger, func() (ledger.Page, error) { return u.Source.ReadUpdates(ctx, r.From, r.To) })
	if err == nil {
		err = u.sameLedger(ctx)
	}
	if err != nil {
		return page, err
	}
	u.result.Compared = true
	u.result.Updates += int64(len(page.Updates))
	_, differs, err := u.differing(func(found Found) error { return u.Database.Compare(ctx, page, found) })
	if err != nil || u.Repairer == nil || !differs && !uncovered {
		return page, err
	}
	return page, u.repair(ctx, func() error { return u.Repairer.RepairUpdates(ctx, u.Scope, page) })
}

// stillServed returns the part of a range that the participant still serves, and adds a note about the rest.
func (u *Updates) stillServed(what string, r ledger.Range) ledger.Range {
	if u.pruned > r.From && r.From < r.To {
		u.Note("%s after offset %d up to %d: the participant has pruned them (`verify --offline` compares them with the "+
			"digests of sealed windows)",
			what, r.From, min(u.pruned, r.To))
		r.From = u.pruned
	}
	return r
}
