package verify

import (
	"context"
	"math"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// checkFork refuses a participant with another history than the one that is stored: comparing with it would say nothing, and
// repairing from it would mix the two. at is where the last update is looked for; empty says that nothing is stored from there
// up to it, which is not certain while what is claimed is not.
func (u *Updates) checkFork(ctx context.Context, at ledger.Offset, empty bool) error {
	var unknown error
	err := Patiently(ctx, u.Logger, func() (err error) {
		unknown, err = ingest.CheckFork(ctx, u.Source, u.Database, at, empty)
		return err
	})
	if unknown != nil && !u.undecided {
		u.undecided = true
		u.note("whether the participant has the history that is stored: the last stored update can't be read again: %v", unknown)
	}
	return err
}

// anywhere is beyond all offsets.
const anywhere ledger.Offset = math.MaxInt64
