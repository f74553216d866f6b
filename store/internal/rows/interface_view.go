package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

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
