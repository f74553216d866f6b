package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/ledger"
)

// reader chooses the read that fits: bounded pages while the ledger is ahead, and a long poll for the first new
// element when it is not. A steady trickle can't delay a long poll for one element, and what came with that element
// is fetched by the read that follows.
type reader struct {
	source UpdateSource
	at     ledger.Offset // everything up to here has been read
	agreed ledger.Offset // up to here the participant has what is stored; 0: that is not known
	watch  Watch
	learn  func(end ledger.Offset) // told the first ledger end

	end    ledger.Offset // of the ledger, when it was last asked
	blind  bool          // the server does not tell its end
	asked  bool
	tail   bool      // nothing more was there: time for a long poll
	polled time.Time // when the last long poll began
	gather time.Time // not before this the end is asked again
}

// next reads one page; it may be empty.
func (r *reader) next(ctx context.Context) (fetched, error) {
	if !r.tail {
		Sleep(ctx, time.Until(r.gather))
	}
	if !r.blind && !r.tail && r.at >= r.end {
		if err := r.askEnd(ctx); err != nil {
			return fetched{}, err
		}
	}
	switch {
	case r.tail:
		return r.poll(ctx)
	case r.blind:
		// A short idle gap may be no more than a slow server: whether this was all, the long poll tells.
		page, full, err := r.source.TailUpdates(ctx, r.at, blindLimit, blindIdle)
		r.tail = !full
		return fetched{page: page, answered: true}, err
	case r.at < r.end:
		page, err := r.source.ReadUpdates(ctx, r.at, r.end)
		r.tail = err == nil && page.To >= r.end
		return fetched{page: page, answered: true, current: r.tail}, err
	default: // current, and the writer ought to know before the long poll ends
		r.tail = true
		return fetched{page: ledger.Page{From: r.at, To: r.at}, current: true}, nil
	}
}

// poll waits for the first new element. A server that answers at once though nothing is new, with an offset
// checkpoint that it has sent before or with nothing, is not asked again at once. On a busy ledger, where there is
// always something new, the rest is left to gather for a moment: a batch of many costs as many requests as one of one.
func (r *reader) poll(ctx context.Context) (fetched, error) {
	Sleep(ctx, time.Until(r.polled.Add(pollEvery)))
	r.polled = time.Now()
	page, _, err := r.source.TailUpdates(ctx, r.at, 1, tailIdle)
	r.tail = page.To == page.From
	if !r.tail {
		r.gather = r.polled.Add(gatherFor)
		r.polled = time.Time{}
	}
	return fetched{page: page, answered: true, current: r.tail}, err
}

func (r *reader) askEnd(ctx context.Context) error {
	end, err := r.source.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		r.blind = true
		return nil
	}
	if err != nil {
		return err
	}
	if !r.asked && end < r.at {
		return restored(fmt.Sprintf("the ledger ends at offset %d, below the checkpoint %d", end, r.at), r.agreed)
	}
	r.asked = true
	r.end = end
	r.learn(end)
	if r.watch.LedgerEnd != nil {
		r.watch.LedgerEnd(end)
	}
	return nil
}
