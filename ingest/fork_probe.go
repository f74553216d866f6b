package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// A participant that was restored from a backup has the same id as before, and may have continued from there with other
// updates: a fork. As long as it shows the anchor, the last update that was read, at the same offset, and no update
// between the anchor and the offset at which reading continues, there is no fork.

// anchor is an update that was read before.
type anchor struct {
	offset ledger.Offset // 0: there is none
	id     string        // empty only where it is of an unknown kind, and no id could be read
}

// probe is the result of asking a participant for an anchor.
type probe struct {
	verdict probeVerdict
	update  *ledger.Update // the anchor, if it is shown at its offset; else nil
	instead string         // of a fork, for errors: what the ledger has instead
	other   *ledger.Update // the update that instead describes, if it is one
	unknown error          // why the verdict is forkUnknown
}

type probeVerdict int

const (
	notForked probeVerdict = iota
	forked
	forkUnknown
)

// errForked ends a try. The next one begins with forkCheck.begin, which finds out where the fork is.
var errForked = errors.New("the ledger answers with another history than it had")

// forkProber compares a participant's updates with the stored ones.
type forkProber struct {
	source UpdateReader
	stored StoredUpdates
}

// look asks for an anchor, and for updates above it up to an offset. If a request fails for good, the verdict is
// forkUnknown: reading on will return the error.
func (f forkProber) look(ctx context.Context, last anchor, upTo ledger.Offset) (probe, error) {
	if last.id != "" {
		update, _, err := f.source.UpdateOfScope(ctx, last.id)
		switch {
		case err == nil && update.Offset != last.offset:
			return probe{
				verdict: forked, other: &update, instead: fmt.Sprintf("the ledger has it at offset %d", update.Offset),
			}, nil
		case err == nil:
			return f.lookAfter(ctx, probe{update: &update}, last.offset, upTo)
		case ctx.Err() != nil:
			return probe{}, ctx.Err()
		}
	}
	// A server that can't look updates up by id may still show this one in the stream.
	s, err := f.lookThere(ctx, last)
	if err != nil || s.verdict != notForked {
		return s, err
	}
	return f.lookAfter(ctx, s, last.offset, upTo)
}

// lookLast asks for the last update that is stored up to an offset, and for others up to that offset. A fork is an
// error.
func (f forkProber) lookLast(ctx context.Context, at ledger.Offset) (last anchor, seen probe, err error) {
	if last.offset, last.id, err = f.stored.LastUpdate(ctx, at); err != nil || last.offset == 0 {
		return last, seen, err
	}
	if seen, err = f.look(ctx, last, at); err != nil {
		return last, seen, fmt.Errorf("read the last stored update, %s at offset %d, again: %w", last.id, last.offset, err)
	}
	if seen.verdict == forked {
		return last, seen, f.diverged(ctx, last, seen, last.offset)
	}
	return last, seen, nil
}

// lookThere reads the stream at an anchor's offset.
func (f forkProber) lookThere(ctx context.Context, last anchor) (probe, error) {
	end, err := f.source.LedgerEnd(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return probe{}, fmt.Errorf("ask for the ledger's end: %w", err)
	}
	if err == nil && end < last.offset {
		return probe{verdict: forked, instead: fmt.Sprintf("the ledger ends below the checkpoint, at offset %d", end)}, nil
	}
	page, err := f.source.ReadUpdates(ctx, last.offset-1, last.offset)
	switch {
	case Lasting(err):
		return probe{verdict: forkUnknown, unknown: err}, nil
	case err != nil:
		return probe{}, err
	case len(page.Updates) == 0:
		return probe{verdict: forked, instead: "the ledger has no update there"}, nil
	case page.Updates[0].ID != last.id:
		return probe{
			verdict: forked, other: &page.Updates[0], instead: fmt.Sprintf("the ledger has update %s there", page.Updates[0].ID),
		}, nil
	}
	return probe{update: &page.Updates[0]}, nil
}

