package audit

import (
	"context"
	"errors"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// A window that the service does not show is requested this often before it is sealed without a comparison: the service
// may only be behind.
const hiddenTries = 3

type recordSeals struct {
	*Seals
	sealMemory
	source   ingest.TransactionsSource
	database SealDatabase

	hidden     int64 // the beginning of a window that was not shown
	hiddenSeen int   // how often it was not
}

func (r *recordSeals) window(ctx context.Context) (*Window, error) {
	return r.database.NextWindow(ctx, tables.StreamTransactions, r.size(), r.again, r.known)
}

func (r *recordSeals) seal(ctx context.Context, w Window) (Sealing, bool, error) {
	at, _, err := r.database.TransactionsStanding(ctx)
	if err != nil || at.Rereading || w.To > at.LastSeq {
		return Sealing{}, false, err
	}
	r.pace(ctx)
	r.spent(int(w.To - w.From))
	records, err := r.read(ctx, w)
	if err != nil {
		return Sealing{}, false, err
	}
	if len(records) == 0 {
		return r.countNotShown(ctx, w)
	}
	c, err := r.database.SealRecords(ctx, w.From, records)
	return Sealing{Stream: tables.StreamTransactions, From: w.From, To: w.To, Comparison: c}, err == nil, err
}

// read reads the records of a window from the service. None: the service does not show all of them after the records
// that are stored before the window.
func (r *recordSeals) read(ctx context.Context, w Window) (records []ledger.Transaction, err error) {
	known, err := r.database.TransactionsMarks(ctx, w.From)
	if err != nil {
		return nil, err
	}
	pages := ingest.NewTransactionPages(r.source, r.Logger, known, w.From == int64(len(known)))
	for n := int(w.To - w.From); len(records) < n; {
		page, err := pages.Next(ctx)
		var misfit *ingest.TransactionsMisfit
		if errors.As(err, &misfit) {
			return nil, nil
		}
		if err != nil || len(page) == 0 {
			return nil, err
		}
		records = append(records, page[:min(len(page), n-len(records))]...)
	}
	return records, nil
}

// countNotShown counts how often a window was not shown, and seals it as such after hiddenTries.
func (r *recordSeals) countNotShown(ctx context.Context, w Window) (Sealing, bool, error) {
	if r.hidden != w.From {
		r.hidden, r.hiddenSeen = w.From, 0
	}
	if r.hiddenSeen++; r.hiddenSeen < hiddenTries {
		return Sealing{}, false, nil
	}
	r.hiddenSeen = 0
	return r.sealUnseen(ctx, r.database, tables.StreamTransactions, w, SealNotShown)
}
