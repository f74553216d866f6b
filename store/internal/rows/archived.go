package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

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

func (w *walk) archive(a *ledger.ArchivedEvent) {
	witnesses := w.wanted.List(a.WitnessParties)
	w.seenBy = w.seenBy.With(witnesses)
	w.archived = append(w.archived, Archived{
		LedgerOffset: int64(w.u.Offset), NodeID: a.NodeID, ContractID: a.ContractID,
		TemplateRef:     w.wanted.Template(a.TemplateID, a.PackageName, nil),
		SynchronizerRef: w.synchronizer, RecordTime: Timestamp(w.u.RecordTime), WitnessPartiesRef: w.wanted.At(witnesses),
		ImplementedInterfaces: a.ImplementedInterfaces, Extra: w.exact.Value("extra", a.Extra), Exact: w.exact.Column(),
	})
	w.effect(Effect{ContractID: a.ContractID, Synchronizer: w.synchronizer, NodeID: a.NodeID, WantsLookup: true})
}
