package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// Reassignment is a row of reassignments.
type Reassignment struct {
	LedgerOffset          int64              `db:"ledger_offset"`
	RecordTime            pgtype.Timestamptz `db:"record_time"`
	ReassignmentCounter   int64              `db:"reassignment_counter"`
	AssignmentExclusivity pgtype.Timestamptz `db:"assignment_exclusivity"`
	NodeID                int32              `db:"node_id"`
	TemplateRef           *int32             `db:"template_ref"`
	SynchronizerRef       *int32             `db:"synchronizer_ref"`
	SourceRef             *int32             `db:"source_ref"`
	TargetRef             *int32             `db:"target_ref"`
	WitnessPartiesRef     *int32             `db:"witness_parties_ref"`
	Kind                  string             `db:"kind"`
	ContractID            string             `db:"contract_id"`
	ReassignmentID        string             `db:"reassignment_id"`
	Submitter             *string            `db:"submitter"`
	Extra                 []byte             `db:"extra"`
	Exact                 []byte             `db:"exact"`
}

// The kinds of reassignment, as they stand in the database.
const (
	KindAssigned   = "assigned"
	KindUnassigned = "unassigned"
)

// SnapshotReassignment is a row of reassignments that stands for an entry of a snapshot.
type SnapshotReassignment struct {
	Reassignment
	CreatedOffset *int64  `db:"created_offset"`
	CreatedNodeID *int32  `db:"created_node_id"`
	WorkflowID    *string `db:"workflow_id"`
	EntryExtra    []byte  `db:"entry_extra"`
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

func (w *walk) reassign(row Reassignment) {
	row.RecordTime = Timestamp(w.u.RecordTime)
	w.reassignments = append(w.reassignments, row)
}

func (w *walk) unassign(e *ledger.UnassignedEvent) {
	row, seenBy := unassignedRow(w.wanted, w.u.Offset, e, &w.exact)
	w.seenBy = w.seenBy.With(seenBy)
	w.reassign(row)
	w.effect(Effect{ContractID: e.ContractID, Synchronizer: row.SynchronizerRef, NodeID: e.NodeID})
}
