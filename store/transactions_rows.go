package store

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// transactionRows are the rows of records of the transaction history, one list per table.
type transactionRows struct {
	transactions   []dbsqlc.IndexerTransactions
	transfers      []dbsqlc.IndexerTransfers
	receivers      []dbsqlc.IndexerTransferReceivers
	balanceChanges []dbsqlc.IndexerBalanceChanges
	mints          []dbsqlc.IndexerMints
	taps           []dbsqlc.IndexerTaps
	aborted        []dbsqlc.IndexerAbortedTransferInstructions
	unknown        []dbsqlc.IndexerUnknownTransactions
	exact          exactKeeper
	ofParties      partyTransferRows // that are derived from the others
}

// transactionRooms are the lists of rows of batches that were written.
var transactionRooms sync.Pool

// newTransactionRows are no rows yet, with the room of those of another batch, if there is any.
func newTransactionRows() transactionRows {
	if r, ok := transactionRooms.Get().(*transactionRows); ok {
		return *r
	}
	return transactionRows{}
}

// release keeps the room of the rows for another batch. They must have been written: after an error a COPY may read them still.
func (r *transactionRows) release() {
	transactionRooms.Put(&transactionRows{
		transactions: emptied(r.transactions), transfers: emptied(r.transfers), receivers: emptied(r.receivers),
		balanceChanges: emptied(r.balanceChanges), mints: emptied(r.mints), taps: emptied(r.taps), ofParties: r.ofParties.emptied(),
	})
	*r = transactionRows{}
}

// tables lists every table of the history, with what goes into it.
func (r *transactionRows) tables() []tableRows {
	return []tableRows{
		tableOf("transactions", r.transactions),
		tableOf("transfers", r.transfers),
		tableOf("transfer_receivers", r.receivers),
		tableOf("balance_changes", r.balanceChanges),
		tableOf("mints", r.mints),
		tableOf("taps", r.taps),
		tableOf("aborted_transfer_instructions", r.aborted),
		tableOf("unknown_transactions", r.unknown),
		tableOf("record_exact_payloads", r.exactValues()),
	}
}

func (r *transactionRows) exactValues() []dbsqlc.IndexerRecordExactPayloads {
	values := make([]dbsqlc.IndexerRecordExactPayloads, len(r.exact.rows))
	for i := range r.exact.rows {
		x := &r.exact.rows[i]
		values[i] = dbsqlc.IndexerRecordExactPayloads{Seq: *x.Seq, Field: x.Field, Exact: x.Exact}
	}
	return values
}

// grow makes room for the rows of records.
func (r *transactionRows) grow(records []ledger.Transaction) {
	var transfers, receivers, changes, mints, taps int
	for i := range records {
		switch t := &records[i]; t.Kind {
		case ledger.TransactionTransfer:
			transfers++
			receivers += len(t.Transfer.Receivers)
			changes += len(t.Transfer.BalanceChanges)
		case ledger.TransactionMint:
			mints++
		case ledger.TransactionTap:
			taps++
		}
	}
	r.transactions = slices.Grow(r.transactions, len(records))
	r.transfers = slices.Grow(r.transfers, transfers)
	r.receivers = slices.Grow(r.receivers, receivers)
	r.balanceChanges = slices.Grow(r.balanceChanges, changes)
	r.mints = slices.Grow(r.mints, mints)
	r.taps = slices.Grow(r.taps, taps)
}

