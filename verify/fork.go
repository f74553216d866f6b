package verify

import (
	"context"
	"math"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// checkFork refuses a participant with a fork of the stored updates: a comparison would mean nothing, and a repair
// would mix the two. It looks at the last update that is stored up to at. empty says that there is certainly none
// between that update and at.
func (u *Updates) checkFork(ctx context.Context, at ledger.Offset, empty bool) error {
	var unknown error
	err := Patiently(ctx, u.Logger, func() (err error) {
		unknown, err = ingest.CheckFork(ctx, u.Source, u.Database, at, empty)
		return err
	})
	if unknown != nil && !u.undecided {
		u.undecided = true
		u.note("whether the participant has the history that is stored: the last stored update can't be read again: %v",
			unknown)
	}
	return err
}

// sameLedger is called after each answer, before anything is compared with it. It looks for a fork if another server
// may have answered: the participant may have been restored meanwhile.
func (u *Updates) sameLedger(ctx context.Context) error {
	now := u.Source.Changes()
	if now == u.changes {
		return nil
	}
	if err := u.checkFork(ctx, u.result.Bounds.Watermark, false); err != nil {
		return err
	}
	u.changes = now
	return nil
}

// maxOffset stands for the end of what is stored, wherever that is.
const maxOffset ledger.Offset = math.MaxInt64
