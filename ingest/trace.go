package ingest

import (
	"context"

	"ledgerindexer/ledger"
)

// Tracer follows what is read and written of the updates. It is safe for concurrent use.
type Tracer interface {
	// Follow returns a context, and the trail of what is done in it.
	Follow(ctx context.Context) (context.Context, Trail)
}

// Trail is what was done in a context. A trail that nobody ends leaves nothing.
type Trail interface {
	// End makes a trace of the trail, and of those that led to it, which the same Tracer returned.
	End(work Work, err error, before ...Trail)
}

// Work is what a trace is of.
type Work struct {
	// Name is "batch" (pages are read and written), "projection" (the watermark moves over what is written) or "read" (a
	// page could not be read).
	Name    string
	Range   ledger.Range // To is From where the end is not known
	Updates int          // that were read and written
	Attempt int          // from 1: one more than what has failed since something worked
}

// startTrail is Tracer.Follow; without a tracer the trail is nil.
func (p *pace) startTrail(ctx context.Context) (context.Context, Trail) {
	if p.tracer == nil {
		return ctx, nil
	}
	return p.tracer.Follow(ctx)
}

func (p *pace) endTrail(trail Trail, work Work, err error, before ...Trail) {
	if trail != nil {
		work.Attempt = p.retry.tries + 1
		trail.End(work, err, before...)
	}
}
