package ledger

// ContractEntry is one element of an active-contract snapshot (interface.md, "Active contract entry"). A contract
// can have several. Exactly one of Active, Unassigned, Assigned, Unknown is set, or Empty is true.
type ContractEntry struct {
	WorkflowID *string
	Token      string // resumes the list after this entry; empty if the server gives none
	Extra      JSON

	// Plain is as in Update.
	Plain bool

	Active     *ActiveContract
	Unassigned *IncompleteUnassigned
	Assigned   *IncompleteAssigned
	Empty      bool
	Unknown    *UnknownElement
}

// ActiveContract is a contract that is active on a synchronizer.
type ActiveContract struct {
	Created             CreatedEvent
	SynchronizerID      string
	ReassignmentCounter int64
	Extra               JSON
}

// IncompleteUnassigned is a contract that left its synchronizer and whose assignment has not been seen.
type IncompleteUnassigned struct {
	Created    CreatedEvent
	Unassigned UnassignedEvent
	Extra      JSON
}

// IncompleteAssigned is a contract that was assigned while its unassignment has not been seen. It does not say
// that the contract is active on the target.
type IncompleteAssigned struct {
	Created  CreatedEvent
	Assigned AssignedEvent
	Extra    JSON
}

// TokenKind is the endpoint that a continuation token belongs to; its text is stored in the database. It is empty if
// the server gives no tokens, so that the snapshot came in one piece.
type TokenKind string

// The kinds of continuation token.
const (
	TokenList TokenKind = "list" // streamContinuationToken of /v2/state/active-contracts
	// nextPageToken of /v2/state/active-contracts-page, next_page_token of a Scan's /v1/state/acs
	TokenPage TokenKind = "page"
)

// Token is a position in a snapshot. It is opaque, and valid only on the same participant with the same software
// version, offset and event format. The zero Token is the beginning.
type Token struct {
	Kind  TokenKind
	Value string
}

// SnapshotPage is a part of a snapshot, in the server's order.
type SnapshotPage struct {
	Entries []ContractEntry
	Next    Token // where the next page starts
	Last    bool  // nothing follows
	Bytes   int64 // size of the JSON it was decoded from
}

// SnapshotProgress is how far a snapshot is stored. It is committed with the rows of each page.
type SnapshotProgress struct {
	At       Offset
	Next     Token // where the next page starts
	Entries  int64 // stored so far
	Finished bool  // everything is stored: nothing is left to do
	Pruned   bool  // its rows were made of what was stored, when everything before was pruned
	Mixed    bool  // some of these were read in another scope than the snapshot's
}

// After returns the progress after one more page.
func (p SnapshotProgress) After(page *SnapshotPage) SnapshotProgress {
	return SnapshotProgress{At: p.At, Next: page.Next, Entries: p.Entries + int64(len(page.Entries))}
}
