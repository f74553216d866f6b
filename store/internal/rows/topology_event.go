package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

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

func (w *walk) topology(e *ledger.TopologyEvent) {
	if e.PartyID != nil {
		w.seenBy = w.seenBy.With(w.wanted.List([]string{*e.PartyID}))
	}
	w.topologyEvents = append(w.topologyEvents, TopologyEvent{
		LedgerOffset: int64(w.u.Offset), NodeID: e.NodeID, Kind: string(e.Kind), SynchronizerRef: w.synchronizer,
		RecordTime: Timestamp(w.u.RecordTime), PartyID: e.PartyID, ParticipantID: e.ParticipantID, Permission: e.Permission,
		Extra: w.exact.Value("extra", e.Extra), Exact: w.exact.Column(),
	})
}
