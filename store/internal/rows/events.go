package rows

import (
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// An event comes from an update or from an entry of a snapshot: these are the columns that both have.

// The kinds of reassignment, as they stand in the database.
const (
	KindAssigned   = "assigned"
	KindUnassigned = "unassigned"
)

// createdRow returns what a creation event says, except for where and when it was created.
func createdRow(refs names.Creation, offset ledger.Offset, c *ledger.CreatedEvent, synchronizer *int32,
	exact *Exact) Created {
	exact.Time("createdAt", c.CreatedAt)
	return Created{
		LedgerOffset: int64(offset), NodeID: c.NodeID, ContractID: c.ContractID,
		TemplateRef: refs.Template, SynchronizerRef: synchronizer, CreatedAt: Timestamp(c.CreatedAt), ACSDelta: c.ACSDelta,
		Payload: exact.Value("payload", c.Argument), ContractKey: exact.Value("contract_key", c.ContractKey),
		ContractKeyHash: c.ContractKeyHash, SignatoriesRef: refs.Signatories, ObserversRef: refs.Observers,
		WitnessPartiesRef: refs.Witnesses, StakeholdersRef: refs.Stakeholders, CreatedEventBlob: c.Blob,
		Extra: exact.Value("extra", c.Extra), Exact: exact.Column(),
	}
}

// interfaceViewRow returns what a creation event says of an interface view, by its place in the list.
func interfaceViewRow(refs names.Creation, offset ledger.Offset, c *ledger.CreatedEvent, i int, synchronizer *int32,
	exact *Exact) InterfaceView {
	v := &c.InterfaceViews[i]
	return InterfaceView{
		LedgerOffset: int64(offset), NodeID: c.NodeID, Ordinal: int32(i), ContractID: c.ContractID,
		InterfaceID:     v.InterfaceID,
		SynchronizerRef: synchronizer, ViewValue: exact.Value("view_value", v.Value),
		StatusCode: v.StatusCode, StatusMessage: v.StatusMessage,
		StatusDetails:           exact.Value("status_details", v.StatusDetails),
		ImplementationPackageID: v.ImplementationPackageID, Extra: exact.Value("extra", v.Extra),
		Exact: exact.Column(), SeenByRef: refs.SeenBy,
	}
}

// assignedRow returns what an assignment says, at the place of the creation event inside it. The server states its
// witnesses once, there.
func assignedRow(r *names.References, offset ledger.Offset, nodeID int32, e *ledger.AssignedEvent, witnesses []string,
	exact *Exact) Reassignment {
	return Reassignment{
		LedgerOffset: int64(offset), NodeID: nodeID, Kind: KindAssigned, ContractID: e.ContractID,
		TemplateRef: r.Template(e.TemplateID, e.PackageName, nil), SynchronizerRef: r.Synchronizer(e.Target),
		ReassignmentID: e.ReassignmentID, SourceRef: r.Synchronizer(e.Source), TargetRef: r.Synchronizer(e.Target),
		Submitter: e.Submitter, ReassignmentCounter: e.ReassignmentCounter,
		WitnessPartiesRef: r.Parties(witnesses), Extra: exact.Value("assignment_extra", e.Extra),
		Exact: exact.Column(),
	}
}

// unassignedRow returns what an unassignment says, and who may see it.
func unassignedRow(r *names.References, offset ledger.Offset, e *ledger.UnassignedEvent,
	exact *Exact) (Reassignment, names.ListPlace) {
	witnesses := r.List(e.WitnessParties)
	exact.Time("assignmentExclusivity", e.AssignmentExclusivity)
	return Reassignment{
		LedgerOffset: int64(offset), NodeID: e.NodeID, Kind: KindUnassigned, ContractID: e.ContractID,
		TemplateRef: r.Template(e.TemplateID, e.PackageName, nil), SynchronizerRef: r.Synchronizer(e.Source),
		ReassignmentID: e.ReassignmentID, SourceRef: r.Synchronizer(e.Source), TargetRef: r.Synchronizer(e.Target),
		Submitter: e.Submitter, ReassignmentCounter: e.ReassignmentCounter,
		AssignmentExclusivity: Timestamp(e.AssignmentExclusivity),
		WitnessPartiesRef:     r.At(witnesses), Extra: exact.Value("extra", e.Extra), Exact: exact.Column(),
	}, witnesses
}
