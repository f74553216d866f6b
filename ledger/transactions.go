package ledger

import (
	"errors"
	"fmt"
)

// TransactionsService is what a service of the transaction history reports of itself.
type TransactionsService struct {
	Release     string // empty: not reported
	NetworkID   string // the party that operates the network (the DSO); empty: not reported
	Backfilling bool   // the service's own history is not complete yet
}

// TransactionsPosition is how far the transaction history has been read. Each reading of it from the beginning is a
// generation, whose records have greater seqs than those of all earlier generations. One generation is shown to
// readers; mostly that is the one that is read. The zero value: not begun.
type TransactionsPosition struct {
	Revision            int64 // grows with each change; a writer with an older one must read the position again
	ShownAfter, ShownTo int64 // the seqs of the shown generation: after one, up to the other
	ReadAfter, LastSeq  int64 // the seqs of the generation that is read: after one, up to the other
	Leftovers           bool  // there may be rows of generations that are neither shown nor read
	LatestDate          int64 // no record of any generation has a later date; microseconds since 1970
}

// Rereading reports that the generation that is read is not the shown one, and will replace it when it is complete.
func (p *TransactionsPosition) Rereading() bool { return p.ReadAfter != p.ShownAfter }

// Records returns the number of records of the generation that is read.
func (p *TransactionsPosition) Records() int64 { return p.LastSeq - p.ReadAfter }

// After returns the position after more records are stored in one write.
func (p TransactionsPosition) After(records []Transaction) TransactionsPosition {
	if !p.Rereading() {
		p.ShownTo += int64(len(records))
	}
	p.LastSeq += int64(len(records))
	p.Revision++
	for i := range records {
		if date := records[i].Date; date.Valid {
			p.LatestDate = max(p.LatestDate, date.Time.UnixMicro())
		}
	}
	return p
}

// MayHave reports whether a record may be stored: it is not if its date, which is the same wherever it is served, is
// later than all stored ones.
func (p *TransactionsPosition) MayHave(record *Transaction) bool {
	return !record.Date.Valid || record.Date.Time.UnixMicro() <= p.LatestDate
}

// TransactionsCursor is a position in a service's history, opaque to everybody else. The empty one is the beginning.
type TransactionsCursor string

// Cursor returns the position after the record.
func (t *Transaction) Cursor() TransactionsCursor { return TransactionsCursor(t.EventID) }

// TransactionsMark identifies a stored record, and the position after it.
type TransactionsMark struct {
	Cursor      TransactionsCursor
	Fingerprint int64 // see [Transaction.Fingerprint]
	Unique      bool  // no other record that was read has this cursor
}

// Is reports whether a record is the stored one, or equal to it.
func (m TransactionsMark) Is(record *Transaction) bool {
	return m.Cursor == record.Cursor() && m.Fingerprint == record.Fingerprint()
}

// TransactionsBatch is consecutive records to be stored.
type TransactionsBatch struct {
	Records []Transaction
	New     []string           // their event ids to look for: no record stored before them in the generation may have one
	Cursor  TransactionsCursor // the newest unique one, after them; empty: there is none
}

// KnownEventIDError is the error for a record whose event id another, not adjacent record of the generation has.
type KnownEventIDError struct{ EventID string }

func (e *KnownEventIDError) Error() string {
	return fmt.Sprintf("behind the last records that were read the service serves event id %q, which was read already",
		e.EventID)
}

// ErrCursorRefused is returned if a history service fails for a cursor. It always does if two of its records share the
// cursor.
var ErrCursorRefused = errors.New("the service fails to read on after this event id")
