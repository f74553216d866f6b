package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
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

// updateRow returns the row of an update, but for who may see it.
func updateRow(wanted *names.References, u *ledger.Update, exact *Exact) Update {
	exact.Time("recordTime", u.RecordTime)
	exact.Time("effectiveAt", u.EffectiveAt)
	row := Update{
		LedgerOffset: int64(u.Offset), Kind: string(u.Kind), SynchronizerRef: wanted.OptionalSynchronizer(u.SynchronizerID),
		RecordTime: Timestamp(u.RecordTime), EffectiveAt: Timestamp(u.EffectiveAt), CommandID: u.CommandID,
		WorkflowID: u.WorkflowID, TraceParent: u.TraceParent, TraceState: u.TraceState,
		ExternalTransactionHash: u.ExternalTransactionHash, TransactionHash: u.TransactionHash,
		PaidTrafficCost: u.PaidTrafficCost, Extra: exact.Value("extra", u.Extra), Exact: exact.Column(),
	}
	if u.ID != "" {
		row.UpdateID = &u.ID
	}
	return row
}
