package rows

import (
	"cmp"
	"slices"
	"strings"

	"ledgerindexer/ledger"
)

// partyTransferRows are rows of table party_transfers on their way into the order of its index.
type partyTransferRows struct {
	rows   []PartyTransfer
	sorted []*PartyTransfer // rows are large
	once   []PartyTransfer
}

// of returns the rows that belong to transfers and their receivers, which come in the same order: those of the view
// transfer_parties, computed where the rows are at hand. They are sorted as the table's index is, which fills it
// faster.
func (p *partyTransferRows) of(transfers []Transfer, receivers []TransferReceiver) []PartyTransfer {
	rows := slices.Grow(p.rows, len(transfers)+len(receivers))
	for i := range transfers {
		t := &transfers[i]
		sent := PartyTransfer{Party: t.Sender, Date: t.Date, Seq: t.Seq, Sent: true, Round: t.Round, Fee: t.SenderFee}
		if t.Receivers != nil {
			sent.Amount = &noAmount
		}
		for ; len(receivers) > 0 && receivers[0].Seq == t.Seq; receivers = receivers[1:] {
			r := &receivers[0]
			sent.Amount = sumOf(sent.Amount, &r.Amount)
			rows = append(rows, PartyTransfer{
				Party: r.Party, Date: t.Date, Seq: t.Seq, Round: t.Round, Amount: &r.Amount, Fee: r.ReceiverFee,
			})
		}
		rows = append(rows, sent)
	}
	sorted, once := slices.Grow(p.sorted, len(rows)), slices.Grow(p.once, len(rows))
	for i := range rows {
		sorted = append(sorted, &rows[i])
	}
	slices.SortFunc(sorted, byPartyAndDate)
	for _, row := range sorted {
		if last := len(once) - 1; last >= 0 && byPartyAndDate(&once[last], row) == 0 { // a receiver that is listed twice
			once[last].Amount, once[last].Fee = sumOf(once[last].Amount, row.Amount), sumOf(once[last].Fee, row.Fee)
			continue
		}
		once = append(once, *row)
	}
	p.rows, p.sorted, p.once = rows, sorted, once
	return once
}

func (p *partyTransferRows) emptied() partyTransferRows {
	return partyTransferRows{emptied(p.rows), emptied(p.sorted), emptied(p.once)}
}

// byPartyAndDate compares rows in the order of the table's index.
func byPartyAndDate(a, b *PartyTransfer) int {
	if order := strings.Compare(a.Party, b.Party); order != 0 {
		return order
	}
	if order := a.Date.Time.Compare(b.Date.Time); order != 0 {
		return order
	}
	order := cmp.Compare(a.Seq, b.Seq)
	switch {
	case order != 0 || a.Sent == b.Sent:
		return order
	case b.Sent:
		return -1
	default:
		return 1
	}
}

// noAmount is what a sum begins with.
var noAmount ledger.Decimal = "0"

// sumOf adds two numbers as the server does: it is NULL where one of them is.
func sumOf(a, b *ledger.Decimal) *ledger.Decimal {
	switch {
	case a == nil || b == nil:
		return nil
	case a == &noAmount:
		return b
	}
	sum := a.Plus(*b)
	return &sum
}
