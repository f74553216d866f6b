package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// A participant that was restored from a backup has the same id as before, and may have gone on from there with another
// history. It is recognized by a landmark: as long as it shows that update where it was, and nothing between it and the
// place where reading goes on, its history is the one that is stored.

// landmark is an update that was read before.
type landmark struct {
	offset ledger.Offset // 0: there is none
	id     string        // empty only where it is of an unknown kind, and no id could be read
}

// sighting is what a participant shows of a landmark.
type sighting struct {
	verdict sightingVerdict
	update  *ledger.Update // the landmark, where it is shown at its place; else nil
	instead string         // of another history: what the participant has in place of what was read
	other   *ledger.Update // the update that instead tells of, if it is one
	unknown error          // why it can't be said whether the history is the same
}

type sightingVerdict int

const (
	sameHistory sightingVerdict = iota
	anotherHistory
	unknownHistory
)

// errAnotherHistory ends a try: the next one looks closer.
var errAnotherHistory = errors.New("the participant answers with another history than it had")

// look asks for a landmark, and whether anything lies behind it up to an offset. What can't be asked for any more is
// unknown: whatever is in the way of reading, reading on will meet it.
func look(ctx context.Context, source HistoryKeeper, mark landmark, upTo ledger.Offset) (sighting, error) {
	if mark.id != "" {
		update, _, err := source.UpdateOfScope(ctx, mark.id)
		switch {
		case err == nil && update.Offset != mark.offset:
			return sighting{
				verdict: anotherHistory, other: &update, instead: fmt.Sprintf("the participant has it at offset %d", update.Offset),
			}, nil
		case err == nil:
			return lookBehind(ctx, source, sighting{update: &update}, mark.offset, upTo)
		case ctx.Err() != nil:
			return sighting{}, ctx.Err()
		}
	}
	// A server that can't look updates up may still show this one where it was.
	s, err := lookThere(ctx, source, mark)
	if err != nil || s.verdict != sameHistory {
		return s, err
	}
	return lookBehind(ctx, source, s, mark.offset, upTo)
}

// lookThere reads the stream at a landmark's offset.
func lookThere(ctx context.Context, source HistoryKeeper, mark landmark) (sighting, error) {
	end, err := source.LedgerEnd(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return sighting{}, fmt.Errorf("ask for the ledger's end: %w", err)
	}
	if err == nil && end < mark.offset {
		return sighting{verdict: anotherHistory, instead: fmt.Sprintf("the participant's ledger ends below the checkpoint, at offset %d", end)}, nil
	}
	page, err := source.ReadUpdates(ctx, mark.offset-1, mark.offset)
	switch {
	case Lasting(err):
		return sighting{verdict: unknownHistory, unknown: err}, nil
	case err != nil:
		return sighting{}, err
	case len(page.Updates) == 0:
		return sighting{verdict: anotherHistory, instead: "the participant has no update there"}, nil
	case page.Updates[0].ID != mark.id:
		return sighting{
			verdict: anotherHistory, other: &page.Updates[0], instead: fmt.Sprintf("the participant has update %s there", page.Updates[0].ID),
		}, nil
	}
	return sighting{update: &page.Updates[0]}, nil
}

// lookBehind sees whether there is nothing after an offset up to another one, as there was nothing before.
func lookBehind(ctx context.Context, source HistoryKeeper, s sighting, after, upTo ledger.Offset) (sighting, error) {
	for after < upTo {
		page, err := source.ReadUpdates(ctx, after, upTo)
		switch {
		case Lasting(err):
			s.verdict, s.unknown = unknownHistory, err
			return s, nil
		case err != nil:
			return sighting{}, err
		case len(page.Updates) > 0:
			s.verdict, s.other = anotherHistory, &page.Updates[0]
			s.instead = fmt.Sprintf("the participant has update %s at offset %d, where there was none", page.Updates[0].ID, page.Updates[0].Offset)
			return s, nil
		}
		after = page.To
	}
	return s, nil
}

// recognize sees whether the participant has the history that is stored up to an offset. The landmark that it returns was
// shown, or there is none.
func (u *Updates) recognize(ctx context.Context, at ledger.Offset) (landmark, error) {
	offset, id, err := u.Sink.LastUpdate(ctx, at)
	if err != nil || offset == 0 {
		return landmark{}, err
	}
	mark := landmark{offset, id}
	seen, err := look(ctx, u.history(), mark, at)
	if err != nil {
		return landmark{}, fmt.Errorf("read the last stored update, %s at offset %d, again: %w", id, offset, err)
	}
	switch seen.verdict {
	case anotherHistory:
		return landmark{}, diverged(ctx, u.history(), u.Sink, mark, seen)
	case unknownHistory:
		u.notRecognized(ctx, mark, seen.unknown)
	}
	if seen.update == nil {
		return landmark{}, nil
	}
	return mark, u.compareContent(ctx, mark, seen.update)
}

