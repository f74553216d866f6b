package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ledgerindexer/findings"
	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// snapshot reads a whole snapshot of the participant, calls each with every page, and returns the number of entries.
// before is the number of entries of the pages before. first is the first page, if it was read already.
func (u *Updates) snapshot(
	ctx context.Context, step string, at ledger.Offset, first *ledger.SnapshotPage,
	each func(before int64, entries []ledger.ContractEntry) error,
) (before int64, err error) {
	for page := first; ; {
		u.Progress(Progress{Step: step, Done: before})
		if page == nil {
			if page, err = u.snapshotPage(ctx, at, ledger.Token{}); err != nil {
				return before, err
			}
		}
		if err := each(before, page.Entries); err != nil {
			return before, err
		}
		before += int64(len(page.Entries))
		if page.Last {
			u.result.Compared = true
			return before, nil
		}
		if page, err = u.snapshotPage(ctx, at, page.Next); err != nil {
			return before, err
		}
	}
}

func (u *Updates) snapshotPage(ctx context.Context, at ledger.Offset,
	token ledger.Token) (*ledger.SnapshotPage, error) {
	page, err := withRetry(ctx, u.Logger,
		func() (ledger.SnapshotPage, error) {
			return u.Source.ReadSnapshot(ctx, at, token)
		})
	if err != nil {
		return nil, fmt.Errorf("read the snapshot at offset %d: %w", at, err)
	}
	return &page, u.sameLedger(ctx)
}

// carried compares the rows of the carried snapshot, if the participant still serves it.
func (u *Updates) carried(ctx context.Context) error {
	begun, err := u.Database.FinishedSnapshot(ctx)
	if err != nil || begun == nil || u.carriedRead {
		return err
	}
	u.carriedRead = true
	at := begun.At
	if at < u.pruned {
		u.note("the snapshot at offset %d, which is carried: the participant has pruned it (`verify --offline` compares it "+
			"with its digest, if it was sealed)", at)
		return nil
	}
	if begun.Pruned {
		return u.carriedByPruning(ctx, at)
	}
	again := false
	read := func(seen func(key string)) (err error) {
		u.result.Carried, err = u.snapshot(ctx, "the snapshot that is carried", at, nil,
			func(before int64, entries []ledger.ContractEntry) error {
				var keys []string
				compare := func(found Found) error {
					keys = keys[:0]
					return u.Database.CompareCarried(ctx, at, before, entries, func(key string) { keys = append(keys, key) }, found)
				}
				var err error
				if again {
					err = compare(ignore)
				} else {
					_, err = u.compared(ctx, compare, func() error { return u.Repairer.RepairCarried(ctx, at, before, entries) })
				}
				for _, key := range keys {
					seen(key)
				}
				return err
			})
		again = true
		return err
	}
	stored := func(each func(string, findings.Difference) error) error { return u.Database.CarriedAt(ctx, at, each) }
	var surplus []string
	err = extras(read, stored, func(key string, d findings.Difference) error {
		surplus = append(surplus, key)
		return u.Found(d)
	})
	if errors.Is(err, ledger.ErrNotOffered) {
		u.note("the snapshot at offset %d, which is carried: %v", at, err)
		return nil
	}
	if err != nil || len(surplus) == 0 || u.Repairer == nil {
		return err
	}
	if err := repairPatiently(ctx, u.Logger, func() error {
		return u.Repairer.DropCarried(ctx, at,
			surplus)
	}); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	u.result.Repaired++
	return extras(read, stored, func(_ string, d findings.Difference) error { return u.countRemaining(ctx, d) })
}

// carriedByPruning compares the rows that pruning made of what was active at the floor. They were made of events, so,
// as in active, it does not compare what the participant's snapshot has in another form than its stream. It does not
// repair them, because only the snapshot could replace them; what follows from them is repaired later. A participant
// that has no snapshot there leaves them without a comparison.
func (u *Updates) carriedByPruning(ctx context.Context, at ledger.Offset) error {
	if !u.Scope.Reassignments {
		return nil // active says so
	}
	whole := true
	err := u.compareActive(ctx, at, nil, func(d findings.Difference) error {
		if d.Rendering == nil && !slices.Contains(ofActiveSet, d.Relation) {
			whole = false
			if u.Repairer != nil {
				u.result.Remaining++
			}
		}
		return u.Found(d)
	})
	u.carriedWhole = whole && err == nil
	if errors.Is(err, ledger.ErrPruned) || errors.Is(err, ledger.ErrNotOffered) {
		u.note("the contracts that were active at offset %d, up to which everything was pruned: the participant does not "+
			"show them there (%v)", at, err)
		err = nil
	}
	u.result.Carried, u.result.Active = u.result.Active, 0
	return err
}

// ofActiveSet are the relations of differences that are of no event.
var ofActiveSet = []string{"active_contracts", "lifetimes"}

func ignore(findings.Difference) error { return nil }

