package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The server's words for the unit of value.
const (
	wordCoin   = "coin"
	wordAmulet = "amulet"
)

func (r *reader) transfer(p *part[wireTransfer]) (t *Transfer, word string, err error) {
	w, err := p.object()
	if err != nil {
		return nil, "", err
	}
	o := object{reader: r}
	t = &Transfer{
		Kind:                o.optionalShared("transfer_kind", w.Kind),
		InstructionReceiver: o.optionalShared("transferInstructionReceiver", w.InstructionReceiver),
		InstructionAmount:   o.optionalDecimal("transferInstructionAmount", w.InstructionAmount),
		InstructionCID:      o.optionalText("transferInstructionCid", w.InstructionCID),
		Extra:               w.Unknown,
	}
	t.Description, t.DescriptionExact = o.freeText("description", w.Description)
	t.Sender, word, err = r.sender(&w.Sender)
	o.fail("sender", err)
	t.Receivers = listOf(&o, "receivers", &w.Receivers, (*reader).receiver)
	t.BalanceChanges = listOf(&o, "balance_changes", &w.BalanceChanges, (*reader).balanceChange)
	return t, word, o.err
}

func (r *reader) sender(p *part[wireSender]) (s Sender, word string, err error) {
	w, err := p.object()
	if err != nil {
		return s, "", err
	}
	o := object{reader: r}
	word = o.word(o.at(w.InputCoinAmount) != nil, o.at(w.InputAmuletAmount) != nil)
	inputName, input := "input_coin_amount", w.InputCoinAmount
	if word == wordAmulet {
		inputName, input = "input_amulet_amount", w.InputAmuletAmount
	}
	s = Sender{
		Party:                      o.indexed("party", w.Party),
		ChangeFee:                  o.optionalDecimal("sender_change_fee", w.ChangeFee),
		ChangeAmount:               o.optionalDecimal("sender_change_amount", w.ChangeAmount),
		Fee:                        o.optionalDecimal("sender_fee", w.Fee),
		HoldingFees:                o.optionalDecimal("holding_fees", w.HoldingFees),
		InputAmount:                o.optionalDecimal(inputName, input),
		InputAppRewardAmount:       o.optionalDecimal("input_app_reward_amount", w.InputAppRewardAmount),
		InputValidatorRewardAmount: o.optionalDecimal("input_validator_reward_amount", w.InputValidatorRewardAmount),
		InputSVRewardAmount:        o.optionalDecimal("input_sv_reward_amount", w.InputSVRewardAmount),
		InputValidatorFaucetAmount: o.optionalDecimal("input_validator_faucet_amount", w.InputValidatorFaucetAmount),
		Extra:                      w.Unknown,
	}
	return s, word, o.err
}

func (r *reader) receiver(p *part[wireReceiver]) (Receiver, error) {
	w, err := p.object()
	if err != nil {
		return Receiver{}, err
	}
	o := object{reader: r}
	receiver := Receiver{
		Party:  o.indexed("party", w.Party),
		Amount: o.decimal("amount", w.Amount),
		Fee:    o.optionalDecimal("receiver_fee", w.Fee),
		Extra:  w.Unknown,
	}
	return receiver, o.err
}

func (r *reader) balanceChange(p *part[wireBalanceChange]) (BalanceChange, error) {
	w, err := p.object()
	if err != nil {
		return BalanceChange{}, err
	}
	o := object{reader: r}
	change := BalanceChange{
		Party:           o.indexed("party", w.Party),
		InitialAmount:   o.decimal("change_to_initial_amount_as_of_round_zero", w.InitialAmount),
		HoldingFeesRate: o.decimal("change_to_holding_fees_rate", w.HoldingFeesRate),
		Extra:           w.Unknown,
	}
	return change, o.err
}

