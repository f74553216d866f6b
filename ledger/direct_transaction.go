package ledger

import "slices"

// readHistory is what the direct reading of records keeps.
type readHistory struct {
	transfers arena[Transfer]
	receivers arena[Receiver]
	changes   arena[BalanceChange]
	owned     arena[OwnedAmount]
	aborted   arena[AbortedInstruction]
	amounts   arena[Decimal]
	word      string // for the unit of value, in the record that is being read; empty: none was met
}

// transactions reads an answer of the transaction history.
func (d *direct) transactions() (records []Transaction) {
	answerMembers.read(d, &records)
	return records
}

var answerMembers = membersOf(
	must("transactions", func(d *direct, records *[]Transaction) { *records = d.records() }),
)

func (d *direct) records() []Transaction {
	list, begun := take(&d.reader.records), d.at
	for next := d.begin(); next && !d.refused; next = d.more() {
		if len(list) == mostElements {
			d.refuse()
		}
		if len(list) == cap(list) {
			list = slices.Grow(list, d.expected(len(list), begun))
		}
		list = list[:len(list)+1]
		d.record(&list[len(list)-1])
	}
	if d.refused {
		return nil
	}
	if list = exact(&d.reader.records, list); len(list) == 0 {
		return nil
	}
	return list
}

// record reads a record. One of a kind that is not known is refused.
func (d *direct) record(t *Transaction) {
	d.history.word = ""
	t.Extra = recordMembers.read(d, t)
	t.Kind, t.Word = kindOf(t), d.history.word
	if t.Kind == TransactionUnknown {
		d.refuse()
	}
}

// kindOf is the kind of a record that holds one part, if it has no type or that of the part.
func kindOf(t *Transaction) TransactionKind {
	kind, typ, parts := TransactionUnknown, "", 0
	if t.Transfer != nil {
		kind, typ, parts = TransactionTransfer, "transfer", parts+1
	}
	if t.Mint != nil {
		kind, typ, parts = TransactionMint, "mint", parts+1
	}
	if t.Tap != nil {
		kind, typ, parts = TransactionTap, "devnet_tap", parts+1
	}
	if t.Abort != nil {
		kind, typ, parts = TransactionAbort, "abort_transfer_instruction", parts+1
	}
	if parts != 1 || t.Type != nil && *t.Type != typ {
		return TransactionUnknown
	}
	return kind
}

var recordMembers = membersOf(
	may("transaction_type", func(d *direct, t *Transaction) { t.Type = d.shared() }),
	must("event_id", func(d *direct, t *Transaction) { t.EventID = d.unique() }),
	may("offset", func(d *direct, t *Transaction) { t.Offset = d.single() }),
	must("date", func(d *direct, t *Transaction) { t.Date = d.time() }),
	may("domain_id", func(d *direct, t *Transaction) { t.DomainID = d.indexed() }),
	may("round", func(d *direct, t *Transaction) { t.Round = d.optionalInt64() }),
	may("transfer", func(d *direct, t *Transaction) {
		t.Transfer = d.history.transfers.one()
		t.Transfer.Extra = transferMembers.read(d, t.Transfer)
	}),
	may("mint", func(d *direct, t *Transaction) { t.Mint = d.ownedAmount() }),
	may("tap", func(d *direct, t *Transaction) { t.Tap = d.ownedAmount() }),
	may("abort_transfer_instruction", func(d *direct, t *Transaction) {
		t.Abort = d.history.aborted.one()
		t.Abort.Extra = abortMembers.read(d, t.Abort)
	}),
)

var transferMembers = membersOf(
	must("sender", func(d *direct, t *Transfer) { t.Sender.Extra = senderMembers.read(d, &t.Sender) }),
	may("receivers", func(d *direct, t *Transfer) {
		for next := d.begin(); next; next = d.more() {
			receiver := d.history.receivers.add()
			receiver.Extra = receiverMembers.read(d, receiver)
		}
		t.Receivers = orEmpty(d.history.receivers.take())
	}),
	may("balance_changes", func(d *direct, t *Transfer) {
		for next := d.begin(); next; next = d.more() {
			change := d.history.changes.add()
			change.Extra = changeMembers.read(d, change)
		}
		t.BalanceChanges = orEmpty(d.history.changes.take())
	}),
	may("description", (*direct).description),
	may("transferInstructionReceiver", func(d *direct, t *Transfer) { t.InstructionReceiver = d.shared() }),
	may("transferInstructionAmount", func(d *direct, t *Transfer) { t.InstructionAmount = d.optionalAmount() }),
	may("transferInstructionCid", func(d *direct, t *Transfer) { t.InstructionCID = d.single() }),
	may("transfer_kind", func(d *direct, t *Transfer) { t.Kind = d.shared() }),
)

