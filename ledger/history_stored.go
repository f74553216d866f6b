package ledger

// HistoryStanding is what a database claims of its transaction history.
type HistoryStanding struct {
	Revision    int64   // grows with each change of what is stored
	LastSeq     int64   // of the newest record; 0: none is stored
	OrderedFrom int64   // from this seq on, the order of seq is the service's
	Window      []int64 // the seqs of the last records in the service's order, oldest first
	Rereading   bool    // the history is being read again from its beginning
	NetworkID   string  // the party that operates the network; empty: it is not known
}

// StoredRecord is what recognises a stored record of the transaction history.
type StoredRecord struct {
	Seq         int64
	EventID     string
	Fingerprint int64
	Gone        bool // the service did not show it any more when its history was last read again to its end
}

// NumberedRecord is a record that the service shows, and the seq that it has, or is to have, where it is stored.
type NumberedRecord struct {
	Seq    int64
	Record *Transaction
}
