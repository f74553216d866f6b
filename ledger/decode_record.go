package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// DecodeTransactions decodes the JSON object that /v0/transactions serves (interface.md, endpoint 6), in its order. The
// list must be there: an answer without one is an error, not the end. A record's kind follows from its one part and, if
// sent, its transaction_type, which must agree. Unknown members, types and combinations of parts are kept, see
// [Transaction]; members of the answer outside of records are ignored. All errors are *DecodeError. The result shares
// no memory with body, but it shares texts with earlier results: don't change it.
func DecodeTransactions(body []byte) ([]Record, error) {
	form := answer{levels: 2, list: "transactions", plain: true}
	return decode(body, form, func(d *decoder) (records []Record) {
		historyMembers.read(d, &records)
		return records
	})
}

var historyMembers = membersOf(
	must("transactions", func(d *decoder, records *[]Record) {
		*records = elements(d, &d.lexicon.records, func(into *Record, _ int) bool {
			d.record(into)
			return true
		})
	}),
).withoutUnknown()

// record reads a record. If its kind is unknown or it has no date, it is kept as sent, whatever its parts contain.
func (d *decoder) record(t *Record) {
	begun := d.mark()
	*t, d.unitWord = Record{}, ""
	extra := recordMembers.read(d, t)
	if !d.refused && t.Date.Valid {
		kind, _, err := kindOf(t.Type, [...]bool{t.Transfer != nil, t.Mint != nil, t.Tap != nil, t.Abort != nil})
		if err == nil && kind != RecordUnknown {
			t.Kind, t.Word, t.Extra = kind, d.unitWord, extra
			return
		}
	}
	wrong := d.wrong
	d.goBack(begun)
	var o outline
	outlineMembers.read(d, &o)
	if d.refused {
		return
	}
	kind, field, err := kindOf(o.Type, o.parts)
	switch {
	case err != nil:
		d.refuseAt(begun.at, field, err)
	case kind == RecordUnknown || !o.dated:
		*t = o.Record
		t.Kind, t.Raw = RecordUnknown, bytes.Clone(d.text[begun.at:d.at])
	default:
		d.refuseAt(wrong.at, wrong.field, wrong.err)
	}
}

// recordKinds are the known kinds, with their types and the members that identify them.
var recordKinds = [...]struct {
	kind      RecordKind
	typ, part string
}{
	{RecordTransfer, "transfer", "transfer"},
	{RecordMint, "mint", "mint"},
	{RecordTap, "devnet_tap", "tap"},
	{RecordAbort, "abort_transfer_instruction", "abort_transfer_instruction"},
}

// kindOf returns a record's kind by its one part. The server's type, nil if it sent none, must agree. The kind is
// unknown if the type is, or if there is no part or more than one: interface.md does not define these.
func kindOf(typ *string, parts [len(recordKinds)]bool) (kind RecordKind, field string, err error) {
	named, held, count := -1, -1, 0
	for i := range recordKinds {
		if typ != nil && recordKinds[i].typ == *typ {
			named = i
		}
		if parts[i] {
			held = i
			count++
		}
	}
	switch {
	case typ != nil && named < 0, count > 1, typ == nil && count == 0:
		return RecordUnknown, "", nil
	case count == 0:
		return "", recordKinds[named].part, fmt.Errorf("%w, and the transaction_type is %s", errMissing, *typ)
	case typ != nil && held != named:
		return "", recordKinds[held].part, fmt.Errorf("contradicts the transaction_type, which is %s", *typ)
	}
	return recordKinds[held].kind, "", nil
}

// outline is the part of a record that decides its kind, and that is stored even if the kind is unknown.
type outline struct {
	Record
	dated bool
	parts [len(recordKinds)]bool
}

var outlineMembers = membersOf(
	may("transaction_type", func(d *decoder, o *outline) { o.Type = d.commonText() }),
	must("event_id", func(d *decoder, o *outline) { o.EventID = d.rareID() }),
	may("offset", func(d *decoder, o *outline) { o.Offset = attempt(d, (*decoder).rareText) }),
	may("date", func(d *decoder, o *outline) { o.Date, o.dated = attempt(d, (*decoder).time), true }),
	may("domain_id", func(d *decoder, o *outline) { o.DomainID = attempt(d, (*decoder).indexedText) }),
	may("round", func(d *decoder, o *outline) { o.Round = attempt(d, (*decoder).optionalInt64) }),
	part(0), part(1), part(2), part(3),
).withoutUnknown()

