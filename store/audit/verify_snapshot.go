package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	stored := func(each func(string, Difference) error) error { return u.Database.CarriedAt(ctx, at, each) }
	var surplus []string
	err = extras(read, stored, func(key string, d Difference) error {
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
	if err := u.repair(ctx, func() error { return u.Repairer.DropCarried(ctx, at, surplus) }); err != nil {
		return err
	}
	return extras(read, stored, func(_ string, d Difference) error { return u.countRemaining(ctx, d) })
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
	err := u.compareActive(ctx, at, nil, func(d Difference) error {
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

func (u *Updates) compareActive(ctx context.Context, at ledger.Offset, first *ledger.SnapshotPage, found Found) error {
	differs := func([]ledger.ContractEntry) Found { return found }
	return u.eachActive(ctx, at, first, differs, func(_ string, d Difference) error { return found(d) })
}

// eachActive compares what is active as of an offset with the participant's snapshot there. It calls differs for each
// page, and what that returns for the differences of the page; extra for what is stored as active and in no page, with
// its key. first is the first page, if it was read already.
func (u *Updates) eachActive(ctx context.Context, at ledger.Offset, first *ledger.SnapshotPage,
	differs func(entries []ledger.ContractEntry) Found, extra func(key string, d Difference) error) error {
	again := false
	read := func(seen func(key string)) (err error) {
		u.result.Active, err = u.snapshot(ctx, "active contracts", at, first, func(_ int64,
			entries []ledger.ContractEntry) error {
			report := ignore
			if !again {
				report = differs(entries)
			}
			return u.Database.CompareActive(ctx, at, entries, seen, report)
		})
		again, first = true, nil
		return err
	}
	stored := func(each func(string, Difference) error) error { return u.Database.ActiveAt(ctx, at, each) }
	return extras(read, stored, extra)
}
