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
	// The most that is asked for in one open-ended read.
	fullPoll = 200
	// While polls come back full the ledger's end is asked for this often.
	lookEvery = 5 * time.Second
	// Where the server does not tell its end, reads that catch up are open-ended too and ask for a full page; the
	// idle gap that ends one delays what has come, so it is short.
	blindIdle = 200 * time.Millisecond
)

// reader chooses the read that fits: bounded pages while the ledger is ahead, and polls when it is not. A poll on a quiet
// ledger waits for one update, and so returns with the first one; where more come, it waits for as many as come in a
// moment, so that a thousand updates a second cost no more requests than thirty.
type reader struct {
	*updatesRun
	at     ledger.Offset // everything up to here has been read
	agreed ledger.Offset // up to here the participant has what is stored; 0: that is not known
	meter  *Meter

	end    ledger.Offset // of the ledger, as far as is known
	blind  bool          // the server does not tell its end
	asked  bool
	looked time.Time // when the end was asked for though polls brought what came
	tail   bool      // nothing more was there: time for a poll
	limit  int       // updates that a poll waits for; 0: as 1
	rhythm rhythm
	idle   idlePace
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
		began := time.Now()
		page, full, err := r.Source.TailUpdates(ctx, r.at, fullPoll, blindIdle)
		if err == nil { // what the server had to wait for came just now
			waited := r.rhythm.answered(time.Since(began), full, blindIdle)
			r.tail = !full || waited >= blindIdle/2
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
		r.tail = page.To >= r.end
		r.sizes.learn(&page, page.To < asked.To)
		return fetched{page: page, answered: true, current: r.tail}, nil
	default: // current, and the writer ought to know before the long poll ends
		r.tail = true
		return fetched{page: ledger.Page{From: r.at, To: r.at}, current: true}, nil
	}
}

// poll waits for the next updates.
func (r *reader) poll(ctx context.Context) (fetched, error) {
	began := r.idle.begin(ctx)
	limit := max(1, r.limit)
	gap := longestGap(limit)
	page, full, err := r.Source.TailUpdates(ctx, r.at, limit, gap)
	if err != nil {
		return fetched{}, err
	}
	waited := r.rhythm.answered(time.Since(began), full, gap)
	nothing := page.To == page.From
	r.idle.ended(began, nothing)
	r.limit = r.rhythm.limit(len(page.Updates), waited)
	if page.To >= r.end && !r.blind { // also that it is where it was
		r.end = page.To
		r.learnEnd(r.end, r.meter)
	}
	r.tail = !full || limit < fullPoll || waited >= gatherFor // else there may be much more
	// What a poll waited for came just now. A server that does not tell its end may only have been slow.
	current := nothing && limit == 1 || r.tail && !r.blind
	switch {
	// A participant whose last offset checkpoint stands where a read begins sends it before the next update, and only once there
	// is one. A read for one element would bring no more than it until another checkpoint is made, some 15 s later.
	case nothing && len(page.Checkpoints) > 0 && waited < pollEvery:
		current = false
		if r.blind {
			r.limit = len(page.Checkpoints) + 1
		} else {
			r.tail = false // a bounded read has no checkpoints
		}
	// However few updates a poll is for, what comes meanwhile does not pile up for long.
	case full && !nothing && !r.blind && began.Sub(r.looked) >= lookEvery:
		r.tail, r.looked = false, began
	}
	return fetched{page: page, answered: true, current: current}, nil
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
		return restored(fmt.Sprintf("the ledger ends at offset %d, below the checkpoint %d", end, r.at), r.agreed)
	}
	r.asked = true
	r.end = end
	r.rhythm.answered(time.Since(began), true, 0)
	r.idle.ended(began, end <= r.at)
	r.learnEnd(end, r.meter)
	return nil
}