func part(i int) member[outline] {
	return may(recordKinds[i].part, func(d *decoder, o *outline) {
		d.value()
		o.parts[i] = true
	})
}

var recordMembers = membersOf(
	may("transaction_type", func(d *decoder, t *Record) { t.Type = d.commonText() }),
	must("event_id", func(d *decoder, t *Record) { t.EventID = d.rareID() }),
	may("offset", func(d *decoder, t *Record) { t.Offset = d.rareText() }),
	may("date", func(d *decoder, t *Record) { t.Date = d.time() }),
	may("domain_id", func(d *decoder, t *Record) { t.DomainID = d.indexedText() }),
	may("round", func(d *decoder, t *Record) { t.Round = d.optionalInt64() }),
	may("transfer", func(d *decoder, t *Record) {
		t.Transfer = d.transfers.one()
		t.Transfer.Extra = transferMembers.read(d, t.Transfer)
	}),
	may("mint", func(d *decoder, t *Record) { t.Mint = d.ownedAmount() }),
	may("tap", func(d *decoder, t *Record) { t.Tap = d.ownedAmount() }),
	may("abort_transfer_instruction", func(d *decoder, t *Record) {
		t.Abort = d.aborted.one()
		t.Abort.Extra = abortMembers.read(d, t.Abort)
	}),
).keep()

var transferMembers = membersOf(
	must("sender", func(d *decoder, t *Transfer) { t.Sender.Extra = senderMembers.read(d, &t.Sender) }),
	may("receivers", func(d *decoder, t *Transfer) {
		d.receivers.start()
		for next := d.begin(); next && !d.refused; next = d.more() {
			receiver := d.receivers.add()
			receiver.Extra = receiverMembers.read(d, receiver)
		}
		t.Receivers = orEmpty(d.receivers.take())
	}),
	may("balance_changes", func(d *decoder, t *Transfer) {
		d.changes.start()
		for next := d.begin(); next && !d.refused; next = d.more() {
			change := d.changes.add()
			change.Extra = changeMembers.read(d, change)
		}
		t.BalanceChanges = orEmpty(d.changes.take())
	}),
	may("description", (*decoder).description),
	may("transferInstructionReceiver", func(d *decoder, t *Transfer) { t.InstructionReceiver = d.commonText() }),
	may("transferInstructionAmount", func(d *decoder, t *Transfer) { t.InstructionAmount = d.optionalAmount() }),
	may("transferInstructionCid", func(d *decoder, t *Transfer) { t.InstructionCID = d.rareText() }),
	may("transfer_kind", func(d *decoder, t *Transfer) { t.Kind = d.commonText() }),
).keep()

var senderMembers = membersOf(
	must("party", func(d *decoder, s *Sender) { s.Party = *d.indexedText() }),
	may("input_amulet_amount", func(d *decoder, s *Sender) { s.InputAmount = d.inputAmount(wordAmulet) }),
	may("input_coin_amount", func(d *decoder, s *Sender) { s.InputAmount = d.inputAmount(wordCoin) }),
	may("input_app_reward_amount", func(d *decoder, s *Sender) { s.InputAppRewardAmount = d.optionalAmount() }),
	may("input_validator_reward_amount",
		func(d *decoder, s *Sender) { s.InputValidatorRewardAmount = d.optionalAmount() }),
	may("input_sv_reward_amount", func(d *decoder, s *Sender) { s.InputSVRewardAmount = d.optionalAmount() }),
	may("input_validator_faucet_amount",
		func(d *decoder, s *Sender) { s.InputValidatorFaucetAmount = d.optionalAmount() }),
	may("sender_change_fee", func(d *decoder, s *Sender) { s.ChangeFee = d.optionalAmount() }),
	may("sender_change_amount", func(d *decoder, s *Sender) { s.ChangeAmount = d.optionalAmount() }),
	may("sender_fee", func(d *decoder, s *Sender) { s.Fee = d.optionalAmount() }),
	may("holding_fees", func(d *decoder, s *Sender) { s.HoldingFees = d.optionalAmount() }),
).keep()

