package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ledgerindexer/ledger"
)

// walk walks over the participant's snapshot at an offset. first is the first page, if it was read already.
func (u *Updates) walk(step string, at ledger.Offset, first *ledger.SnapshotPage) *snapshotWalk {
	var w snapshotWalk
	w.read = func(ctx context.Context, token ledger.Token) (page ledger.SnapshotPage, err error) {
		u.Begin(Progress{Step: step, Done: w.before})
		if first != nil {
			page, first = *first, nil
		} else {
			page, err = u.snapshotPage(ctx, at, token)
		}
		u.result.Compared = u.result.Compared || err == nil && page.Last
		return page, err
	}
	return &w
}

func (u *Updates) snapshotPage(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	page, err := withRetry(ctx, u.Logger, func() (ledger.SnapshotPage, error) {
		return u.Source.ReadSnapshot(ctx, at, token)
	})
	if err != nil {
		return page, fmt.Errorf("read the snapshot at offset %d: %w", at, err)
	}
	return page, u.sameLedger(ctx)
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
		u.Note("the snapshot at offset %d, which is carried: the participant has pruned it (`verify --offline` compares it "+
			"with its digest, if it was sealed)", at)
		return nil
	}
	if begun.Pruned {
		return u.carriedByPruning(ctx, at, begun.Mixed)
	}
	var surplus []EntryKey
	err = u.walkCarried(ctx, at, func(key EntryKey, d Difference) {
		surplus = append(surplus, key)
		u.Found(d)
	})
	if errors.Is(err, ledger.ErrNotOffered) {
		u.Note("the snapshot at offset %d, which is carried: %v", at, err)
		return nil
	}
	if err != nil || len(surplus) == 0 || u.Repairer == nil {
		return err
	}
	return u.repaired(ctx, func(found Found) error {
		dropped := make(map[EntryKey]bool, len(surplus))
		for _, key := range surplus {
			dropped[key] = true
		}
		return u.Database.CarriedAt(ctx, at, func(key EntryKey, d Difference) {
			if dropped[key] {
				found(d)
			}
		})
	}, func() error { return u.Repairer.DropCarried(ctx, at, surplus) })
}

// walkCarried compares the carried rows with the snapshot, and repairs page by page what differs. extra is called for
// what is stored besides.
func (u *Updates) walkCarried(ctx context.Context, at ledger.Offset, extra EachStored) error {
	w := u.walk("the snapshot that is carried", at, nil)
	w.compare = func(ctx context.Context, before int64, entries []ledger.ContractEntry,
		again bool) (keys []EntryKey, err error) {
		compare := func(found Found) (err error) {
			keys, err = u.Database.CompareCarried(ctx, at, before, entries, found)
			return err
		}
		if again {
			err = compare(ignore)
			return keys, err
		}
		_, err = u.compared(ctx, compare, func() error { return u.Repairer.RepairCarried(ctx, at, before, entries) })
		return keys, err
	}
	w.stored = func(ctx context.Context, each EachStored) error { return u.Database.CarriedAt(ctx, at, each) }
	w.extra = extra
	err := w.all(ctx)
	u.result.Carried = w.before
	return err
}

// carriedByPruning compares the rows that pruning made of what was active at the floor. They were made of events, so,
// as in active, it does not compare what the participant's snapshot has in another form than its stream. It does not
// repair them, because only the snapshot could replace them; what follows from them is repaired later. A participant
// that has no snapshot there leaves them without a comparison, and so does another scope that some were of (mixed).
func (u *Updates) carriedByPruning(ctx context.Context, at ledger.Offset, mixed bool) error {
	if !u.Scope.Reassignments {
		return nil // active says so
	}
	whole := !mixed
	if mixed {
		u.Note("the creations of contracts that were active at offset %d, up to which everything was pruned: the scope was "+
			"changed before it, and the participant shows them as of now", at)
	}
	err := u.compareActive(ctx, at, nil, func(d Difference) {
		if d.Rendering == nil && !slices.Contains(ofActiveSet, d.Relation) {
			whole = false
			if u.Repairer != nil {
				u.leaves(d)
			}
		}
		u.Found(d)
	})
	u.carriedWhole = whole && err == nil
	if errors.Is(err, ledger.ErrPruned) || errors.Is(err, ledger.ErrNotOffered) {
		u.Note("the contracts that were active at offset %d, up to which everything was pruned: the participant does not "+
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
	return u.walkActive(ctx, at, first, differs, func(_ EntryKey, d Difference) { found(d) })
}

// walkActive compares what is active as of an offset with the participant's snapshot there. It calls differs for each
// page, and what that returns for the differences of the page; extra for what is stored as active and in no page, with
// its key. first is the first page, if it was read already.
func (u *Updates) walkActive(ctx context.Context, at ledger.Offset, first *ledger.SnapshotPage,
	differs func(entries []ledger.ContractEntry) Found, extra EachStored) error {
	if err := u.Database.refuseChangedScope(ctx, u.Database.db.Pool, u.Scope); err != nil {
		return err // all would differ
	}
	w := u.walk("active contracts", at, first)
	w.compare = func(ctx context.Context, _ int64, entries []ledger.ContractEntry, again bool) ([]EntryKey, error) {
		found := ignore
		if !again {
			found = differs(entries)
		}
		return u.Database.CompareActive(ctx, at, entries, found)
	}
	w.stored = func(ctx context.Context, each EachStored) error { return u.Database.ActiveAt(ctx, at, each) }
	w.extra = extra
	err := w.all(ctx)
	u.result.Active = w.before
	return err
}