// history is the source, for recognizing its history.
func (u *Updates) history() HistoryKeeper { return inRanges{u.Source, &u.ranges, u.Logger} }

func (u *Updates) notRecognized(ctx context.Context, mark landmark, why error) {
	if u.unrecognized {
		return
	}
	u.unrecognized = true
	u.Logger.WarnContext(ctx, "whether the participant still has the history that is stored can't be found out",
		"stream", "updates", "update", mark.id, "offset", int64(mark.offset), "error", why)
}

// compareContent compares a landmark with what is stored of it. A difference is no other history: an update's id and offset
// tell which one it is. It is said, and reading goes on: what is to come is not concerned.
func (u *Updates) compareContent(ctx context.Context, mark landmark, update *ledger.Update) error {
	if u.compared == mark.offset {
		return nil
	}
	page := ledger.Page{From: mark.offset - 1, To: mark.offset, Updates: []ledger.Update{*update}}
	c, err := u.differences(ctx, page)
	if err == nil && c.Differences > 0 {
		// What counts is how the stream shows it: that was stored.
		page, err = u.Source.ReadUpdates(ctx, page.From, page.To)
		if err == nil {
			c, err = u.differences(ctx, page)
		}
		if Lasting(err) {
			err, c = nil, ledger.Comparison{}
		}
	}
	if err != nil {
		return fmt.Errorf("compare the last stored update, %s at offset %d, with the ledger: %w", mark.id, mark.offset, err)
	}
	u.compared = mark.offset
	u.tellContent(ctx, mark, c)
	return nil
}

func (u *Updates) tellContent(ctx context.Context, mark landmark, c ledger.Comparison) {
	if c.Differences == 0 {
		return
	}
	attributes := []any{"stream", "updates", "update", mark.id, "offset", int64(mark.offset), "differences", c.Differences, "first", c.First[0].String()}
	if c.Differences == c.Lacking {
		u.Logger.InfoContext(ctx, "the participant shows values of the last stored update that it did not show before, as one does that "+
			"was upgraded; `indexer verify --repair` stores them", attributes...)
		return
	}
	u.Logger.ErrorContext(ctx, "the last stored update is not stored as the participant shows it: run `indexer verify --repair`", attributes...)
}

func (u *Updates) differences(ctx context.Context, page ledger.Page) (c ledger.Comparison, err error) {
	err = u.Sink.Compare(ctx, page, c.Add)
	return c, err
}

// diverged says what happened where the participant has another history, and up to where it is the one that is stored.
func diverged(ctx context.Context, source HistoryKeeper, stored StoredUpdates, mark landmark, seen sighting) error {
	what := fmt.Sprintf("the participant has another history than the database: update %s is stored at offset %d, and %s",
		mark.id, mark.offset, seen.instead)
	agreed, err := mark.offset, error(nil)
	if seen.update == nil {
		if agreed, err = lastCommon(ctx, source, stored, mark.offset); err != nil {
			return fmt.Errorf("%s; find up to where they agree: %w", what, err)
		}
	}
	if agreed == 0 {
		what += "; no stored update was found on which they agree"
	}
	return restored(what, agreed)
}

// restored is what an operator must know and do about a participant that lost history. agreed is the offset up to which it
// has what is stored; 0: it is not known to have any of it.
func restored(what string, agreed ledger.Offset) *ledger.Problem {
	if agreed == 0 {
		return &ledger.Problem{
			What: what,
			Do: "check --ledger-url; if it leads to the right participant, its ledger was made anew, or restored from a backup older than " +
				"what it still shows: index it into a new database, seeded with `backfill` where the participant is pruned",
		}
	}
	return &ledger.Problem{
		What: fmt.Sprintf("%s; the last offset at which they agree is %d", what, agreed),
		Do: fmt.Sprintf("the participant was restored from an older backup: if that is to stay, run `indexer reset --to-offset %d`, "+
			"which removes everything after offset %d from the database, then start the indexer again: it reads on from there", agreed, agreed),
	}
}

// lastCommon is the offset of the last stored update below an offset that the participant has too; 0: none is known. It
// halves the range again and again: histories agree up to a point, and not after it.
func lastCommon(ctx context.Context, source HistoryKeeper, stored StoredUpdates, differs ledger.Offset) (common ledger.Offset, err error) {
	// Nothing that is stored after low up to high is known to be common, or to be different but at high.
	for low, high := ledger.Offset(0), differs; low+1 < high; {
		middle := low + (high-low)/2
		offset, id, err := stored.LastUpdate(ctx, middle)
		if err != nil {
			return 0, err
		}
		if offset <= low {
			low = middle
			continue
		}
		seen, err := look(ctx, source, landmark{offset, id}, offset)
		if err != nil {
			return 0, err
		}
		switch seen.verdict {
		case sameHistory:
			common, low = offset, middle
		case anotherHistory:
			high = offset
		case unknownHistory: // pruned, mostly, and so is what lies below
			low = middle
		}
	}
	return common, nil
}
