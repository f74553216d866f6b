package ingest

import (
	"context"
	"fmt"

	"ledgerindexer/ledger"
)

// HistoryKeeper is what it takes of a participant to recognize its history; see UpdateSource.
type HistoryKeeper interface {
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)
	UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error)
}

// StoredUpdates is what it takes of a database to recognize a history in it; see UpdateSink.
type StoredUpdates interface {
	LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error)
	Compare(ctx context.Context, page ledger.Page, found func(ledger.Difference) error) error
}

// Recognize sees whether a participant has the history that is stored up to an offset, as an indexer does before it reads
// on, for those who are about to compare or repair. The error is a *ledger.Problem where it has another one, with the last
// offset at which they agree. unknown says why it can't be found out, mostly because the participant was pruned.
//
// empty says that nothing is stored from the last update up to the offset. Where that is not certain, what the participant has
// there proves nothing.
//
// Unlike an indexer it goes on where the last update is only damaged: where another id, another place or no row is stored of
// an update that is otherwise there as the participant shows it.
func Recognize(ctx context.Context, source HistoryKeeper, stored StoredUpdates, at ledger.Offset, empty bool) (unknown, err error) {
	var mark landmark
	if mark.offset, mark.id, err = stored.LastUpdate(ctx, at); err != nil {
		return nil, err
	}
	for mark.offset > 0 {
		behind := mark.offset
		if empty {
			behind = at
		}
		seen, err := look(ctx, source, mark, behind)
		if err != nil {
			return nil, fmt.Errorf("read the last stored update, %s at offset %d, again: %w", mark.id, mark.offset, err)
		}
		if seen.verdict != anotherHistory {
			return seen.unknown, nil
		}
		damaged := false
		if seen.other != nil {
			if damaged, err = onlyDamaged(ctx, stored, seen.other); err != nil {
				return nil, err
			}
		}
		switch {
		case !damaged:
			return nil, diverged(ctx, source, stored, mark, seen)
		case seen.other.Offset >= mark.offset:
			mark = landmark{seen.other.Offset, seen.other.ID}
		default: // a row that belongs elsewhere: the one before it is the last
			if mark.offset, mark.id, err = stored.LastUpdate(ctx, mark.offset-1); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// onlyDamaged tells whether what is stored at an update's offset is that update. Another history may have an update there that
// does the same to the same contracts, but not one that is the same except for its id; and where rows of events are stored
// without their update, a row was lost.
func onlyDamaged(ctx context.Context, stored StoredUpdates, update *ledger.Update) (bool, error) {
	page := ledger.Page{From: update.Offset - 1, To: update.Offset, Updates: []ledger.Update{*update}}
	rowLost, altered, lost := false, false, 0
	err := stored.Compare(ctx, page, func(d ledger.Difference) error {
		switch {
		case d.Relation == "updates" && d.Kind == ledger.Missing:
			rowLost = true
		case d.Relation == "updates" && d.Column != "update_id" && !d.Lacking():
			altered = true
		case d.Kind == ledger.Missing && d.Element:
			lost++
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("compare update %s at offset %d with what is stored there: %w", update.ID, update.Offset, err)
	}
	if rowLost {
		return lost < update.Elements(), nil
	}
	return !altered, nil
}