// lookAfter checks that there is still no update after an offset up to another one.
func (f forkProber) lookAfter(ctx context.Context, s probe, after, upTo ledger.Offset) (probe, error) {
	for after < upTo {
		page, err := f.source.ReadUpdates(ctx, after, upTo)
		switch {
		case Lasting(err):
			s.verdict, s.unknown = forkUnknown, err
			return s, nil
		case err != nil:
			return probe{}, err
		case len(page.Updates) > 0:
			s.verdict, s.other = forked, &page.Updates[0]
			s.instead = fmt.Sprintf("the ledger has update %s at offset %d, where there was none", page.Updates[0].ID,
				page.Updates[0].Offset)
			return s, nil
		}
		after = page.To
	}
	return s, nil
}

// diverged returns the error for a fork. agreed is the last offset in common if the participant shows the anchor; else
// diverged searches for it below the anchor.
func (f forkProber) diverged(ctx context.Context, last anchor, seen probe, agreed ledger.Offset) error {
	what := fmt.Sprintf("the ledger has another history than the database: update %s is stored at offset %d, and %s",
		last.id, last.offset, seen.instead)
	if seen.update == nil {
		common, err := f.lastCommon(ctx, last.offset)
		if err != nil {
			return fmt.Errorf("%s; find up to where they agree: %w", what, err)
		}
		agreed = min(agreed, common)
	}
	if agreed == 0 {
		what += "; no stored update was found on which they agree"
	}
	return restored(f.stored, what, agreed)
}

// restored is the error for a ledger whose server was restored from a backup. agreed is the offset up to which it has
// the stored updates; 0: it is not known to have any of them.
func restored(stored StoredUpdates, what string, agreed ledger.Offset) *ledger.Problem {
	network := stored.OfNetwork()
	switch {
	case agreed == 0 && network:
		return &ledger.Problem{
			What: what,
			Do: "check --scan-url; if it leads to the right service, its network was created again, or the service was " +
				"restored from a backup older than what it still shows: index the network into a new database",
		}
	case agreed == 0:
		return &ledger.Problem{
			What: what,
			Do: "check --ledger-url; if it leads to the right participant, its ledger was created again, or restored from a " +
				"backup older than what it still shows: `indexer reanchor` says whether the participant has the stored " +
				"updates at other offsets; where it has none, index it into a new database, seeded with `backfill` where it is " +
				"pruned",
		}
	}
	what = fmt.Sprintf("%s; the last offset at which they agree is %d", what, agreed)
	if network {
		return &ledger.Problem{
			What: what,
			Do: fmt.Sprintf("the service was restored from an older backup: if that is to stay, run `indexer reset --network "+
				"--to-offset %d --apply`, which removes everything after that offset from the database, then start the "+
				"indexer again: it reads on from there", agreed),
		}
	}
	return &ledger.Problem{
		What: what,
		Do: "the participant was restored from an older backup: if that is to stay, run `indexer reanchor`, which says " +
			"what both have and, with --apply, removes everything after the last offset in common from the database, " +
			"then start the indexer again: it reads on from there",
	}
}

// lastCommon returns the offset of the last stored update below an offset that the participant has too; 0: none is
// known. It is a binary search: a fork agrees with the stored updates up to a point, and not after it.
func (f forkProber) lastCommon(ctx context.Context, differs ledger.Offset) (common ledger.Offset, err error) {
	// Nothing that is stored after low up to high is known to be common, or to be different but at high.
	for low, high := ledger.Offset(0), differs; low+1 < high; {
		middle := low + (high-low)/2
		offset, id, err := f.stored.LastUpdate(ctx, middle)
		if err != nil {
			return 0, err
		}
		if offset <= low {
			low = middle
			continue
		}
		seen, err := f.look(ctx, anchor{offset, id}, offset)
		if err != nil {
			return 0, err
		}
		switch seen.verdict {
		case notForked:
			common, low = offset, middle
		case forked:
			high = offset
		case forkUnknown: // pruned, mostly, and so is what lies below
			low = middle
		}
	}
	return common, nil
}
