package rows

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

// SnapshotReassignment is a row of reassignments that stands for an entry of a snapshot.
type SnapshotReassignment struct {
	Reassignment
	CreatedOffset *int64  `db:"created_offset"`
	CreatedNodeID *int32  `db:"created_node_id"`
	WorkflowID    *string `db:"workflow_id"`
	EntryExtra    []byte  `db:"entry_extra"`
}

// SnapshotUnknownElement is a row of unknown_elements that stands for an entry of a snapshot.
type SnapshotUnknownElement struct {
	UnknownElement
	WorkflowID *string `db:"workflow_id"`
	EntryExtra []byte  `db:"entry_extra"`
}

// Shown is a row of resync_shown.
type Shown struct {
	NodeID          int32  `db:"node_id"`
	SynchronizerRef *int32 `db:"synchronizer_ref"`
	ContractID      string `db:"contract_id"`
}
