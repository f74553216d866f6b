package ledger

import (
	"errors"
	"fmt"
)

// HistoryService is who serves a transaction history.
type HistoryService struct {
	Release     string // empty: it does not tell
	NetworkID   string // the party that operates the network (the DSO); empty: it does not tell
	Backfilling bool   // it says that its own history is not complete yet
}

// HistoryPosition is how far the transaction history has been read. Each reading of it from the beginning is a generation, whose
// records have seqs behind those of all generations before. Readers see one of them; mostly it is the one that is being read. The
// zero value: not begun.
type HistoryPosition struct {
	Revision            int64 // grows with each change; a writer that has seen another one must read the position again
	ShownAfter, ShownTo int64 // readers see the records after the one seq, up to the other
	ReadAfter, LastSeq  int64 // the generation that is read has those after the one seq, up to the other
	Leftovers           bool  // there may be rows of generations that are neither shown nor read
}

// Rereading says that the generation that is read is not the one that is shown: it takes that one's place when it is complete.
func (p *HistoryPosition) Rereading() bool { return p.ReadAfter != p.ShownAfter }

// Records is how many records the generation has that is read.
func (p *HistoryPosition) Records() int64 { return p.LastSeq - p.ReadAfter }

// Behind is the position behind n records that are stored in one write.
func (p HistoryPosition) Behind(n int) HistoryPosition {
	if !p.Rereading() {
		p.ShownTo += int64(n)
	}
	p.LastSeq += int64(n)
	p.Revision++
	return p
}

// HistoryCursor is where a service reads on: it is the service's own, and means nothing to who passes it on. The empty one is the
// beginning of the history.
type HistoryCursor string

// Cursor is where a service reads on behind the record.
func (t *Transaction) Cursor() HistoryCursor { return HistoryCursor(t.EventID) }

// HistoryMark is a stored record, as far as it is needed to recognise it and to read on behind it.
type HistoryMark struct {
	Cursor      HistoryCursor
	Fingerprint int64 // see [Transaction.Fingerprint]
	Unique      bool  // no other record has this cursor, as far as the history was read
}

// Is tells whether a record is the stored one, or equal to it.
func (m HistoryMark) Is(record *Transaction) bool {
	return m.Cursor == record.Cursor() && m.Fingerprint == record.Fingerprint()
}

// HistoryBatch is records that follow one another, on their way into the database.
type HistoryBatch struct {
	Records []Transaction
	New     []string      // event ids of theirs that must not stand on a record of the generation that is stored before them
	Cursor  HistoryCursor // behind them: the newest one that is unique; empty: there is none
}

// KnownEventIDError says that a record has an event id that a record has which stands elsewhere in the generation.
type KnownEventIDError struct{ EventID string }

func (e *KnownEventIDError) Error() string {
	return fmt.Sprintf("behind the last records that were read the service serves event id %q, which was read already", e.EventID)
}

// ErrCursorRefused is returned by a history service that fails for the cursor after which it was asked to read on: for ever, where
// two of its records share it.
var ErrCursorRefused = errors.New("the service fails to read on after this event id")
