package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

// Transaction is a row of transactions.
type Transaction struct {
	Seq             int64              `db:"seq"`
	EventID         string             `db:"event_id"`
	Kind            string             `db:"kind"`
	TransactionType *string            `db:"transaction_type"`
	Date            pgtype.Timestamptz `db:"date"`
	DomainRef       *int32             `db:"domain_ref"`
	OffsetText      *string            `db:"offset_text"`
	Round           *int64             `db:"round"`
	UnitWord        *string            `db:"unit_word"`
	Fingerprint     int64              `db:"fingerprint"`
	Extra           []byte             `db:"extra"`
	Rules           *int32             `db:"rules"`
	Exact           []byte             `db:"exact"`
	LedgerOffset    *int64             `db:"ledger_offset"`
}

// Transfer is a row of transfers.
type Transfer struct {
	Seq                        int64              `db:"seq"`
	Date                       pgtype.Timestamptz `db:"date"`
	Round                      *int64             `db:"round"`
	Sender                     string             `db:"sender"`
	SenderChangeFee            *ledger.Decimal    `db:"sender_change_fee"`
	SenderChangeAmount         *ledger.Decimal    `db:"sender_change_amount"`
	SenderFee                  *ledger.Decimal    `db:"sender_fee"`
	HoldingFees                *ledger.Decimal    `db:"holding_fees"`
	InputAmount                *ledger.Decimal    `db:"input_amount"`
	InputAppRewardAmount       *ledger.Decimal    `db:"input_app_reward_amount"`
	InputValidatorRewardAmount *ledger.Decimal    `db:"input_validator_reward_amount"`
	InputSvRewardAmount        *ledger.Decimal    `db:"input_sv_reward_amount"`
	InputValidatorFaucetAmount *ledger.Decimal    `db:"input_validator_faucet_amount"`
	Description                *string            `db:"description"`
	TransferKind               *string            `db:"transfer_kind"`
	InstructionReceiver        *string            `db:"instruction_receiver"`
	InstructionAmount          *ledger.Decimal    `db:"instruction_amount"`
	InstructionCid             *string            `db:"instruction_cid"`
	Receivers                  *int32             `db:"receivers"`
	BalanceChanges             *int32             `db:"balance_changes"`
	SenderExtra                []byte             `db:"sender_extra"`
	Extra                      []byte             `db:"extra"`
}

// TransferReceiver is a row of transfer_receivers.
type TransferReceiver struct {
	Seq         int64           `db:"seq"`
	Ordinal     int32           `db:"ordinal"`
	Party       string          `db:"party"`
	Amount      ledger.Decimal  `db:"amount"`
	ReceiverFee *ledger.Decimal `db:"receiver_fee"`
	Extra       []byte          `db:"extra"`
}

// PartyTransfer is a row of party_transfers.
type PartyTransfer struct {
	Party  string             `db:"party"`
	Date   pgtype.Timestamptz `db:"date"`
	Seq    int64              `db:"seq"`
	Sent   bool               `db:"sent"`
	Round  *int64             `db:"round"`
	Amount *ledger.Decimal    `db:"amount"`
	Fee    *ledger.Decimal    `db:"fee"`
}

// Mint is a row of mints, or of taps.
type Mint struct {
	Seq    int64              `db:"seq"`
	Date   pgtype.Timestamptz `db:"date"`
	Round  *int64             `db:"round"`
	Owner  string             `db:"owner"`
	Amount ledger.Decimal     `db:"amount"`
	Extra  []byte             `db:"extra"`
}

// AbortedTransferInstruction is a row of aborted_transfer_instructions.
type AbortedTransferInstruction struct {
	Seq            int64              `db:"seq"`
	Date           pgtype.Timestamptz `db:"date"`
	InstructionCid string             `db:"instruction_cid"`
	AbortKind      *string            `db:"abort_kind"`
	Extra          []byte             `db:"extra"`
}

// BalanceChange is a row of balance_changes.
type BalanceChange struct {
	Seq                                int64              `db:"seq"`
	Ordinal                            int32              `db:"ordinal"`
	Date                               pgtype.Timestamptz `db:"date"`
	Round                              *int64             `db:"round"`
	Party                              string             `db:"party"`
	ChangeToInitialAmountAsOfRoundZero ledger.Decimal     `db:"change_to_initial_amount_as_of_round_zero"`
	ChangeToHoldingFeesRate            ledger.Decimal     `db:"change_to_holding_fees_rate"`
	Extra                              []byte             `db:"extra"`
}

// UnknownTransaction is a row of unknown_transactions.
type UnknownTransaction struct {
	Seq int64  `db:"seq"`
	Raw []byte `db:"raw"`
}
