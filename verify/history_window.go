package verify

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// HistoryWindow is a part of the stored history, and what the service shows there.
type HistoryWindow struct {
	FromSeq, ToSeq int64 // from exclusive, to inclusive; the same: nothing is stored behind FromSeq
	// Shown says that the service shows the window in the order of seq. Records are then as many as there are seqs in it, in
	// the service's order. It does not show it so where the history had to be read again since it was stored, where it is
	// another service or one that is behind, or where no event id before the window is answered.
	Shown   bool
	Records []ledger.Transaction
}

const (
	// So many records before a window are looked at for an event id after which the service can be asked,
	windowLead = 200
	// and so many of their event ids are tried.
	windowTries = 5
)

// ReadHistoryWindow reads the records that the service shows behind a stored one, at most atMost of them and none beyond
// the last one that is stored. fromSeq 0 is the beginning of the history. Nothing is tried twice.
//
// Errors: the database's, and the service's: ledger.ErrNotOffered where it has no history.
func ReadHistoryWindow(ctx context.Context, source HistorySource, database HistoryDatabase, fromSeq int64, atMost int) (HistoryWindow, error) {
	window := HistoryWindow{FromSeq: fromSeq, ToSeq: fromSeq}
	standing, stored, err := database.FindRecords(ctx, nil, seqsAfter(max(0, fromSeq-windowLead), fromSeq+int64(atMost)))
	if err != nil {
		return window, err
	}
	window.ToSeq = max(fromSeq, min(fromSeq+int64(atMost), standing.LastSeq))
	if window.ToSeq == fromSeq || standing.Rereading {
		return window, nil
	}
	if fromSeq+1 < standing.OrderedFrom { // these stand in another order: up to where that ends
		window.ToSeq = min(window.ToSeq, standing.OrderedFrom-1)
		return window, nil
	}
	r := windowReading{source: source, window: &window, stored: map[int64]ledger.StoredRecord{}}
	ids := map[string]int{}
	for _, record := range stored {
		if record.Seq >= standing.OrderedFrom && record.Seq <= window.ToSeq {
			r.stored[record.Seq] = record
			ids[record.EventID]++
		}
	}
	tries := 0
	for seq := fromSeq; seq > 0 && seq > fromSeq-windowLead && tries < windowTries; seq-- {
		record, ok := r.stored[seq]
		// Some records before the window come again where there are any, so that another order is noticed.
		if !ok || ids[record.EventID] > 1 || fromSeq-seq < overlap && seq > standing.OrderedFrom+overlap {
			continue
		}
		tries++
		if answered, err := r.readBehind(ctx, record.EventID, seq); err != nil || answered {
			return window, err
		}
	}
	if standing.OrderedFrom == 1 && fromSeq <= windowLead {
		_, err = r.readBehind(ctx, "", 0)
	}
	return window, err
}

// seqsAfter lists the seqs after one up to another.
func seqsAfter(from, to int64) []int64 {
	seqs := make([]int64, 0, to-from)
	for seq := from + 1; seq <= to; seq++ {
		seqs = append(seqs, seq)
	}
	return seqs
}

// windowReading reads the records of a window.
type windowReading struct {
	source HistorySource
	window *HistoryWindow
	stored map[int64]ledger.StoredRecord // those of the window, and before it
}

// readBehind reads on after an event id, or from the beginning, until the window is complete. answered is false where the
// service can't be read there to the window's end.
func (r *windowReading) readBehind(ctx context.Context, eventID string, seq int64) (answered bool, err error) {
	p := pager{source: r.source, after: eventID}
	var records []ledger.Transaction
	equal, places := 0, 0
	for at := seq; at < r.window.ToSeq; {
		page, err := p.next(ctx)
		if errors.Is(err, ledger.ErrCursorRefused) || errors.Is(err, errHistoryChanged) || err == nil && len(page) == 0 {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read the records behind seq %d again: %w", r.window.FromSeq, err)
		}
		for i := 0; i < len(page) && at < r.window.ToSeq; i++ {
			at++
			if stored, ok := r.stored[at]; ok {
				places++
				if stored.EventID == page[i].EventID && stored.Fingerprint == page[i].Fingerprint() {
					equal++
				}
			}
			if at > r.window.FromSeq {
				records = append(records, page[i])
			}
		}
	}
	// In another service's order few of them stand in their places.
	if r.window.Shown = 2*equal > places; r.window.Shown {
		r.window.Records = records
	}
	return true, nil
}
