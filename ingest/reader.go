package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// How often a reader, which reads near the ledger's end, asks where that end is.
const (
	// While polls come back full, the ledger's end is asked for this often.
	askEndEvery = 5 * time.Second
	// A poll that takes longer is looked at: the ledger's end is asked for beside it, this often. A poll on a quiet ledger
	// takes LongPoll.
	besideEvery = LongPoll + 5*time.Second
	// If the server does not report its end, catching up uses open-ended reads too. Such a read returns when no update has
	// come for this long, which delays the updates before, so it is short.
	blindIdle = 200 * time.Millisecond
)

// reader chooses between bounded reads, while the ledger is ahead, and polls, which are open-ended. A poll on a quiet
// ledger returns with the first update. On a busy one it waits for as many as come within gatherFor, so that a thousand
// updates a second cost no more requests than thirty.
type reader struct {
	*updatesRun
	at     ledger.Offset // everything up to here has been read
	agreed ledger.Offset // the participant was compared with the stored updates up to here; 0: it was not
	meter  *Meter

	end    ledger.Offset // of the ledger, as last known
	blind  bool          // the server does not report its end
	asked  bool          // the end was asked for before
	looked time.Time     // when the end was last asked for between full polls
	polls  bool          // nothing is left to read: the next read is a poll
	most   int           // updates that a poll waits for; 0 counts as 1
	rhythm rhythm
	idle   idlePolls
}

// errFarBehind ends the tail when catching up is faster.
var errFarBehind = errors.New("the ledger's end is far ahead")

// next reads one page; it may be empty.
func (r *reader) next(ctx context.Context) (fetched, error) {
	if !r.blind && !r.polls && r.at >= r.end {
		if err := r.askEnd(ctx); err != nil {
			return fetched{}, err
		}
	}
	switch {
	case r.polls:
		return r.poll(ctx)
	case r.blind:
		// A short idle gap may only mean a slow server: the next poll shows whether this was all.
		began := time.Now()
		page, full, err := r.Source.TailUpdates(ctx, r.at, mostPolled, blindIdle)
		if err == nil { // if the server had to wait, nothing older is left
			waited := r.rhythm.answered(time.Since(began), full, blindIdle)
			r.polls = !full || waited >= blindIdle/2
		}
		return fetched{page: page, answered: true}, err
	case r.at < r.end && r.sizes.far(r.end-r.at):
		return fetched{}, errFarBehind
	case r.at < r.end:
		asked := ledger.Range{From: r.at, To: r.at + r.sizes.clamp(r.end-r.at)}
		page, err := r.sizes.ask(ctx, r.Source.ReadUpdates, asked)
		if err != nil {
			return fetched{}, err
		}
		r.polls = page.To >= r.end
		r.sizes.learn(&page, page.To < asked.To)
		return fetched{page: page, answered: true, current: r.polls}, nil
	default: // current: report that before the poll, which may take long
		r.polls = true
		return fetched{page: ledger.Page{From: r.at, To: r.at}, current: true}, nil
	}
}

// poll waits for the next updates.
func (r *reader) poll(ctx context.Context) (fetched, error) {
	began := r.idle.begin(ctx)
	limit := max(1, r.most)
	gap := longestGap(limit)
	page, full, err := r.tailBeside(ctx, limit, gap)
	if errors.Is(err, errOvertaken) {
		r.polls = false
		r.Logger.WarnContext(ctx,
			"waiting for updates brings nothing, although the ledger's end has moved; reading up to there",
			"stream", "updates", "offset", int64(r.at), "end", int64(r.end), "waited", time.Since(began).String())
		return fetched{page: ledger.Page{From: r.at, To: r.at}}, nil
	}
	if err != nil {
		return fetched{}, err
	}
	waited := r.rhythm.answered(time.Since(began), full, gap)
	nothing := page.To == page.From
	r.idle.ended(began, nothing)
	r.most = r.rhythm.limit(len(page.Updates), waited)
	if page.To >= r.end && !r.blind { // also if the end has not moved
		r.end = page.To
		r.learnEnd(r.end, r.meter)
	}
	r.polls = !full || limit < mostPolled || waited >= gatherFor // else many more may be there
	// A server that had to wait has nothing more; but one that does not report its end may only have been slow.
	current := nothing && limit == 1 || r.polls && !r.blind
	switch {
	// A participant whose last offset checkpoint is at the offset where a read begins sends it together with the next
	// update. A read for one element would return only that checkpoint, until there is another one some 15 s later.
	case nothing && len(page.Checkpoints) > 0 && waited < idlePollEvery:
		current = false
		if r.blind {
			r.most = len(page.Checkpoints) + 1
		} else {
			r.polls = false // a bounded read has no checkpoints
		}
	// Full polls may fall behind: look at the ledger's end now and then.
	case full && !nothing && !r.blind && began.Sub(r.looked) >= askEndEvery:
		r.polls, r.looked = false, began
	// The end was asked for beside the poll, and more was there.
	case page.To < r.end && !r.blind:
		r.polls, current = false, false
	}
	return fetched{page: page, answered: true, current: current}, nil
}

// errOvertaken ends a poll that has brought nothing, although the ledger's end has moved: for longer than a server
// holds a poll.
var errOvertaken = errors.New("the ledger's end moved during a poll that brings nothing")

// tailBeside polls. Beside a poll that takes longer than one on a quiet ledger it asks for the ledger's end, from which
// the lag counts, and ends one that brings nothing of what is there. Nothing is lost by that: what follows is read by
// its offsets, which also reads what is too large for a poll over a slow line.
func (r *reader) tailBeside(ctx context.Context, limit int,
	gap time.Duration) (page ledger.Page, full bool, err error) {
	if r.blind {
		return r.Source.TailUpdates(ctx, r.at, limit, gap)
	}
	polling, end := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	beside.Go(func() {
		for moved := false; ; {
			if Sleep(polling, besideEvery); polling.Err() != nil {
				return
			}
			if moved {
				end(errOvertaken)
				return
			}
			now, err := r.Source.LedgerEnd(polling)
			if err != nil { // the poll itself will fail if the source does
				r.Logger.DebugContext(polling, "the ledger's end can't be asked for beside a poll", "stream", "updates",
					"error", err)
			}
			if moved = err == nil && now > r.at; moved {
				r.end = max(r.end, now)
				r.learnEnd(r.end, r.meter)
			}
		}
	})
	page, full, err = r.Source.TailUpdates(polling, r.at, limit, gap)
	overtaken := errors.Is(context.Cause(polling), errOvertaken)
	end(nil)
	beside.Wait()
	if err != nil && overtaken && ctx.Err() == nil {
		err = errOvertaken
	}
	return page, full, err
}

func (r *reader) askEnd(ctx context.Context) error {
	began := r.idle.begin(ctx)
	end, err := r.Source.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		r.blind = true
		return nil
	}
	if err != nil {
		return err
	}
	if !r.asked && end < r.at {
		return restored(r.Sink, fmt.Sprintf("the ledger ends at offset %d, below the checkpoint %d", end, r.at), r.agreed)
	}
	r.asked = true
	r.end = end
	r.rhythm.answered(time.Since(began), true, 0)
	r.idle.ended(began, end <= r.at)
	r.learnEnd(end, r.meter)
	return nil
}
