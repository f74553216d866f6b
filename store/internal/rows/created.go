package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// Created is a row of created.
type Created struct {
	LedgerOffset      int64              `db:"ledger_offset"`
	NodeID            int32              `db:"node_id"`
	TemplateRef       *int32             `db:"template_ref"`
	RecordTime        pgtype.Timestamptz `db:"record_time"`
	CreatedAt         pgtype.Timestamptz `db:"created_at"`
	SynchronizerRef   *int32             `db:"synchronizer_ref"`
	SignatoriesRef    *int32             `db:"signatories_ref"`
	ObserversRef      *int32             `db:"observers_ref"`
	WitnessPartiesRef *int32             `db:"witness_parties_ref"`
	// Signatories and observers. NULL: not served.
	StakeholdersRef  *int32 `db:"stakeholders_ref"`
	ACSDelta         *bool  `db:"acs_delta"`
	Origin           string `db:"origin"`
	ContractID       string `db:"contract_id"`
	Payload          []byte `db:"payload"`
	ContractKey      []byte `db:"contract_key"`
	ContractKeyHash  []byte `db:"contract_key_hash"`
	CreatedEventBlob []byte `db:"created_event_blob"`
	Extra            []byte `db:"extra"`
	Exact            []byte `db:"exact"`
}

// SnapshotCreated is a row of created that stands for an entry of a snapshot.
type SnapshotCreated struct {
	Created
	// NULL: not active, but the creation of a reassignment that is incomplete.
	ReassignmentCounter *int64 `db:"reassignment_counter"`
	// Where the participant shows what a resync took in. NULL: at the row's own place.
	ServedOffset *int64  `db:"served_offset"`
	ServedNodeID *int32  `db:"served_node_id"`
	WorkflowID   *string `db:"workflow_id"`
	EntryExtra   []byte  `db:"entry_extra"`
}

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

// created adds a creation event. It activates the contract where acs_delta is not false, or by assignment.
func (w *walk) created(c *ledger.CreatedEvent, assignments map[int32]*ledger.AssignedEvent) {
	refs := creationOf(w.wanted, c, w.u.Plain)
	w.seenBy = w.seenBy.With(refs.Viewers[:]...)
	synchronizer := w.synchronizer
	effect := Effect{ContractID: c.ContractID, NodeID: c.NodeID, Activates: true, Template: refs.Template,
		Holding: refs.Holding, Stakeholders: refs.Stakeholders}
	if c.Origin == ledger.OriginAssignment {
		assigned := assignments[c.NodeID]
		synchronizer = w.wanted.Synchronizer(assigned.Target)
		effect.Assigned, effect.Counter = true, assigned.ReassignmentCounter
	}
	row := createdRow(refs, w.u.Offset, c, synchronizer, &w.exact)
	row.Origin, row.RecordTime = string(c.Origin), Timestamp(w.u.RecordTime)
	w.Created = append(w.Created, row)
	for i := range c.InterfaceViews {
		view := interfaceViewRow(refs, w.u.Offset, c, i, synchronizer, &w.exact)
		view.RecordTime = row.RecordTime
		w.interfaceViews = append(w.interfaceViews, view)
	}
	if effect.Assigned {
		w.reassign(assignedRow(w.wanted, w.u.Offset, c.NodeID, assignments[c.NodeID], c.WitnessParties, &w.exact))
	}
	if effect.Synchronizer = synchronizer; effect.Assigned || c.ACSDelta == nil || *c.ACSDelta {
		w.effect(effect)
	}
}