// owned converts a mint or a tap.
func (r *reader) owned(p *part[wireOwned]) (owned *OwnedAmount, word string, err error) {
	w, err := p.object()
	if err != nil {
		return nil, "", err
	}
	o := object{reader: r}
	word = o.word(o.at(w.CoinOwner) != nil || o.at(w.CoinAmount) != nil, o.at(w.AmuletOwner) != nil || o.at(w.AmuletAmount) != nil)
	owned = &OwnedAmount{Extra: w.Unknown}
	switch word {
	case wordCoin:
		owned.Owner = o.indexed("coin_owner", w.CoinOwner)
		owned.Amount = o.decimal("coin_amount", w.CoinAmount)
	case wordAmulet:
		owned.Owner = o.indexed("amulet_owner", w.AmuletOwner)
		owned.Amount = o.decimal("amulet_amount", w.AmuletAmount)
	default:
		o.fail("coin_owner", fmt.Errorf("%w, and so is amulet_owner", errMissing))
	}
	return owned, word, o.err
}

func (r *reader) abort(p *part[wireInstruction]) (*AbortedInstruction, error) {
	w, err := p.object()
	if err != nil {
		return nil, err
	}
	o := object{reader: r}
	aborted := &AbortedInstruction{
		InstructionCID: o.unique("transfer_instruction_cid", w.InstructionCID),
		Kind:           o.optionalShared("abort_kind", w.Kind),
		Extra:          w.Unknown,
	}
	return aborted, o.err
}

// maxIndexed is how many bytes a text may have that stands in an index of the database, which takes 2,700 at most with what
// stands beside it. Real ids have at most 255 characters.
const maxIndexed = 1000

// indexed reads a required text that the database has an index of.
func (o *object) indexed(field string, s span) string {
	text := o.shared(field, s)
	if len(text) > maxIndexed {
		o.fail(field, fmt.Errorf("has %d bytes, and an id at most %d: %s", len(text), maxIndexed, shorten([]byte(text))))
	}
	return text
}

// optionalIndexed reads an optional one.
func (o *object) optionalIndexed(field string, s span) *string {
	if o.at(s) == nil {
		return nil
	}
	text := o.indexed(field, s)
	return &text
}

// word is the word for the unit of value, by the members that are there: empty where none is.
func (o *object) word(coin, amulet bool) string {
	switch {
	case coin && amulet:
		o.fail("", errors.New("calls the unit of value both coin and amulet"))
		return ""
	case coin:
		return wordCoin
	case amulet:
		return wordAmulet
	default:
		return ""
	}
}

// listOf converts an optional list of objects: nil where it is absent or null, not nil where it is empty.
func listOf[W, T any](o *object, field string, p *parts[W], convert func(*reader, *part[W]) (T, error)) []T {
	switch p.kind {
	case '[':
	case 0, 'n':
		return nil
	default:
		o.fail(field, fmt.Errorf("is %s where an array is expected", kindName(p.kind)))
		return nil
	}
	list := make([]T, len(p.list))
	for i := range p.list {
		item, err := convert(o.reader, &p.list[i])
		if err != nil {
			o.fail(index(field, i), err)
			return nil
		}
		list[i] = item
	}
	return list
}

func (o *object) decimal(field string, s span) Decimal {
	value := o.required(field, s)
	text := o.text(field, value)
	if o.err != nil {
		return ""
	}
	if string(text) == commonDecimal {
		return commonDecimal
	}
	o.fail(field, checkDecimal(text))
	return Decimal(text)
}

// commonDecimal is what most fees and rewards are.
const commonDecimal = "0.0000000000"

func (o *object) optionalDecimal(field string, s span) *Decimal {
	if o.at(s) == nil {
		return nil
	}
	if len(o.decimals) == cap(o.decimals) {
		o.decimals = make([]Decimal, 0, 256)
	}
	o.decimals = append(o.decimals, o.decimal(field, s))
	return &o.decimals[len(o.decimals)-1]
}

// freeText reads an optional text that anybody on the ledger can write, which must not stop the reading. Where a text of
// the database can't hold it, exact is its JSON, and text has U+FFFD for what can't be held.
func (o *object) freeText(field string, s span) (text *string, exact JSON) {
	value := o.at(s)
	if value == nil {
		return nil, nil
	}
	chars, err := o.chars(value)
	if err != nil && jsontext.Value(value).Kind() == '"' {
		chars, _ = jsontext.AppendUnquote(nil, value) // the error is that of the halves of surrogate pairs
		stand := strings.ReplaceAll(string(chars), "\x00", "\uFFFD")
		return &stand, bytes.Clone(value)
	}
	o.fail(field, err)
	plain := string(chars)
	return &plain, nil
}