var receiverMembers = membersOf(
	must("party", func(d *decoder, r *Receiver) { r.Party = *d.indexedText() }),
	must("amount", func(d *decoder, r *Receiver) { r.Amount = d.amount() }),
	may("receiver_fee", func(d *decoder, r *Receiver) { r.Fee = d.optionalAmount() }),
).keep()

var changeMembers = membersOf(
	must("party", func(d *decoder, c *BalanceChange) { c.Party = *d.indexedText() }),
	must("change_to_initial_amount_as_of_round_zero", func(d *decoder, c *BalanceChange) { c.InitialAmount = d.amount() }),
	must("change_to_holding_fees_rate", func(d *decoder, c *BalanceChange) { c.HoldingFeesRate = d.amount() }),
).keep()

var abortMembers = membersOf(
	may("abort_kind", func(d *decoder, a *AbortedInstruction) { a.Kind = d.commonText() }),
	must("transfer_instruction_cid", func(d *decoder, a *AbortedInstruction) { a.InstructionCID = d.rareID() }),
).keep()

// The names of the unit of value, which member names contain.
const (
	wordCoin   = "coin"
	wordAmulet = "amulet"
)

var errTwoWords = errors.New("calls the unit of value both coin and amulet")

// unit notes the name of the unit of value by a member's name, and refuses a record that uses two.
func (d *decoder) unit(word string) {
	if d.unitWord != "" && d.unitWord != word {
		d.refuseAt(d.here(), "", errTwoWords)
	}
	d.unitWord = word
}

func (d *decoder) inputAmount(word string) *Decimal {
	d.unit(word)
	return d.optionalAmount()
}

// ownedAmount reads a mint or a tap: owner and amount, whose names contain the same unit.
func (d *decoder) ownedAmount() *OwnedAmount {
	begun := d.here()
	owned := d.owned.one()
	d.hasOwner = false
	owned.Extra = ownedMembers.read(d, owned)
	switch word := d.unitWord; {
	case word == "":
		d.refuseAt(begun, wordCoin+"_owner", fmt.Errorf("%w, and so is %s_owner", errMissing, wordAmulet))
	case !d.hasOwner:
		d.refuseAt(begun, word+"_owner", errMissing)
	case owned.Amount == "":
		d.refuseAt(begun, word+"_amount", errMissing)
	}
	return owned
}

var ownedMembers = membersOf(
	may(wordAmulet+"_owner", func(d *decoder, o *OwnedAmount) { d.owner(o, wordAmulet) }),
	may(wordAmulet+"_amount", func(d *decoder, o *OwnedAmount) { d.ownersAmount(o, wordAmulet) }),
	may(wordCoin+"_owner", func(d *decoder, o *OwnedAmount) { d.owner(o, wordCoin) }),
	may(wordCoin+"_amount", func(d *decoder, o *OwnedAmount) { d.ownersAmount(o, wordCoin) }),
).keep()

func (d *decoder) owner(o *OwnedAmount, word string) {
	d.unit(word)
	o.Owner, d.hasOwner = *d.indexedText(), true
}

func (d *decoder) ownersAmount(o *OwnedAmount, word string) {
	d.unit(word)
	o.Amount = d.amount()
}

// description never refuses a text, because anybody on the ledger can write it. If a PostgreSQL text can't hold it,
// Description has U+FFFD in place of the offending characters, and DescriptionExact is the JSON.
func (d *decoder) description(t *Transfer) {
	if d.peek() != '"' {
		d.mistyped("a text")
		return
	}
	value := d.value()
	if d.refused {
		return
	}
	chars, err := d.unquote(value)
	if err != nil {
		chars = unquoted(value)
		t.DescriptionExact = bytes.Clone(value)
	}
	t.Description = new(strings.ReplaceAll(string(chars), "\x00", "\uFFFD"))
}
