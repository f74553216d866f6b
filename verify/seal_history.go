package verify

import (
	"context"

	"ledgerindexer/ledger"
)

// A window of the history that is not shown is asked for so often before it is sealed without being compared: the service
// may only be behind.
const hiddenTries = 3

// recordSeals seals the transaction history.
type recordSeals struct {
	*Seals
	sealMemory
	source   HistorySource
	history  HistoryDatabase
	database SealDatabase
	sealer   Sealer

	hidden     int64 // where a window begins that was not shown
	hiddenSeen int   // how often
}

func (r *recordSeals) window(ctx context.Context) (*ledger.Window, error) {
	return r.database.NextWindow(ctx, ledger.SealedTransactions, windowSize, r.again, r.known)
}

func (r *recordSeals) seal(ctx context.Context, w ledger.Window) (Sealing, bool, error) {
	standing, err := r.history.HistoryStanding(ctx)
	if err != nil || standing.Rereading {
		return Sealing{}, false, err
	}
	if ordered := standing.OrderedFrom - 1; w.From < ordered {
		// What was read again since stands in another order than the service's.
		if !w.Again {
			w.To = min(w.To, ordered)
		}
		return r.notShown(ctx, r.sealer, ledger.SealedTransactions, w)
	}
	r.pace(ctx)
	r.spent(int(w.To - w.From))
	shows, err := ReadHistoryWindow(ctx, r.source, r.history, w.From, int(w.To-w.From))
	if err != nil {
		return Sealing{}, false, err
	}
	if !shows.Shown || shows.ToSeq != w.To {
		return r.waits(ctx, w)
	}
	c, err := r.sealer.SealRecords(ctx, w.From, w.To, shows.Records)
	return Sealing{Stream: ledger.SealedTransactions, From: w.From, To: w.To, Shown: true, Comparison: c}, err == nil, err
}

// waits counts how often a window was not shown.
func (r *recordSeals) waits(ctx context.Context, w ledger.Window) (Sealing, bool, error) {
	if r.hidden != w.From {
		r.hidden, r.hiddenSeen = w.From, 0
	}
	if r.hiddenSeen++; r.hiddenSeen < hiddenTries {
		return Sealing{}, false, nil
	}
	r.hiddenSeen = 0
	return r.notShown(ctx, r.sealer, ledger.SealedTransactions, w)
}
