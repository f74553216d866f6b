package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// A participant that was restored from a backup has the same id as before, and may have gone on from there with another
// history: a fork. It is detected by an anchor: as long as the participant shows that update where it was, and nothing between
// it and the place where reading goes on, its history is the one that is h.stored.

// anchor is an update that was read before.
type anchor struct {
	offset ledger.Offset // 0: there is none
	id     string        // empty only where it is of an unknown kind, and no id could be read
}

// probe is what a participant shows of an anchor.
type probe struct {
	verdict probeVerdict
	update  *ledger.Update // the anchor, where it is shown at its place; else nil
	instead string         // of another history: what the participant has in place of what was read
	other   *ledger.Update // the update that instead tells of, if it is one
	unknown error          // why it can't be said whether the history is the same
}

type probeVerdict int

const (
	sameHistory probeVerdict = iota
	anotherHistory
	unknownHistory
)

// errAnotherHistory ends a try: the next one looks closer.
var errAnotherHistory = errors.New("the participant answers with another history than it had")

// histories are the participant's and the stored one, which are to be the same.
type histories struct {
	source UpdateReader
	stored StoredUpdates
}

// look asks for an anchor, and whether anything lies behind it up to an offset. What can't be asked for any more is
// unknown: whatever is in the way of reading, reading on will meet it.
func (h histories) look(ctx context.Context, last anchor, upTo ledger.Offset) (probe, error) {
	if last.id != "" {
		update, _, err := h.source.UpdateOfScope(ctx, last.id)
		switch {
		case err == nil && update.Offset != last.offset:
			return probe{
				verdict: anotherHistory, other: &update, instead: fmt.Sprintf("the participant has it at offset %d", update.Offset),
			}, nil
		case err == nil:
			return h.lookBehind(ctx, probe{update: &update}, last.offset, upTo)
		case ctx.Err() != nil:
			return probe{}, ctx.Err()
		}
	}
	// A server that can't look updates up may still show this one where it was.
	s, err := h.lookThere(ctx, last)
	if err != nil || s.verdict != sameHistory {
		return s, err
	}
	return h.lookBehind(ctx, s, last.offset, upTo)
}

// lookThere reads the stream at an anchor's offset.
func (h histories) lookThere(ctx context.Context, last anchor) (probe, error) {
	end, err := h.source.LedgerEnd(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return probe{}, fmt.Errorf("ask for the ledger's end: %w", err)
	}
	if err == nil && end < last.offset {
		return probe{verdict: anotherHistory, instead: fmt.Sprintf("the participant's ledger ends below the checkpoint, at offset %d", end)}, nil
	}
	page, err := h.source.ReadUpdates(ctx, last.offset-1, last.offset)
	switch {
	case Lasting(err):
		return probe{verdict: unknownHistory, unknown: err}, nil
	case err != nil:
		return probe{}, err
	case len(page.Updates) == 0:
		return probe{verdict: anotherHistory, instead: "the participant has no update there"}, nil
	case page.Updates[0].ID != last.id:
		return probe{
			verdict: anotherHistory, other: &page.Updates[0], instead: fmt.Sprintf("the participant has update %s there", page.Updates[0].ID),
		}, nil
	}
	return probe{update: &page.Updates[0]}, nil
}

// lookBehind sees whether there is nothing after an offset up to another one, as there was nothing before.
func (h histories) lookBehind(ctx context.Context, s probe, after, upTo ledger.Offset) (probe, error) {
	for after < upTo {
		page, err := h.source.ReadUpdates(ctx, after, upTo)
		switch {
		case Lasting(err):
			s.verdict, s.unknown = unknownHistory, err
			return s, nil
		case err != nil:
			return probe{}, err
		case len(page.Updates) > 0:
			s.verdict, s.other = anotherHistory, &page.Updates[0]
			s.instead = fmt.Sprintf("the participant has update %s at offset %d, where there was none", page.Updates[0].ID, page.Updates[0].Offset)
			return s, nil
		}
		after = page.To
	}
	return s, nil
}

// diverged says what happened where the participant has another history, and up to where it is the one that is stored: agreed,
// where it shows the anchor, else what is found to be common below.
func (h histories) diverged(ctx context.Context, last anchor, seen probe, agreed ledger.Offset) error {
	what := fmt.Sprintf("the participant has another history than the database: update %s is stored at offset %d, and %s",
		last.id, last.offset, seen.instead)
	if seen.update == nil {
		common, err := h.lastCommon(ctx, last.offset)
		if err != nil {
			return fmt.Errorf("%s; find up to where they agree: %w", what, err)
		}
		agreed = min(agreed, common)
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
func (h histories) lastCommon(ctx context.Context, differs ledger.Offset) (common ledger.Offset, err error) {
	// Nothing that is stored after low up to high is known to be common, or to be different but at high.
	for low, high := ledger.Offset(0), differs; low+1 < high; {
		middle := low + (high-low)/2
		offset, id, err := h.stored.LastUpdate(ctx, middle)
		if err != nil {
			return 0, err
		}
		if offset <= low {
			low = middle
			continue
		}
		seen, err := h.look(ctx, anchor{offset, id}, offset)
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