// active compares the active set with a snapshot. The active set follows from the facts, so a difference comes from
// facts that were not read again: a repair reads these.
func (u *Updates) active(ctx context.Context) error {
	switch {
	case u.result.Bounds.StateFloor == nil:
		u.note("the active set: it is not known, because indexing began at offset %d without a snapshot",
			u.result.Bounds.Floor)
		return nil
	case !u.Scope.Reassignments:
		u.note("the active set: reassignments are not read (--no-reassignments), so contracts that moved to another " +
			"synchronizer are not known")
		return nil
	}
	newest, seldom, err := u.newestSnapshot(ctx)
	switch {
	case errors.Is(err, ledger.ErrNotOffered):
		u.note("the active set: %v", err)
		return nil
	case err != nil:
		return err
	case seldom && !u.Selection.All:
		u.note("the active set: its source's snapshot at offset %d takes a request for each contract; --all reads it", newest)
		return nil
	}
	at, first := newest, (*ledger.SnapshotPage)(nil)
	if !seldom {
		if at, first, err = u.beginActive(ctx); err != nil {
			return err
		}
	}
	switch {
	case at < u.pruned:
		u.note("the active set at offset %d: the participant has pruned it", at)
		return nil
	case at < *u.result.Bounds.StateFloor:
		u.note("the active set: the newest snapshot is at offset %d, before offset %d, from where the active set is known",
			at, *u.result.Bounds.StateFloor)
		return nil
	}
	u.result.ActiveAt = at
	var doubtful suspects
	differs := false
	err = u.compareActive(ctx, at, first, func(d findings.Difference) error {
		differs = true
		doubtful.add(d.Offset)
		return u.Found(d)
	})
	if err != nil || !differs || u.Repairer == nil {
		return err
	}
	if err := u.rereadSuspects(ctx, &doubtful); err != nil {
		return err
	}
	if err := u.derived(ctx); err != nil {
		return err
	}
	before := u.result.Remaining
	err = u.compareActive(ctx, at, nil, func(d findings.Difference) error { return u.countRemaining(ctx, d) })
	if u.result.Remaining > before {
		u.note("what made the active set differ lies in updates that were not read again: run `indexer verify --all " +
			"--repair`")
	}
	return err
}

func (u *Updates) compareActive(ctx context.Context, at ledger.Offset, first *ledger.SnapshotPage, found Found) error {
	again := false
	read := func(seen func(key string)) (err error) {
		report := found
		if again {
			report = ignore
		}
		u.result.Active, err = u.snapshot(ctx, "active contracts", at, first, func(_ int64,
			entries []ledger.ContractEntry) error {
			return u.Database.CompareActive(ctx, at, entries, seen, report)
		})
		again, first = true, nil
		return err
	}
	stored := func(each func(string, findings.Difference) error) error { return u.Database.ActiveAt(ctx, at, each) }
	return extras(read, stored, func(_ string, d findings.Difference) error { return found(d) })
}

func (u *Updates) countRemaining(ctx context.Context, d findings.Difference) error {
	if d.Rendering != nil { // also where it can't be read again, it is no difference
		return nil
	}
	u.result.Remaining++
	logRemaining(ctx, u.Logger, d)
	return nil
}

// newestSnapshot returns the offset of the newest snapshot that can be compared. seldom: the source has snapshots at
// few offsets; else it has one at every offset.
func (u *Updates) newestSnapshot(ctx context.Context) (at ledger.Offset, seldom bool, err error) {
	upTo := u.result.Bounds.Watermark
	if u.end != nil {
		upTo = min(upTo, *u.end)
	}
	at, err = withRetry(ctx, u.Logger, func() (ledger.Offset, error) { return u.Source.SnapshotOffset(ctx, upTo) })
	return at, at != upTo, err
}

// mostEnds is how often the ledger's end is asked for before the active set is compared at the watermark instead.
const mostEnds = 10

// beginActive chooses the offset at which the active set is compared: the ledger's end if the watermark reaches it,
// because some participants serve a snapshot with reassignments in flight only there; else the watermark. The ledger's
// end may move soon, so beginActive reads the first page there at once, and then waits for the watermark. It returns
// the page too.
func (u *Updates) beginActive(ctx context.Context) (at ledger.Offset, first *ledger.SnapshotPage, err error) {
	refused := ledger.Offset(-1)
	for try := 0; u.end != nil && try < mostEnds; try++ {
		end, err := withRetry(ctx, u.Logger, func() (ledger.Offset, error) { return u.Source.LedgerEnd(ctx) })
		if err != nil {
			return 0, nil, err
		}
		if end == refused {
			break
		}
		page, err := u.snapshotPage(ctx, end, ledger.Token{})
		if ingest.Lasting(err) { // perhaps this is not the end any more
			refused = end
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		at, err := u.reached(ctx, end)
		if err != nil {
			return 0, nil, err
		}
		if at == end {
			return end, page, nil
		}
		return at, nil, nil
	}
	bounds, _, err := u.Database.Bounds(ctx)
	return bounds.Watermark, nil, err
}

// reached waits until the watermark reaches an offset, and returns the offset; or the watermark, if it does not get
// there, or nobody moves it.
func (u *Updates) reached(ctx context.Context, at ledger.Offset) (ledger.Offset, error) {
	deadline := time.Now().Add(currentPatience)
	for {
		bounds, _, err := u.Database.Bounds(ctx)
		switch {
		case err != nil:
			return 0, err
		case bounds.Watermark >= at:
			return at, nil
		case time.Now().After(deadline):
			return bounds.Watermark, nil
		}
		if led, err := u.Database.Led(ctx); err != nil || !led {
			return bounds.Watermark, err
		}
		if ingest.Sleep(ctx, currentPatience/50); ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}
