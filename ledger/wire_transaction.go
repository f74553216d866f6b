package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The objects and lists of a history record are parts, which note a value of another kind and do not stop at it: whether
// it matters depends on the record's type, which may stand behind it, and the error can name the event id.

// part is an object, if its kind says so.
type part[T any] struct {
	kind jsontext.Kind // 0: absent
	wire T
}

// UnmarshalJSONFrom reads the next value, if it is an object.
func (p *part[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if p.kind = dec.PeekKind(); p.kind == '{' {
		return json.UnmarshalDecode(dec, &p.wire)
	}
	return dec.SkipValue()
}

func (p *part[T]) present() bool { return p.kind != 0 && p.kind != 'n' }

// object is the object, or an error where there is none.
func (p *part[T]) object() (*T, error) {
	switch {
	case !p.present():
		return nil, errMissing
	case p.kind != '{':
		return nil, fmt.Errorf("is %s where an object is expected", kindName(p.kind))
	default:
		return &p.wire, nil
	}
}

// parts is a list of objects, if its kind says so.
type parts[T any] struct {
	kind jsontext.Kind // 0: absent
	list []part[T]
}

// UnmarshalJSONFrom reads the next value, if it is a list.
func (p *parts[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if p.kind = dec.PeekKind(); p.kind == '[' {
		return json.UnmarshalDecode(dec, &p.list)
	}
	return dec.SkipValue()
}

type wireRecord struct {
	Type     span                  `json:"transaction_type"`
	EventID  span                  `json:"event_id"`
	Date     span                  `json:"date"`
	DomainID span                  `json:"domain_id"`
	Offset   span                  `json:"offset"`
	Round    span                  `json:"round"`
	Transfer part[wireTransfer]    `json:"transfer"`
	Mint     part[wireOwned]       `json:"mint"`
	Tap      part[wireOwned]       `json:"tap"`
	Abort    part[wireInstruction] `json:"abort_transfer_instruction"`
	Unknown  jsontext.Value        `json:",embed,unknown"`
}

// reset forgets a record, but for the memory of its lists, which serves the next one's.
func (w *wireRecord) reset() {
	receivers, changes := w.Transfer.wire.Receivers.list, w.Transfer.wire.BalanceChanges.list
	*w = wireRecord{}
	w.Transfer.wire.Receivers.list, w.Transfer.wire.BalanceChanges.list = receivers[:0], changes[:0]
}

type wireTransfer struct {
	Sender              part[wireSender]         `json:"sender"`
	Receivers           parts[wireReceiver]      `json:"receivers"`
	BalanceChanges      parts[wireBalanceChange] `json:"balance_changes"`
	Description         span                     `json:"description"`
	Kind                span                     `json:"transfer_kind"`
	InstructionReceiver span                     `json:"transferInstructionReceiver"`
	InstructionAmount   span                     `json:"transferInstructionAmount"`
	InstructionCID      span                     `json:"transferInstructionCid"`
	Unknown             jsontext.Value           `json:",embed,unknown"`
}

type wireSender struct {
	Party                      span           `json:"party"`
	ChangeFee                  span           `json:"sender_change_fee"`
	ChangeAmount               span           `json:"sender_change_amount"`
	Fee                        span           `json:"sender_fee"`
	HoldingFees                span           `json:"holding_fees"`
	InputCoinAmount            span           `json:"input_coin_amount"`
	InputAmuletAmount          span           `json:"input_amulet_amount"`
	InputAppRewardAmount       span           `json:"input_app_reward_amount"`
	InputValidatorRewardAmount span           `json:"input_validator_reward_amount"`
	InputSVRewardAmount        span           `json:"input_sv_reward_amount"`
	InputValidatorFaucetAmount span           `json:"input_validator_faucet_amount"`
	Unknown                    jsontext.Value `json:",embed,unknown"`
}

type wireReceiver struct {
	Party   span           `json:"party"`
	Amount  span           `json:"amount"`
	Fee     span           `json:"receiver_fee"`
	Unknown jsontext.Value `json:",embed,unknown"`
}

type wireBalanceChange struct {
	Party           span           `json:"party"`
	InitialAmount   span           `json:"change_to_initial_amount_as_of_round_zero"`
	HoldingFeesRate span           `json:"change_to_holding_fees_rate"`
	Unknown         jsontext.Value `json:",embed,unknown"`
}

type wireOwned struct {
	CoinOwner    span           `json:"coin_owner"`
	CoinAmount   span           `json:"coin_amount"`
	AmuletOwner  span           `json:"amulet_owner"`
	AmuletAmount span           `json:"amulet_amount"`
	Unknown      jsontext.Value `json:",embed,unknown"`
}

type wireInstruction struct {
	InstructionCID span           `json:"transfer_instruction_cid"`
	Kind           span           `json:"abort_kind"`
	Unknown        jsontext.Value `json:",embed,unknown"`
}
