package ingest

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/ledger"
)

// CheckLast checks what Updates checks before it reads on: whether a participant has the last update that is stored up
// to an offset, and no other one up to there. If it has another history, the error is a *ledger.Problem. unknown says
// why that can't be decided.
func CheckLast(ctx context.Context, source UpdateReader, stored StoredUpdates, at ledger.Offset) (unknown, err error) {
	f := forkProber{inRanges{source, new(Ranges), slog.New(slog.DiscardHandler)}, stored}
	_, seen, err := f.lookLast(ctx, at)
	return seen.unknown, err
}

// CheckFork checks, before a comparison or repair, whether a participant has the updates that are stored up to an
// offset. If it has others, the error is a *ledger.Problem with the last offset in common. unknown says why that can't
// be decided, mostly because the participant was pruned.
//
// empty says that certainly no update is stored between the last update and the offset, so that one that the
// participant has there proves a fork.
//
// The indexer refuses a last update that differs in any way. CheckFork passes one that is only damaged: one that is
// stored as the participant shows it, except for another id, another offset, or a missing row in updates.
func CheckFork(ctx context.Context, source UpdateReader, stored StoredUpdates, at ledger.Offset,
	empty bool) (unknown, err error) {
	f := forkProber{source, stored}
	var last anchor
	if last.offset, last.id, err = stored.LastUpdate(ctx, at); err != nil {
		return nil, err
	}
	for last.offset > 0 {
		behind := last.offset
		if empty {
			behind = at
		}
		seen, err := f.look(ctx, last, behind)
		if err != nil {
			return nil, fmt.Errorf("read the last stored update, %s at offset %d, again: %w", last.id, last.offset, err)
		}
		if seen.verdict != forked {
			return seen.unknown, nil
		}
		damaged := false
		if seen.other != nil {
			if damaged, err = f.onlyDamaged(ctx, seen.other); err != nil {
				return nil, err
			}
		}
		switch {
		case !damaged:
			return nil, f.diverged(ctx, last, seen, last.offset)
		case seen.other.Offset >= last.offset:
			last = anchor{seen.other.Offset, seen.other.ID}
		default: // the last row has a wrong offset: look at the one before it
			if last.offset, last.id, err = stored.LastUpdate(ctx, last.offset-1); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// onlyDamaged reports whether what is stored at an update's offset is that update, though damaged. An update of a fork
// may do the same to the same contracts, but never differs in its id only. Rows of events without a row of their update
// mean that this row was lost.
func (f forkProber) onlyDamaged(ctx context.Context, update *ledger.Update) (bool, error) {
	page := ledger.Page{From: update.Offset - 1, To: update.Offset, Updates: []ledger.Update{*update}}
	is, err := f.stored.Deviation(ctx, page)
	if err != nil {
		return false, fmt.Errorf("compare update %s at offset %d with what is stored there: %w", update.ID, update.Offset,
			err)
	}
	if is.UpdateLost {
		return is.ElementsLost < update.Elements(), nil
	}
	return !is.UpdateAltered, nil
}
