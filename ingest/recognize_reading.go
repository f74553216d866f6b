package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ledgerindexer/ledger"
)

// recognition sees while pages are read whether they come from the history that was read before. It is safe for
// concurrent use.
type recognition struct {
	updates *Updates
	turn    chan struct{} // one slot, taken while a page is accepted: what is guarded by it stands below

	mark    landmark       // the highest update that was read
	empty   []ledger.Range // behind it, where nothing came, in order
	changes int64          // of the source when all this was last seen to be so
}

func newRecognition(u *Updates) *recognition {
	return &recognition{updates: u, turn: make(chan struct{}, 1), changes: u.Source.Changes()}
}

// recognizeAll sees whether the participant has the history that is stored, up to the watermark and in the ranges ahead of
// it.
func (u *Updates) recognizeAll(ctx context.Context, at ledger.Offset, ahead []ledger.Range) (*recognition, error) {
	r := newRecognition(u)
	var err error
	if r.mark, err = u.recognize(ctx, at); err != nil {
		return nil, err
	}
	if r.mark.offset > 0 {
		r.nothing(ledger.Range{From: r.mark.offset, To: at})
	}
	if len(ahead) == 0 {
		return r, nil
	}
	offset, id, err := u.Sink.LastUpdate(ctx, ahead[len(ahead)-1].To)
	if err != nil {
		return nil, err
	}
	if offset > at {
		r.mark = landmark{offset, id}
	}
	for _, stored := range ahead {
		r.nothing(ledger.Range{From: max(stored.From, offset), To: stored.To})
	}
	seen, err := r.look(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read what is stored ahead of the watermark, up to offset %d, again: %w", ahead[len(ahead)-1].To, err)
	case seen.verdict == anotherHistory:
		return nil, u.divergedAhead(ctx, r.mark, seen, at)
	case seen.verdict == unknownHistory:
		u.notRecognized(ctx, r.mark, seen.unknown)
	}
	return r, nil
}

// divergedAhead is diverged for what is stored ahead of a watermark: to go back to the watermark is enough, or further where the
// histories part before it.
func (u *Updates) divergedAhead(ctx context.Context, mark landmark, seen sighting, at ledger.Offset) error {
	what := fmt.Sprintf("the participant has another history than the database: of what is stored ahead of the watermark, "+
		"up to update %s at offset %d, %s", mark.id, mark.offset, seen.instead)
	agreed := at
	if seen.update == nil {
		common, err := lastCommon(ctx, u.history(), u.Sink, mark.offset)
		if err != nil {
			return fmt.Errorf("%s; find up to where they agree: %w", what, err)
		}
		agreed = min(common, at)
	}
	return restored(what, agreed)
}

// accept lets a page pass that is certainly of the history that was read before. began is what Changes told before the page
// was asked for. Where another server may have begun to answer since then, or since something was last accepted, the
// landmark is looked for, and the page too: of two servers, either may have answered. The error is errAnotherHistory where
// they are not there: what was accepted before is to be stored, and then compared.
//
// Pages are accepted one after the other: one of another server that answers by then is to meet the one before as the landmark.
func (r *recognition) accept(ctx context.Context, began int64, page *ledger.Page) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.give()
	changes, err := r.confirm(ctx, false)
	if err != nil {
		return err
	}
	if changes != began {
		if err := r.confirmPage(ctx, page); err != nil {
			return err
		}
	}
	r.passed(page)
	return nil
}

// stuck looks for the landmark where the source can't go on: it may be another one. It returns nil where it is not, or where
// that can't be found out: why it is stuck says more.
func (r *recognition) stuck(ctx context.Context) error {
	if r.take(ctx) != nil {
		return nil
	}
	defer r.give()
	_, err := r.confirm(ctx, true)
	return err
}

// take waits until no other page is being accepted. Who took the turn gives it back.
func (r *recognition) take(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *recognition) give() { <-r.turn }

// confirm looks for the landmark where another server may have begun to answer, or in any case. changes is that of the source
// when all was seen to be as before.
func (r *recognition) confirm(ctx context.Context, stuck bool) (changes int64, err error) {
	changes = r.updates.Source.Changes()
	if changes == r.changes && !stuck {
		return changes, nil
	}
	if r.mark.offset > 0 {
		seen, err := r.look(ctx)
		switch {
		case err != nil && stuck:
			return changes, nil
		case err != nil:
			return 0, fmt.Errorf("read the last update, %s at offset %d, again: %w", r.mark.id, r.mark.offset, err)
		case seen.verdict == anotherHistory:
			return 0, fmt.Errorf("%w: update %s came at offset %d, and now %s", errAnotherHistory, r.mark.id, r.mark.offset, seen.instead)
		case seen.verdict == unknownHistory && !stuck:
			r.updates.notRecognized(ctx, r.mark, seen.unknown)
		}
	}
	r.changes = changes
	return changes, nil
}

// look asks for the landmark, and whether there is still nothing where nothing came.
func (r *recognition) look(ctx context.Context) (sighting, error) {
	seen := sighting{}
	var err error
	if r.mark.offset > 0 {
		seen, err = look(ctx, r.updates.history(), r.mark, r.mark.offset)
	}
	for _, nothing := range r.empty {
		if err != nil || seen.verdict != sameHistory {
			break
		}
		seen, err = lookBehind(ctx, r.updates.history(), seen, nothing.From, nothing.To)
	}
	return seen, err
}

// confirmPage reads the end of a page again.
func (r *recognition) confirmPage(ctx context.Context, page *ledger.Page) error {
	var seen sighting
	var err error
	if n := len(page.Updates); n > 0 {
		last := &page.Updates[n-1]
		seen, err = look(ctx, r.updates.history(), landmark{last.Offset, last.ID}, page.To)
	} else {
		seen, err = lookBehind(ctx, r.updates.history(), sighting{}, page.From, page.To)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read offsets after %d up to %d again: %w", page.From, page.To, err)
	case seen.verdict == anotherHistory:
		return fmt.Errorf("%w: something else came after offset %d up to %d, and now %s", errAnotherHistory, page.From, page.To, seen.instead)
	}
	return nil
}

// passed takes in a page that was accepted.
func (r *recognition) passed(page *ledger.Page) {
	from := page.From
	if n := len(page.Updates); n > 0 {
		last := &page.Updates[n-1]
		from = last.Offset
		if last.Offset > r.mark.offset {
			r.mark = landmark{last.Offset, last.ID}
		}
	}
	r.nothing(ledger.Range{From: from, To: page.To})
}

// nothing notes a range in which nothing came, as far as it lies behind the landmark.
func (r *recognition) nothing(came ledger.Range) {
	var kept []ledger.Range
	i, _ := slices.BinarySearchFunc(r.empty, came.From, func(e ledger.Range, from ledger.Offset) int { return cmp.Compare(e.From, from) })
	for _, e := range slices.Insert(r.empty, i, came) {
		e.From = max(e.From, r.mark.offset)
		switch last := len(kept) - 1; {
		case e.From >= e.To:
		case last >= 0 && kept[last].To == e.From:
			kept[last].To = e.To
		default:
			kept = append(kept, e)
		}
	}
	r.empty = kept
}
