package storetest

import (
	"ledgerindexer/ledger"
)

// HoldingV1 is an interface of holdings.
const HoldingV1 = "pkg-v1:Splice.Api.Token.HoldingV1:Holding"

// SnapshotCreation returns a creation event as a snapshot has it.
func SnapshotCreation(offset ledger.Offset, nodeID int32, contractID string) ledger.CreatedEvent {
	c := Creation(nodeID, contractID)
	c.Offset, c.Origin = offset, ledger.OriginSnapshot
	return c
}

// ActiveEntry returns the entry of a contract that is active.
func ActiveEntry(offset ledger.Offset, nodeID int32, contractID, synchronizer string,
	counter int64) ledger.ContractEntry {
	return ledger.ContractEntry{WorkflowID: new("flow"), Active: &ledger.ActiveContract{
		Created: SnapshotCreation(offset, nodeID, contractID), SynchronizerID: synchronizer, ReassignmentCounter: counter,
	}}
}

// UnassignedEntry returns the entry of a contract that has left a synchronizer.
func UnassignedEntry(at, created ledger.Offset, contractID, source, target string) ledger.ContractEntry {
	return ledger.ContractEntry{Unassigned: &ledger.IncompleteUnassigned{
		Created: SnapshotCreation(created, 0, contractID),
		Unassigned: ledger.UnassignedEvent{
			Offset: at, NodeID: 0, ContractID: contractID, TemplateID: Template, PackageName: "asset", Source: source,
			Target:         target,
			ReassignmentID: "r-out", ReassignmentCounter: 1,
		},
	}}
}

// AssignedEntry returns the entry of a contract that arrives, and was not assigned everywhere yet.
func AssignedEntry(at ledger.Offset, contractID, source, target string) ledger.ContractEntry {
	return ledger.ContractEntry{Assigned: &ledger.IncompleteAssigned{
		Created: SnapshotCreation(at, 0, contractID),
		Assigned: ledger.AssignedEvent{
			NodeID: 0, ContractID: contractID, TemplateID: Template, PackageName: "asset", Source: source, Target: target,
			ReassignmentID: "r-in", ReassignmentCounter: 1,
		},
	}}
}

// Token leads to a page of a snapshot.
func Token(text string) ledger.Token { return ledger.Token{Kind: ledger.TokenList, Value: text} }

// EveryEntry has rows for every table of carried rows.
func EveryEntry() []ledger.ContractEntry {
	active := ActiveEntry(20, 0, "both", "sync::1", 0)
	active.Active.Created.Argument = ledger.JSON(`"\u0000"`)
	active.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: HoldingV1, Value: ledger.JSON(`{}`)}}
	return []ledger.ContractEntry{
		ActiveEntry(10, 0, "plain", "sync::1", 0), active, UnassignedEntry(30, 25, "leaving", "sync::1", "sync::2"),
		{Unknown: &ledger.UnknownElement{Kind: "Novelty", Raw: ledger.JSON(`{"a": 1}`)}},
	}
}
