package ledger

// TransactionKind is what a record of the transaction history tells of.
type TransactionKind string

// The kinds, as they stand in the database.
const (
	TransactionTransfer TransactionKind = "transfer"
	TransactionMint     TransactionKind = "mint"
	TransactionTap      TransactionKind = "tap"
	TransactionAbort    TransactionKind = "abort_transfer_instruction"
	TransactionUnknown  TransactionKind = "unknown" // kept raw: of another type, without a date, with no part or with several
)

// Transaction is a record of the transaction history (interface.md, "Transaction history record"). What the server left
// out or sent as null is nil.
type Transaction struct {
	EventID  string // never empty; two records can share one
	Kind     TransactionKind
	Type     *string // transaction_type, which servers send and interface.md does not have
	Date     Time    // valid, except on records of an unknown kind
	DomainID *string
	Offset   *string // differs between services
	Round    *int64
	// Word is the server's word for the unit of value, which begins or stands in some of its field names: "coin" or
	// "amulet"; empty where the record has no such field.
	Word string

	// One of these, by Kind; none of them where it is unknown.
	Transfer  *Transfer
	Mint, Tap *OwnedAmount
	Abort     *AbortedInstruction

	Raw   JSON // the whole record, where the kind is unknown; else nil
	Extra JSON // the record's members that this version does not know, as one object
}

// Transfer is a payment of one sender to any number of receivers.
type Transfer struct {
	Sender         Sender
	Receivers      []Receiver      // nil: absent
	BalanceChanges []BalanceChange // nil: absent; empty on recent services
	Description    *string
	// DescriptionExact is the description's JSON where no text of the database can hold it, because a NUL or half of a
	// surrogate pair stands in it; else nil. Each of those is U+FFFD in Description.
	DescriptionExact JSON
	Kind             *string // transfer_kind, which servers send and interface.md does not have

	InstructionReceiver *string
	InstructionAmount   *Decimal
	InstructionCID      *string

	Extra JSON
}

// Sender is who pays, with what, and for which fees.
type Sender struct {
	Party                      string
	ChangeFee                  *Decimal
	ChangeAmount               *Decimal
	Fee                        *Decimal
	HoldingFees                *Decimal
	InputAmount                *Decimal
	InputAppRewardAmount       *Decimal
	InputValidatorRewardAmount *Decimal
	InputSVRewardAmount        *Decimal
	InputValidatorFaucetAmount *Decimal

	Extra JSON
}

// Receiver is who is paid.
type Receiver struct {
	Party  string
	Amount Decimal
	Fee    *Decimal

	Extra JSON
}

// BalanceChange is what a transfer does to a party's balance, by the service's own account.
type BalanceChange struct {
	Party           string
	InitialAmount   Decimal // change_to_initial_amount_as_of_round_zero
	HoldingFeesRate Decimal // change_to_holding_fees_rate

	Extra JSON
}

// OwnedAmount is what a mint or a tap creates.
type OwnedAmount struct {
	Owner  string
	Amount Decimal

	Extra JSON
}

// AbortedInstruction is an offered transfer that was withdrawn or rejected.
type AbortedInstruction struct {
	InstructionCID string
	Kind           *string // abort_kind, which servers send and interface.md does not have

	Extra JSON
}
