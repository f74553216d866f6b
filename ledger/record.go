package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// RecordKind is the kind of a record of the transaction history; its text is stored in the database.
type RecordKind string

// The kinds of record.
const (
	RecordTransfer RecordKind = "transfer"
	RecordMint     RecordKind = "mint"
	RecordTap      RecordKind = "tap"
	RecordAbort    RecordKind = "abort_transfer_instruction"
	RecordUnknown  RecordKind = "unknown" // kept raw: another type, without a date, or not with exactly one part
)

// Record is one record of the transaction history (interface.md, "Transaction history record"). What the server left
// out or sent as null is nil.
type Record struct {
	EventID  string // never empty; two records can share one
	Kind     RecordKind
	Type     *string // transaction_type, which servers send and interface.md does not have
	Date     Time    // valid, except on records of an unknown kind
	DomainID *string
	Offset   *string // differs between services
	Round    *int64
	// Word is the server's word for the unit of value, a part of some field names: "coin" or "amulet"; empty if the record
	// has no such field.
	Word string

	// The one for Kind is set; none if Kind is unknown.
	Transfer  *Transfer
	Mint, Tap *OwnedAmount
	Abort     *AbortedInstruction

	Raw   JSON // the whole record if the kind is unknown; else nil
	Extra JSON // the record's members that this version does not know, as one object

	// Of a record that follows from an update of the network: the version of the rules by which it does, and the update's
	// offset. 0: it was served.
	Rules int32
	At    Offset
}

// Transfer is a payment of one sender to any number of receivers.
type Transfer struct {
	Sender         Sender
	Receivers      []Receiver      // nil: absent
	BalanceChanges []BalanceChange // nil: absent; empty on recent services
	Description    *string
	// DescriptionExact is the description's JSON if it has a NUL or half of a surrogate pair, which no text of the
	// database can hold; else nil. In Description each of these is U+FFFD.
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

// BalanceChange is the effect of a transfer on a party's balance, as the service reports it.
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

// EncodeRecords returns records as JSON, of which [DecodeRecords] makes the same ones. It is stored, so the members of
// the types above keep their names.
func EncodeRecords(records []Record) (JSON, error) {
	text, err := json.Marshal(records, json.OmitZeroStructFields(true))
	if err != nil {
		return nil, fmt.Errorf("write %d records as JSON: %w", len(records), err)
	}
	return text, nil
}

// DecodeRecords reads what [EncodeRecords] returned. It is never nil.
func DecodeRecords(text JSON) (records []Record, err error) {
	if err := json.Unmarshal(text, &records, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read noted records, which are not as this version writes them: %w", err)
	}
	return append([]Record{}, records...), nil
}
