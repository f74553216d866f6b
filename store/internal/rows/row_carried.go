package rows

import (
	"github.com/jackc/pgx/v5/pgtype"
)

// CarriedCreated is a row of carried_created.
type CarriedCreated struct {
	LedgerOffset        int64              `db:"ledger_offset"`
	NodeID              int32              `db:"node_id"`
	SnapshotOffset      int64              `db:"snapshot_offset"`
	ContractID          string             `db:"contract_id"`
	TemplateRef         *int32             `db:"template_ref"`
	SynchronizerRef     *int32             `db:"synchronizer_ref"`
	WorkflowID          *string            `db:"workflow_id"`
	ReassignmentCounter *int64             `db:"reassignment_counter"`
	CreatedAt           pgtype.Timestamptz `db:"created_at"`
	ACSDelta            *bool              `db:"acs_delta"`
	Payload             []byte             `db:"payload"`
	ContractKey         []byte             `db:"contract_key"`
	ContractKeyHash     []byte             `db:"contract_key_hash"`
	SignatoriesRef      *int32             `db:"signatories_ref"`
	ObserversRef        *int32             `db:"observers_ref"`
	WitnessPartiesRef   *int32             `db:"witness_parties_ref"`
	CreatedEventBlob    []byte             `db:"created_event_blob"`
	Extra               []byte             `db:"extra"`
	EntryExtra          []byte             `db:"entry_extra"`
	StakeholdersRef     *int32             `db:"stakeholders_ref"`
	Exact               []byte             `db:"exact"`
	ServedOffset        *int64             `db:"served_offset"`
	ServedNodeID        *int32             `db:"served_node_id"`
}

// CarriedInterfaceView is a row of carried_interface_views.
type CarriedInterfaceView struct {
	LedgerOffset            int64   `db:"ledger_offset"`
	NodeID                  int32   `db:"node_id"`
	Ordinal                 int32   `db:"ordinal"`
	SnapshotOffset          int64   `db:"snapshot_offset"`
	ContractID              string  `db:"contract_id"`
	InterfaceID             string  `db:"interface_id"`
	SynchronizerRef         *int32  `db:"synchronizer_ref"`
	ViewValue               []byte  `db:"view_value"`
	StatusCode              *int32  `db:"status_code"`
	StatusMessage           *string `db:"status_message"`
	StatusDetails           []byte  `db:"status_details"`
	ImplementationPackageID *string `db:"implementation_package_id"`
	Extra                   []byte  `db:"extra"`
	SeenByRef               *int32  `db:"seen_by_ref"`
	Exact                   []byte  `db:"exact"`
}

// CarriedReassignment is a row of carried_reassignments.
type CarriedReassignment struct {
	LedgerOffset          int64              `db:"ledger_offset"`
	NodeID                int32              `db:"node_id"`
	SnapshotOffset        int64              `db:"snapshot_offset"`
	Kind                  string             `db:"kind"`
	ContractID            string             `db:"contract_id"`
	TemplateRef           *int32             `db:"template_ref"`
	SynchronizerRef       *int32             `db:"synchronizer_ref"`
	WorkflowID            *string            `db:"workflow_id"`
	ReassignmentID        string             `db:"reassignment_id"`
	SourceRef             *int32             `db:"source_ref"`
	TargetRef             *int32             `db:"target_ref"`
	Submitter             *string            `db:"submitter"`
	ReassignmentCounter   int64              `db:"reassignment_counter"`
	AssignmentExclusivity pgtype.Timestamptz `db:"assignment_exclusivity"`
	WitnessPartiesRef     *int32             `db:"witness_parties_ref"`
	CreatedOffset         int64              `db:"created_offset"`
	CreatedNodeID         int32              `db:"created_node_id"`
	Extra                 []byte             `db:"extra"`
	EntryExtra            []byte             `db:"entry_extra"`
	Exact                 []byte             `db:"exact"`
}

// CarriedUnknownElement is a row of carried_unknown_elements.
type CarriedUnknownElement struct {
	LedgerOffset int64   `db:"ledger_offset"`
	Ordinal      int32   `db:"ordinal"`
	Kind         string  `db:"kind"`
	Raw          []byte  `db:"raw"`
	WorkflowID   *string `db:"workflow_id"`
	EntryExtra   []byte  `db:"entry_extra"`
	Exact        []byte  `db:"exact"`
}

// Shown is a row of resync_shown.
type Shown struct {
	NodeID          int32  `db:"node_id"`
	SynchronizerRef *int32 `db:"synchronizer_ref"`
	ContractID      string `db:"contract_id"`
}
