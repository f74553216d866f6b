package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

// ActiveContract is a row of active_contracts.
type ActiveContract struct {
	ActivatedOffset     int64  `db:"activated_offset"`
	ReassignmentCounter int64  `db:"reassignment_counter"`
	ActivatedNodeID     int32  `db:"activated_node_id"`
	SynchronizerRef     *int32 `db:"synchronizer_ref"`
	TemplateRef         *int32 `db:"template_ref"`
	StakeholdersRef     *int32 `db:"stakeholders_ref"`
	// What the contract is a holding of. NULL: it is none.
	PositionID pgtype.UUID `db:"position_id"`
	ContractID string      `db:"contract_id"`
	// How much it holds. NULL: not readable, or it is no holding.
	Amount *ledger.Decimal `db:"amount"`
	// Whether that is locked. NULL: not readable, or it is no holding.
	Locked *bool `db:"locked"`
	// When the lock expires. NULL: no lock, no known end, not readable, or it is no holding.
	LockedUntil pgtype.Timestamptz `db:"locked_until"`
}

// Lifetime is a row of lifetimes: of a contract that was active.
type Lifetime struct {
	DeactivatedOffset int64 `db:"deactivated_offset"`
	ActiveContract
}
