package ingest

import (
	"context"
	"fmt"
	"strconv"

	"ledgerindexer/ledger"
)

// Start is where the updates stream begins in a database without a checkpoint. The zero value is genesis.
type Start struct {
	latest bool
	offset ledger.Offset
}

// ParseStart parses "genesis", "latest" or an offset.
func ParseStart(text string) (Start, error) {
	switch text {
	case "genesis":
		return Start{}, nil
	case "latest":
		return Start{latest: true}, nil
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return Start{}, fmt.Errorf("start must be genesis, latest or an offset of at least 0, not %q", text)
	}
	return Start{offset: ledger.Offset(offset)}, nil
}

// Offset returns the offset, 0 for genesis. fixed is false for latest, which has none.
func (s Start) Offset() (at ledger.Offset, fixed bool) { return s.offset, !s.latest }

// resume returns the watermark. In a new database it sets the watermark to Start first.
func (u *Updates) resume(ctx context.Context) (ledger.Offset, error) {
	at, started, err := u.Sink.Watermark(ctx)
	if err != nil || started {
		return at, err
	}
	at, err = u.firstOffset(ctx)
	if err != nil {
		return 0, err
	}
	// At the beginning of the ledger nothing is active, so the active set is known from there on.
	if err := u.Sink.Start(ctx, u.ParticipantID, u.Scope, at, at == 0); err != nil {
		return 0, err
	}
	if at > 0 {
		u.Logger.WarnContext(ctx, "started in the middle of the ledger without a snapshot: contracts created before are "+
			"missing from the active set",
			"offset", int64(at))
	}
	return at, nil
}

func (u *Updates) firstOffset(ctx context.Context) (ledger.Offset, error) {
	wanted := &u.Start.offset
	if u.Start.latest {
		wanted = nil
	}
	return chooseOffset(ctx, u.Source, wanted, cures{
		noEnd: "give the offset to start at with --start",
		above: "give --start an offset up to the ledger's end",
		pruned: "seed the database with `backfill`, then start the indexer again; or give --start an offset from the " +
			"pruned one on, which leaves the active set unknown",
	})
}
