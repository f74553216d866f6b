package ledger

import "time"

// Contract is a contract as a look-up by its id returns it (interface.md, endpoint 3). Unlike a creation event it has
// no offset, node id, blob, interface views or acs_delta, which the server does not populate there; the representative
// package is always the contract's own. Unknown members are left out.
type Contract struct {
	ContractID      string
	TemplateID      string // package-id:Module:Entity as served
	PackageName     string
	Argument        JSON
	ContractKey     JSON
	ContractKeyHash []byte
	Signatories     []string
	Observers       []string
	WitnessParties  []string // those querying parties that are stakeholders
	CreatedAt       Time
}

// LookupStatus is the outcome of a look-up; its text is stored in the database.
type LookupStatus string

// How a look-up can end.
const (
	LookupFound    LookupStatus = "found"
	LookupNotFound LookupStatus = "not_found" // unknown, pruned, or none of the querying parties is a stakeholder
	LookupUnusable LookupStatus = "unusable"  // the server's answer could not be used; asking again would not help
)

// Lookup is the outcome of looking a contract up.
type Lookup struct {
	ContractID string
	At         time.Time
	Status     LookupStatus
	Contract   *Contract // set if and only if Status is LookupFound
	Reason     string    // why, where Status is LookupUnusable; else empty
}
