package ledger

import "time"

// Contract is a contract as a look-up by its id tells it (interface.md, endpoint 3). It is no creation event: offset,
// node id, blob, interface views and acs_delta are not populated there and not parsed, and the representative package
// is always the contract's own. Members that are not known are left out.
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

// LookupStatus says how a look-up of a contract ended; its text stands in the database.
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
