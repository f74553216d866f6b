package ingest

import (
	"context"
	"fmt"

	"ledgerindexer/ledger"
)

// UpdateReader is what it takes of a participant to detect a fork.
type UpdateReader interface {
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	// ReadUpdates reads on after an offset, as far as one request brings, at most up to `to`, which is not beyond the
	// ledger's end.
	ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)
	// UpdateOfScope reads an update by its id, as the stream shows it, and the answer as the server sent it. The error is
	// ledger.ErrNotFound where it does not show it, and ledger.ErrNotOffered where it can't look updates up.
	UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error)
}

// StoredUpdates is what it takes of a database to detect a fork.
type StoredUpdates interface {
	// LastUpdate is the last stored update at or below an offset, shown or not; at is 0 where there is none, and the id is
	// empty where none could be read.
	LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error)
	// Compare compares what is stored of a page's range with the page. An error of found ends it and is returned.
	Compare(ctx context.Context, page ledger.Page, found func(ledger.Difference) error) error
}

// CheckFork sees whether a participant has the history that is stored up to an offset, as an indexer does before it reads
// on, for those who are about to compare or repair. The error is a *ledger.Problem where it has another one, with the last
// offset at which they agree. unknown says why it can't be found out, mostly because the participant was pruned.
//
// empty says that nothing is stored from the last update up to the offset. Where that is not certain, what the participant has
// there proves nothing.
//
// Unlike an indexer it goes on where the last update is only damaged: where another id, another place or no row is stored of
// an update that is otherwise there as the participant shows it.
func CheckFork(ctx context.Context, source UpdateReader, stored StoredUpdates, at ledger.Offset, empty bool) (unknown, err error) {
	h := histories{source, stored}
	var last anchor
	if last.offset, last.id, err = stored.LastUpdate(ctx, at); err != nil {
		return nil, err
	}
	for last.offset > 0 {
		behind := last.offset
		if empty {
			behind = at
		}
		seen, err := h.look(ctx, last, behind)
		if err != nil {
			return nil, fmt.Errorf("read the last stored update, %s at offset %d, again: %w", last.id, last.offset, err)
		}
		if seen.verdict != anotherHistory {
			return seen.unknown, nil
		}
		damaged := false
		if seen.other != nil {
			if damaged, err = h.onlyDamaged(ctx, seen.other); err != nil {
				return nil, err
			}
		}
		switch {
		case !damaged:
			return nil, h.diverged(ctx, last, seen, last.offset)
		case seen.other.Offset >= last.offset:
			last = anchor{seen.other.Offset, seen.other.ID}
		default: // a row that belongs elsewhere: the one before it is the last
			if last.offset, last.id, err = stored.LastUpdate(ctx, last.offset-1); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// onlyDamaged tells whether what is stored at an update's offset is that update. Another history may have an update there that
// does the same to the same contracts, but not one that is the same except for its id; and where rows of events are stored
// without their update, a row was lost.
func (h histories) onlyDamaged(ctx context.Context, update *ledger.Update) (bool, error) {
	page := ledger.Page{From: update.Offset - 1, To: update.Offset, Updates: []ledger.Update{*update}}
	rowLost, altered, lost := false, false, 0
	err := h.stored.Compare(ctx, page, func(d ledger.Difference) error {
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
