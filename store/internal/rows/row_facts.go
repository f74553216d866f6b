package rows

import (
	"github.com/jackc/pgx/v5/pgtype"
)

// Update is a row of updates.
type Update struct {
	LedgerOffset    int64              `db:"ledger_offset"`
	RecordTime      pgtype.Timestamptz `db:"record_time"`
	EffectiveAt     pgtype.Timestamptz `db:"effective_at"`
	PaidTrafficCost *int64             `db:"paid_traffic_cost"`
	SynchronizerRef *int32             `db:"synchronizer_ref"`
	// Parties that may see at least one of its events: one of the lists of its events. NULL: none.
	SeenByRef *int32 `db:"seen_by_ref"`
	// More of them: another list, where that one has not all. NULL: no more.
	SeenAlsoByRef *int32 `db:"seen_also_by_ref"`
	// All others, where both have not all. NULL: no more.
	SeenByOthersRef         *int32  `db:"seen_by_others_ref"`
	Kind                    string  `db:"kind"`
	UpdateID                *string `db:"update_id"`
	CommandID               *string `db:"command_id"`
	WorkflowID              *string `db:"workflow_id"`
	TraceParent             *string `db:"trace_parent"`
	TraceState              *string `db:"trace_state"`
	ExternalTransactionHash []byte  `db:"external_transaction_hash"`
	TransactionHash         []byte  `db:"transaction_hash"`
	Extra                   []byte  `db:"extra"`
	Exact                   []byte  `db:"exact"`
}

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

// Archived is a row of archived.
type Archived struct {
	LedgerOffset          int64              `db:"ledger_offset"`
	RecordTime            pgtype.Timestamptz `db:"record_time"`
	NodeID                int32              `db:"node_id"`
	TemplateRef           *int32             `db:"template_ref"`
	SynchronizerRef       *int32             `db:"synchronizer_ref"`
	WitnessPartiesRef     *int32             `db:"witness_parties_ref"`
	ContractID            string             `db:"contract_id"`
	ImplementedInterfaces []string           `db:"implemented_interfaces"`
	Extra                 []byte             `db:"extra"`
	Exact                 []byte             `db:"exact"`
}

// Exercised is a row of exercised.
type Exercised struct {
	LedgerOffset          int64              `db:"ledger_offset"`
	NodeID                int32              `db:"node_id"`
	TemplateRef           *int32             `db:"template_ref"`
	RecordTime            pgtype.Timestamptz `db:"record_time"`
	SynchronizerRef       *int32             `db:"synchronizer_ref"`
	ActingPartiesRef      *int32             `db:"acting_parties_ref"`
	WitnessPartiesRef     *int32             `db:"witness_parties_ref"`
	LastDescendantNodeID  int32              `db:"last_descendant_node_id"`
	Consuming             bool               `db:"consuming"`
	ACSDelta              *bool              `db:"acs_delta"`
	Choice                string             `db:"choice"`
	ContractID            string             `db:"contract_id"`
	InterfaceID           *string            `db:"interface_id"`
	ChoiceArgument        []byte             `db:"choice_argument"`
	ExerciseResult        []byte             `db:"exercise_result"`
	ImplementedInterfaces []string           `db:"implemented_interfaces"`
	Extra                 []byte             `db:"extra"`
	Exact                 []byte             `db:"exact"`
}

// InterfaceView is a row of interface_views.
type InterfaceView struct {
	LedgerOffset    int64              `db:"ledger_offset"`
	RecordTime      pgtype.Timestamptz `db:"record_time"`
	NodeID          int32              `db:"node_id"`
	Ordinal         int32              `db:"ordinal"`
	SynchronizerRef *int32             `db:"synchronizer_ref"`
	StatusCode      *int32             `db:"status_code"`
	// The parties that may see the creation event.
	SeenByRef               *int32  `db:"seen_by_ref"`
	ContractID              string  `db:"contract_id"`
	InterfaceID             string  `db:"interface_id"`
	ViewValue               []byte  `db:"view_value"`
	StatusMessage           *string `db:"status_message"`
	StatusDetails           []byte  `db:"status_details"`
	ImplementationPackageID *string `db:"implementation_package_id"`
	Extra                   []byte  `db:"extra"`
	Exact                   []byte  `db:"exact"`
}

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

// TopologyEvent is a row of topology_events.
type TopologyEvent struct {
	LedgerOffset    int64              `db:"ledger_offset"`
	NodeID          int32              `db:"node_id"`
	Kind            string             `db:"kind"`
	SynchronizerRef *int32             `db:"synchronizer_ref"`
	RecordTime      pgtype.Timestamptz `db:"record_time"`
	PartyID         *string            `db:"party_id"`
	ParticipantID   *string            `db:"participant_id"`
	Permission      *string            `db:"permission"`
	Extra           []byte             `db:"extra"`
	Exact           []byte             `db:"exact"`
}

// UnknownElement is a row of unknown_elements.
type UnknownElement struct {
	LedgerOffset    int64              `db:"ledger_offset"`
	Ordinal         int32              `db:"ordinal"`
	NodeID          *int32             `db:"node_id"`
	Kind            string             `db:"kind"`
	SynchronizerRef *int32             `db:"synchronizer_ref"`
	RecordTime      pgtype.Timestamptz `db:"record_time"`
	Raw             []byte             `db:"raw"`
	Exact           []byte             `db:"exact"`
}
