package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// ServedSource reports which offsets a participant serves. The error is ledger.ErrNotOffered if the server can't say.
type ServedSource interface {
	LedgerEnd(ctx context.Context) (ledger.Offset, error)
	PrunedOffset(ctx context.Context) (ledger.Offset, error)
}

// Served is the range that a participant serves: after Pruned, up to End.
type Served struct {
	Pruned ledger.Offset  // 0: nothing was pruned, or the server does not report it
	End    *ledger.Offset // nil: the server does not report it
}

// AskServed asks a participant what it serves.
func AskServed(ctx context.Context, source ServedSource) (served Served, err error) {
	end, err := source.LedgerEnd(ctx)
	if err == nil {
		served.End = &end
	} else if !errors.Is(err, ledger.ErrNotOffered) {
		return served, fmt.Errorf("ask for the ledger's end: %w", err)
	}
	served.Pruned, err = AskPruned(ctx, source)
	return served, err
}

// AskPruned asks up to which offset a participant was pruned; 0: it was not, or does not report it.
func AskPruned(ctx context.Context, source ServedSource) (ledger.Offset, error) {
	pruned, err := source.PrunedOffset(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask how far the participant is pruned: %w", err)
	}
	return pruned, nil
}

// cures are what to do if an offset can't be chosen, by the reason.
type cures struct{ noEnd, above, pruned string }

// chooseOffset returns the offset to begin at: the wanted one, or the ledger's end if that is nil. It fails if the
// participant does not serve it.
func chooseOffset(ctx context.Context, source ServedSource, wanted *ledger.Offset, do cures) (ledger.Offset, error) {
	served, err := AskServed(ctx, source)
	switch {
	case err != nil:
		return 0, err
	case wanted == nil && served.End == nil:
		return 0, &ledger.Problem{What: "the server does not report its ledger end, so the offset can't be chosen",
			Do: do.noEnd}
	case wanted == nil:
		return *served.End, nil
	case served.End != nil && *wanted > *served.End:
		return 0, &ledger.Problem{What: fmt.Sprintf("offset %d is above the ledger's end %d", *wanted, *served.End),
			Do: do.above}
	}
	return *wanted, served.checkPruned(*wanted, do.pruned)
}

// checkPruned refuses an offset below the pruned one; do says what to do then.
func (s Served) checkPruned(at ledger.Offset, do string) error {
	if at >= s.Pruned {
		return nil
	}
	return &ledger.Problem{What: fmt.Sprintf("the participant is pruned up to offset %d, which is above offset %d",
		s.Pruned, at), Do: do}
}
