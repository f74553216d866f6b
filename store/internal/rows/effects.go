package rows

import "ledgerindexer/store/internal/names"

// Effect activates or deactivates a contract on a synchronizer, or uses it: an activation is a creation with acs_delta
// not false, or an assignment; a deactivation is an archival on the update's synchronizer, or an unassignment.
type Effect struct {
	ContractID   string
	Synchronizer *int32
	Offset       int64
	NodeID       int32
	Activates    bool
	Assigned     bool // activates by assignment, which a contract can have several of; it is created once
	IsReference  bool // neither activates nor deactivates
	// is of a contract whose creation we should have seen: no creation, and not merely witnessed
	WantsLookup bool

	// Of an activation. Holding is nil where the contract holds nothing; Stakeholders are the number of their list.
	Template     *int32
	Counter      int64
	Holding      *names.Holding
	Stakeholders *int32
}
