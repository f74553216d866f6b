package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

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

// SnapshotUnknownElement is a row of unknown_elements that stands for an entry of a snapshot.
type SnapshotUnknownElement struct {
	UnknownElement
	WorkflowID *string `db:"workflow_id"`
	EntryExtra []byte  `db:"entry_extra"`
}

// unknownElement adds an unknown event, or an update of an unknown kind, by its place in the list.
func (w *walk) unknownElement(e *ledger.UnknownElement, i int) {
	w.unknown = append(w.unknown, UnknownElement{
		LedgerOffset: int64(w.u.Offset), Ordinal: int32(i), NodeID: e.NodeID, Kind: e.Kind, SynchronizerRef: w.synchronizer,
		RecordTime: Timestamp(w.u.RecordTime), Raw: w.exact.Value("raw", e.Raw), Exact: w.exact.Column(),
	})
}
