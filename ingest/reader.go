package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/ledger"
)

const (
	// How long the server holds a long poll on a quiet ledger. Well below its request timeout of 20 s.
	tailIdle = 10 * time.Second
	// Long polls that bring nothing new begin at least this far apart, however quickly the server answers.
	pollEvery = 400 * time.Millisecond
	// On a busy ledger a poll waits for as many updates as come in this time.
	gatherFor = 50 * time.Millisecond
	// A poll for several updates gives up when none has come for this long, or less where more are to come.
	shortestGap = 10 * time.Millisecond
	// The most that is asked for in one open-ended read.
	fullPoll = 200
	// Where the server does not tell its end, reads that catch up are open-ended too and ask for a full page; the
	// idle gap that ends one delays what has come, so it is short.
	blindIdle = 200 * time.Millisecond
)

// reader chooses the read that fits: bounded pages while the ledger is ahead, and polls when it is not. A poll on a quiet
// ledger waits for one update, and so returns with the first one; where more come, it waits for as many as come in a
// moment, so that a thousand updates a second cost no more requests than twenty.
type reader struct {
	*updatesRun
	at     ledger.Offset // everything up to here has been read
	agreed ledger.Offset // up to here the participant has what is stored; 0: that is not known
	meter  *Meter

	end    ledger.Offset // of the ledger, as far as is known
	blind  bool          // the server does not tell its end
	asked  bool
	tail   bool      // nothing more was there: time for a poll
	limit  int       // updates that a poll waits for; 0: as 1
	polled time.Time // when the last poll that brought nothing new began
}

// next reads one page; it may be empty.
func (r *reader) next(ctx context.Context) (fetched, error) {
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
		page, full, err := r.Source.TailUpdates(ctx, r.at, fullPoll, blindIdle)
		r.tail = !full
		return fetched{page: page, answered: true}, err
	case r.at < r.end && r.sizes.far(r.end-r.at):
		return fetched{}, errFarBehind
	case r.at < r.end:
		asked := ledger.Range{From: r.at, To: r.at + r.sizes.atMost(r.end-r.at)}
		began := time.Now()
		page, err := r.Source.ReadUpdates(ctx, asked.From, asked.To)
		if err != nil {
			r.sizes.failed(asked.To-asked.From, time.Since(began))
			return fetched{}, err
		}
		r.tail = page.To >= r.end
		r.sizes.learn(&page, page.To < asked.To)
		return fetched{page: page, answered: true, current: r.tail}, nil
	default: // current, and the writer ought to know before the long poll ends
		r.tail = true
		return fetched{page: ledger.Page{From: r.at, To: r.at}, current: true}, nil
	}
}

// poll waits for the next updates. A server that answers at once though nothing is new, with an offset checkpoint that it
// has sent before or with nothing, is not asked again at once.
func (r *reader) poll(ctx context.Context) (fetched, error) {
	Sleep(ctx, time.Until(r.polled.Add(pollEvery)))
	began := time.Now()
	limit, gap := max(1, r.limit), tailIdle
	if limit > 1 {
		gap = max(shortestGap, 2*gatherFor/time.Duration(limit))
	}
	page, full, err := r.Source.TailUpdates(ctx, r.at, limit, gap)
	if err != nil {
		return fetched{}, err
	}
	r.limit = nextLimit(limit, len(page.Updates), time.Since(began))
	r.polled = time.Time{}
	nothing := page.To == page.From && limit == 1
	if nothing {
		r.polled = began
	}
	if page.To > r.end && !r.blind {
		r.end = page.To
		r.learnEnd(r.end, r.meter)
	}
	r.tail = !full || limit < fullPoll // else there may be much more
	// What a poll waited for came just now. A server that does not tell its end may only have been slow.
	current := nothing || r.tail && !r.blind
	return fetched{page: page, answered: true, current: current}, nil
}

// nextLimit is how many updates the next poll waits for, after one for limit updates brought n of them and took some time.
func nextLimit(limit, n int, took time.Duration) int {
	switch {
	case n < limit:
		return max(1, n)
	case took < gatherFor/2:
		return min(fullPoll, 2*limit)
	default:
		return max(1, min(fullPoll, int(float64(limit)*float64(gatherFor)/float64(took))))
	}
}

func (r *reader) askEnd(ctx context.Context) error {
	end, err := r.Source.LedgerEnd(ctx)
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
	r.learnEnd(end, r.meter)
	return nil
}
