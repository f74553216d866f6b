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
