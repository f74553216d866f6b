package ledger

import "errors"

// TransactionsService is what a service of the transaction history reports of itself.
type TransactionsService struct {
	Release     string // empty: not reported
	NetworkID   string // the party that operates the network (the DSO); empty: not reported
	Backfilling bool   // the service's own history is not complete yet
}

// TransactionsPosition is how far the transaction history has been read. The zero value: not begun.
type TransactionsPosition struct {
	Revision int64 // grows with each change; a writer with an older one must read the position again
	LastSeq  int64 // the seq of the last record, and so how many there are

	// Rereading says that the records were cleared because the service's no longer fitted them, and that its end was not
	// reached since.
	Rereading bool
}

// After returns the position after more records are stored in one write.
func (p TransactionsPosition) After(records []Transaction) TransactionsPosition {
	p.LastSeq += int64(len(records))
	p.Revision++
	return p
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
	Cursor  TransactionsCursor // the newest unique one, after them; empty: there is none
}

// ErrCursorRefused is returned if a history service fails for a cursor. It always does if two of its records share the
// cursor.
var ErrCursorRefused = errors.New("the service fails to read on after this event id")
