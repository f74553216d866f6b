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
func (p TransactionsPosition) After(records []Record) TransactionsPosition {
	p.LastSeq += int64(len(records))
	p.Revision++
	return p
}

// TransactionsTail is how many of the last records are enough to read on after them.
const TransactionsTail = 200

// TransactionsMark identifies a stored record.
type TransactionsMark struct {
	EventID     string
	Fingerprint int64 // see [Record.Fingerprint]
	Unique      bool  // no other record that was read has this event id
}

// Mark returns the mark of a record, as if no other one had its event id.
func (t *Record) Mark() TransactionsMark {
	return TransactionsMark{EventID: t.EventID, Fingerprint: t.Fingerprint(), Unique: true}
}

// Is reports whether a record is the stored one, or equal to it.
func (m TransactionsMark) Is(record *Record) bool {
	return m.EventID == record.EventID && m.Fingerprint == record.Fingerprint()
}

// ErrCursorRefused is returned if a history service fails to read on after an event id. It always does if two of its
// records share the id.
var ErrCursorRefused = errors.New("the service fails to read on after this event id")
