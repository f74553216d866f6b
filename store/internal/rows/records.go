package rows

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/redacted"
)

// Records are the rows of records of the transaction history, one list per table.
type Records struct {
	Transactions   []Transaction
	transfers      []Transfer
	receivers      []TransferReceiver
	BalanceChanges []BalanceChange
	mints          []Mint
	taps           []Mint
	aborted        []AbortedTransferInstruction
	unknown        []UnknownTransaction
	exact          Exact
	ofParties      partyTransferRows // that are derived from the others
}

// recordsPool are the lists of rows of batches that were written.
var recordsPool sync.Pool

// NewRecords returns an empty set of rows, with the room of another batch's, if there is any.
func NewRecords() Records {
	if r, ok := recordsPool.Get().(*Records); ok {
		return *r
	}
	return Records{}
}

// Release keeps the room of the rows for another batch. They must have been written: after an error a COPY may read
// them still.
func (r *Records) Release() {
	recordsPool.Put(&Records{
		Transactions: emptied(r.Transactions), transfers: emptied(r.transfers), receivers: emptied(r.receivers),
		BalanceChanges: emptied(r.BalanceChanges), mints: emptied(r.mints), taps: emptied(r.taps),
		ofParties: r.ofParties.emptied(),
	})
	*r = Records{}
}

// Tables lists every table of the history, with what goes into it.
func (r *Records) Tables() []Table {
	return []Table{
		TableOf("transactions", r.Transactions),
		TableOf("transfers", r.transfers),
		TableOf("transfer_receivers", r.receivers),
		TableOf("balance_changes", r.BalanceChanges),
		TableOf("mints", r.mints),
		TableOf("taps", r.taps),
		TableOf("aborted_transfer_instructions", r.aborted),
		TableOf("unknown_transactions", r.unknown),
	}
}

// PartyTransfers returns the rows of table party_transfers that follow from these, in the order of its index.
func (r *Records) PartyTransfers() []PartyTransfer {
	return r.ofParties.of(r.transfers, r.receivers)
}

func (r *Records) grow(records []ledger.Record) {
	var transfers, receivers, changes, mints, taps int
	for i := range records {
		switch t := &records[i]; t.Kind {
		case ledger.RecordTransfer:
			transfers++
			receivers += len(t.Transfer.Receivers)
			changes += len(t.Transfer.BalanceChanges)
		case ledger.RecordMint:
			mints++
		case ledger.RecordTap:
			taps++
		}
	}
	r.Transactions = slices.Grow(r.Transactions, len(records))
	r.transfers = slices.Grow(r.transfers, transfers)
	r.receivers = slices.Grow(r.receivers, receivers)
	r.BalanceChanges = slices.Grow(r.BalanceChanges, changes)
	r.mints = slices.Grow(r.mints, mints)
	r.taps = slices.Grow(r.taps, taps)
}

// recordExact keeps what the columns of one record can't hold. Its fields are paths in the record as it was sent.
type recordExact struct {
	keeper *Exact
	within string // where it is not empty, fields are those of the part that has this path
	index  int    // of an element, where that is a list; else below 0
}

// in keeps what the columns of a part can't hold.
func (x recordExact) in(part string) recordExact { return x.of(part, -1) }

// of keeps what the columns of an element of a list can't hold.
func (x recordExact) of(list string, index int) recordExact {
	x.within, x.index = list, index
	return x
}

// path returns the path of a field, which is hardly ever needed.
func (x recordExact) path(field string) string {
	switch {
	case x.within == "":
		return field
	case x.index < 0:
		return x.within + "." + field
	default:
		return fmt.Sprintf("%s[%d].%s", x.within, x.index, field)
	}
}

func (x recordExact) value(field string, value ledger.JSON) []byte {
	if value == nil {
		return nil
	}
	return x.keeper.Value(x.path(field), value)
}

// AddAll converts records into their rows, with the seqs after a given one, and without redacted content. The
// fingerprint is computed from the record as it was served, so that the record is recognized when it is served again.
func (r *Records) AddAll(refs *names.References, erased *redacted.Set, after int64, records []ledger.Record) {
	r.grow(records)
	for i := range records {
		r.add(refs, after+1+int64(i), erased.Record(&records[i]), records[i].Fingerprint())
	}
}

func (r *Records) add(refs *names.References, seq int64, t *ledger.Record, fingerprint int64) {
	x := recordExact{keeper: &r.exact}
	r.exact.Time("date", t.Date)
	row := Transaction{
		Seq: seq, EventID: t.EventID, Kind: string(t.Kind), TransactionType: t.Type, Date: Timestamp(t.Date),
		DomainRef: refs.OptionalSynchronizer(t.DomainID), OffsetText: t.Offset, Round: t.Round, Fingerprint: fingerprint,
		Extra: x.value("extra", t.Extra),
	}
	if t.Rules != 0 {
		row.Rules, row.LedgerOffset = &t.Rules, (*int64)(&t.At)
	}
	if t.Word != "" {
		row.UnitWord = &t.Word
	}
	switch t.Kind {
	case ledger.RecordTransfer:
		r.addTransfer(x, seq, t)
	case ledger.RecordMint:
		r.mints = append(r.mints, ownedRow(x.in("mint"), seq, t, t.Mint))
	case ledger.RecordTap:
		r.taps = append(r.taps, ownedRow(x.in("tap"), seq, t, t.Tap))
	case ledger.RecordAbort:
		r.aborted = append(r.aborted, AbortedTransferInstruction{
			Seq: seq, Date: Timestamp(t.Date), InstructionCid: t.Abort.InstructionCID, AbortKind: t.Abort.Kind,
			Extra: x.value("abort_transfer_instruction.extra", t.Abort.Extra),
		})
	default:
		r.unknown = append(r.unknown, UnknownTransaction{Seq: seq, Raw: x.value("raw", t.Raw)})
	}
	row.Exact = r.exact.Column() // of all rows of the record
	r.Transactions = append(r.Transactions, row)
}