// recordExact keeps what the columns of one record can't hold. Its fields are paths in the record as it was sent, in which an
// asterisk stands for the word for the unit.
type recordExact struct {
	keeper *exactKeeper
	at     place
	word   string
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

// path is that of a field, which is hardly ever needed.
func (x recordExact) path(field string) string {
	field = strings.Replace(field, "*", x.word, 1)
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
	return x.keeper.value(x.at, x.path(field), value)
}

// number keeps the text of a decimal where numeric would print another.
func (x recordExact) number(field string, d ledger.Decimal) ledger.Decimal {
	if !d.Canonical() {
		x.keeper.keep(x.at, x.path(field), []byte(`"`+d+`"`))
	}
	return d
}

func (x recordExact) optionalNumber(field string, d *ledger.Decimal) *ledger.Decimal {
	if d != nil {
		x.number(field, *d)
	}
	return d
}

// add converts a record into its rows.
func (r *transactionRows) add(refs refs, mark *ledger.HistoryMark, t *ledger.Transaction) {
	x := recordExact{keeper: &r.exact, at: place{ordinal: &mark.Seq}, word: t.Word}
	r.exact.time(x.at, "date", t.Date)
	row := dbsqlc.IndexerTransactions{
		Seq: mark.Seq, EventID: t.EventID, Kind: string(t.Kind), TransactionType: t.Type, Date: timestamp(t.Date),
		DomainRef: refs.optionalSynchronizer(t.DomainID), OffsetText: t.Offset, Round: t.Round, Fingerprint: mark.Fingerprint,
		Extra: x.value("extra", t.Extra),
	}
	if t.Word != "" {
		row.UnitWord = &t.Word
	}
	r.transactions = append(r.transactions, row)
	switch t.Kind {
	case ledger.TransactionTransfer:
		r.addTransfer(x, mark.Seq, t)
	case ledger.TransactionMint:
		r.mints = append(r.mints, ownedRow(x.in("mint"), mark.Seq, t, t.Mint))
	case ledger.TransactionTap:
		r.taps = append(r.taps, dbsqlc.IndexerTaps(ownedRow(x.in("tap"), mark.Seq, t, t.Tap)))
	case ledger.TransactionAbort:
		r.aborted = append(r.aborted, dbsqlc.IndexerAbortedTransferInstructions{
			Seq: mark.Seq, Date: timestamp(t.Date), InstructionCid: t.Abort.InstructionCID, AbortKind: t.Abort.Kind,
			Extra: x.value("abort_transfer_instruction.extra", t.Abort.Extra),
		})
	default:
		r.unknown = append(r.unknown, dbsqlc.IndexerUnknownTransactions{Seq: mark.Seq, Raw: x.value("raw", t.Raw)})
	}
}

func (r *transactionRows) addTransfer(x recordExact, seq int64, t *ledger.Transaction) {
	transfer, sender := t.Transfer, &t.Transfer.Sender
	if transfer.DescriptionExact != nil {
		x.keeper.keep(x.at, "transfer.description", transfer.DescriptionExact)
	}
	r.transfers = append(r.transfers, dbsqlc.IndexerTransfers{
		Seq: seq, Date: timestamp(t.Date), Round: t.Round, Sender: sender.Party,
		SenderChangeFee:            x.optionalNumber("transfer.sender.sender_change_fee", sender.ChangeFee),
		SenderChangeAmount:         x.optionalNumber("transfer.sender.sender_change_amount", sender.ChangeAmount),
		SenderFee:                  x.optionalNumber("transfer.sender.sender_fee", sender.Fee),
		HoldingFees:                x.optionalNumber("transfer.sender.holding_fees", sender.HoldingFees),
		InputAmount:                x.optionalNumber("transfer.sender.input_*_amount", sender.InputAmount),
		InputAppRewardAmount:       x.optionalNumber("transfer.sender.input_app_reward_amount", sender.InputAppRewardAmount),
		InputValidatorRewardAmount: x.optionalNumber("transfer.sender.input_validator_reward_amount", sender.InputValidatorRewardAmount),
		InputSvRewardAmount:        x.optionalNumber("transfer.sender.input_sv_reward_amount", sender.InputSVRewardAmount),
		InputValidatorFaucetAmount: x.optionalNumber("transfer.sender.input_validator_faucet_amount", sender.InputValidatorFaucetAmount),
		Description:                transfer.Description, TransferKind: transfer.Kind, InstructionReceiver: transfer.InstructionReceiver,
		InstructionAmount: x.optionalNumber("transfer.transferInstructionAmount", transfer.InstructionAmount),
		InstructionCid:    transfer.InstructionCID,
		Receivers:         lengthOf(transfer.Receivers), BalanceChanges: lengthOf(transfer.BalanceChanges),
		SenderExtra: x.value("transfer.sender.extra", sender.Extra), Extra: x.value("transfer.extra", transfer.Extra),
	})
	for i := range transfer.Receivers {
		receiver, x := &transfer.Receivers[i], x.of("transfer.receivers", i)
		r.receivers = append(r.receivers, dbsqlc.IndexerTransferReceivers{
			Seq: seq, Ordinal: int32(i), Party: receiver.Party, Amount: x.number("amount", receiver.Amount),
			ReceiverFee: x.optionalNumber("receiver_fee", receiver.Fee), Extra: x.value("extra", receiver.Extra),
		})
	}
	for i := range transfer.BalanceChanges {
		change, x := &transfer.BalanceChanges[i], x.of("transfer.balance_changes", i)
		r.balanceChanges = append(r.balanceChanges, dbsqlc.IndexerBalanceChanges{
			Seq: seq, Ordinal: int32(i), Date: timestamp(t.Date), Round: t.Round, Party: change.Party,
			ChangeToInitialAmountAsOfRoundZero: x.number("change_to_initial_amount_as_of_round_zero", change.InitialAmount),
			ChangeToHoldingFeesRate:            x.number("change_to_holding_fees_rate", change.HoldingFeesRate),
			Extra:                              x.value("extra", change.Extra),
		})
	}
}

// lengthOf is the length of a list that was sent.
func lengthOf[T any](list []T) *int32 {
	if list == nil {
		return nil
	}
	n := int32(len(list))
	return &n
}

func ownedRow(x recordExact, seq int64, t *ledger.Transaction, owned *ledger.OwnedAmount) dbsqlc.IndexerMints {
	return dbsqlc.IndexerMints{
		Seq: seq, Date: timestamp(t.Date), Round: t.Round, Owner: owned.Owner,
		Amount: x.number("*_amount", owned.Amount), Extra: x.value("extra", owned.Extra),
	}
}