// orEmpty is a list that was sent.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

var senderMembers = membersOf(
	must("party", func(d *direct, s *Sender) { s.Party = *d.indexed() }),
	may("input_amulet_amount", func(d *direct, s *Sender) { s.InputAmount = d.inputAmount(wordAmulet) }),
	may("input_coin_amount", func(d *direct, s *Sender) { s.InputAmount = d.inputAmount(wordCoin) }),
	may("input_app_reward_amount", func(d *direct, s *Sender) { s.InputAppRewardAmount = d.optionalAmount() }),
	may("input_validator_reward_amount", func(d *direct, s *Sender) { s.InputValidatorRewardAmount = d.optionalAmount() }),
	may("input_sv_reward_amount", func(d *direct, s *Sender) { s.InputSVRewardAmount = d.optionalAmount() }),
	may("input_validator_faucet_amount", func(d *direct, s *Sender) { s.InputValidatorFaucetAmount = d.optionalAmount() }),
	may("sender_change_fee", func(d *direct, s *Sender) { s.ChangeFee = d.optionalAmount() }),
	may("sender_change_amount", func(d *direct, s *Sender) { s.ChangeAmount = d.optionalAmount() }),
	may("sender_fee", func(d *direct, s *Sender) { s.Fee = d.optionalAmount() }),
	may("holding_fees", func(d *direct, s *Sender) { s.HoldingFees = d.optionalAmount() }),
)

var receiverMembers = membersOf(
	must("party", func(d *direct, r *Receiver) { r.Party = *d.indexed() }),
	must("amount", func(d *direct, r *Receiver) { r.Amount = d.amount() }),
	may("receiver_fee", func(d *direct, r *Receiver) { r.Fee = d.optionalAmount() }),
)

var changeMembers = membersOf(
	must("party", func(d *direct, c *BalanceChange) { c.Party = *d.indexed() }),
	must("change_to_initial_amount_as_of_round_zero", func(d *direct, c *BalanceChange) { c.InitialAmount = d.amount() }),
	must("change_to_holding_fees_rate", func(d *direct, c *BalanceChange) { c.HoldingFeesRate = d.amount() }),
)

// ownedAmount reads a mint or a tap, whose two members have the same word in their names.
func (d *direct) ownedAmount() *OwnedAmount {
	owned := d.history.owned.one()
	members := amuletMembers
	if d.peek(); d.has(`{"coin_`) {
		members = coinMembers
	}
	owned.Extra = members.read(d, owned)
	return owned
}

var (
	amuletMembers = ownedMembers(wordAmulet, wordCoin)
	coinMembers   = ownedMembers(wordCoin, wordAmulet)
)

// ownedMembers are those in whose names one word stands; the other one is refused.
func ownedMembers(word, other string) *known[OwnedAmount] {
	refuse := func(d *direct, _ *OwnedAmount) { d.refuse() }
	return membersOf(
		must(word+"_owner", func(d *direct, o *OwnedAmount) { d.history.word, o.Owner = word, *d.indexed() }),
		must(word+"_amount", func(d *direct, o *OwnedAmount) { o.Amount = d.amount() }),
		may(other+"_owner", refuse), may(other+"_amount", refuse),
	)
}

var abortMembers = membersOf(
	may("abort_kind", func(d *direct, a *AbortedInstruction) { a.Kind = d.shared() }),
	must("transfer_instruction_cid", func(d *direct, a *AbortedInstruction) { a.InstructionCID = d.unique() }),
)

// indexed reads a text that the database has an index of.
func (d *direct) indexed() *string {
	text := d.shared()
	if len(*text) > maxIndexed {
		d.refuse()
	}
	return text
}

// inputAmount reads what the sender put in, under a name with a word for the unit.
func (d *direct) inputAmount(word string) *Decimal {
	if d.history.word != "" {
		d.refuse()
	}
	d.history.word = word
	return d.optionalAmount()
}

func (d *direct) amount() Decimal {
	text := d.chars()
	if string(text) == commonDecimal {
		return commonDecimal
	}
	if checkDecimal(text) != nil {
		d.refuse()
	}
	return Decimal(d.own(text))
}

func (d *direct) optionalAmount() *Decimal {
	to := d.history.amounts.one()
	*to = d.amount()
	return to
}

// description reads a text that anybody can write.
func (d *direct) description(t *Transfer) {
	d.peek()
	at := d.at
	d.value()
	if d.refused {
		return
	}
	o := object{reader: d.reader}
	t.Description, t.DescriptionExact = o.freeText("", span{at, d.at})
	if o.err != nil {
		d.refuse()
	}
}