func (r *Records) addTransfer(x recordExact, seq int64, t *ledger.Record) {
	transfer, sender := t.Transfer, &t.Transfer.Sender
	if transfer.DescriptionExact != nil {
		x.keeper.keep("transfer.description", transfer.DescriptionExact)
	}
	r.transfers = append(r.transfers, Transfer{
		Seq: seq, Date: Timestamp(t.Date), Round: t.Round, Sender: sender.Party,
		SenderChangeFee:            sender.ChangeFee,
		SenderChangeAmount:         sender.ChangeAmount,
		SenderFee:                  sender.Fee,
		HoldingFees:                sender.HoldingFees,
		InputAmount:                sender.InputAmount,
		InputAppRewardAmount:       sender.InputAppRewardAmount,
		InputValidatorRewardAmount: sender.InputValidatorRewardAmount,
		InputSvRewardAmount:        sender.InputSVRewardAmount,
		InputValidatorFaucetAmount: sender.InputValidatorFaucetAmount,
		Description:                transfer.Description, TransferKind: transfer.Kind,
		InstructionReceiver: transfer.InstructionReceiver,
		InstructionAmount:   transfer.InstructionAmount,
		InstructionCid:      transfer.InstructionCID,
		Receivers:           lengthOf(transfer.Receivers), BalanceChanges: lengthOf(transfer.BalanceChanges),
		SenderExtra: x.value("transfer.sender.extra", sender.Extra), Extra: x.value("transfer.extra", transfer.Extra),
	})
	for i := range transfer.Receivers {
		receiver, x := &transfer.Receivers[i], x.of("transfer.receivers", i)
		r.receivers = append(r.receivers, TransferReceiver{
			Seq: seq, Ordinal: int32(i), Party: receiver.Party, Amount: receiver.Amount,
			ReceiverFee: receiver.Fee, Extra: x.value("extra", receiver.Extra),
		})
	}
	for i := range transfer.BalanceChanges {
		change, x := &transfer.BalanceChanges[i], x.of("transfer.balance_changes", i)
		r.BalanceChanges = append(r.BalanceChanges, BalanceChange{
			Seq: seq, Ordinal: int32(i), Date: Timestamp(t.Date), Round: t.Round, Party: change.Party,
			ChangeToInitialAmountAsOfRoundZero: change.InitialAmount,
			ChangeToHoldingFeesRate:            change.HoldingFeesRate,
			Extra:                              x.value("extra", change.Extra),
		})
	}
}

// lengthOf returns the length of a list that was sent.
func lengthOf[T any](list []T) *int32 {
	if list == nil {
		return nil
	}
	n := int32(len(list))
	return &n
}

func ownedRow(x recordExact, seq int64, t *ledger.Record, owned *ledger.OwnedAmount) Mint {
	return Mint{
		Seq: seq, Date: Timestamp(t.Date), Round: t.Round, Owner: owned.Owner,
		Amount: owned.Amount, Extra: x.value("extra", owned.Extra),
	}
}

// Rounds returns the greatest round of a record of a known kind, and the least round from which on balances are not
// known: that of a transfer without balance changes, or of a record of an unknown kind, which may be a transfer. It is
// the least number if a transfer, or a record of an unknown kind, came without its round. Both are nil if there is no
// such record.
func (r *Records) Rounds() (newest, firstIncomplete *int64) {
	incomplete := func(round *int64) {
		from := int64(math.MinInt64)
		if round != nil {
			from = *round
		}
		if firstIncomplete == nil || from < *firstIncomplete {
			firstIncomplete = &from
		}
	}
	for i := range r.Transactions {
		switch t := &r.Transactions[i]; {
		case t.Kind == string(ledger.RecordUnknown):
			incomplete(t.Round)
		case t.Round != nil && (newest == nil || *t.Round > *newest):
			newest = t.Round
		}
	}
	for i := range r.transfers {
		if t := &r.transfers[i]; t.Round == nil || t.BalanceChanges == nil || *t.BalanceChanges == 0 {
			incomplete(t.Round)
		}
	}
	return newest, firstIncomplete
}

// RecordNames collects the names that records refer to.
func RecordNames(records []ledger.Record) *names.References {
	wanted := names.NewReferences()
	for i := range records {
		if id := records[i].DomainID; id != nil {
			wanted.Synchronizer(*id)
		}
	}
	return wanted
}
