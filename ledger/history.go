package ledger

import "errors"

// HistoryService is who serves a transaction history.
type HistoryService struct {
	Release     string // empty: it does not tell
	NetworkID   string // the party that operates the network (the DSO); empty: it does not tell
	Backfilling bool   // it says that its own history is not complete yet
}

// HistoryPosition is how far the transaction history has been read. The zero value: not begun.
type HistoryPosition struct {
	Revision int64 // grows with each change; a writer that has seen another one must read the position again
	LastSeq  int64 // of the newest stored record; 0: none is stored
	// Window are the last records in the order in which the service gave them, oldest first. Where any stored id is
	// unique, one at least of these is, unless more than can be kept share their ids.
	Window []HistoryMark
	// Rereading says that the service's order is not the one in which its records were stored, or that it is not known
	// to be: the history is read again from its beginning, and a record that is stored already is not stored again.
	Rereading bool
}

// HistoryMark is a stored record, as far as it is needed to recognise it.
type HistoryMark struct {
	Seq         int64
	EventID     string
	Fingerprint int64 // see [Transaction.Fingerprint]
	Unique      bool  // no other record has this event id, of those that the service shows as far as it was read
}

// Cursor is the index in Window of the newest record whose event id is unique so far: the stored checkpoint. -1: there is
// none.
func (p *HistoryPosition) Cursor() int {
	for i := len(p.Window) - 1; i >= 0; i-- {
		if p.Window[i].Unique {
			return i
		}
	}
	return -1
}

// ErrCursorRefused is returned by a history service that fails for the event id after which it was asked to read on: for
// ever, where two of its records share that id.
var ErrCursorRefused = errors.New("the service fails to read on after this event id")
