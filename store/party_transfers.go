package store

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/store/internal/dbsqlc"
)

// partyTransfers are the rows of indexer.party_transfers that belong to transfers and their receivers, which come in the
// same order: those of the view indexer.transfer_parties, worked out where the rows are at hand. They are sorted as the
// table's index is, which fills it faster.
func partyTransfers(transfers []dbsqlc.TransfersCopyParams, receivers []dbsqlc.TransferReceiversCopyParams) []dbsqlc.PartyTransfersCopyParams {
	rows := make([]dbsqlc.PartyTransfersCopyParams, 0, len(transfers)+len(receivers))
	for i := range transfers {
		t := &transfers[i]
		sent := dbsqlc.PartyTransfersCopyParams{Party: t.Sender, Date: t.Date, Seq: t.Seq, Sent: true, Round: t.Round, Fee: t.SenderFee}
		if t.Receivers != nil {
			sent.Amount = pgtype.Numeric{Int: new(big.Int), Valid: true}
		}
		for ; len(receivers) > 0 && receivers[0].Seq == t.Seq; receivers = receivers[1:] {
			r := &receivers[0]
			sent.Amount = sumOf(sent.Amount, r.Amount)
			rows = append(rows, dbsqlc.PartyTransfersCopyParams{
				Party: r.Party, Date: t.Date, Seq: t.Seq, Round: t.Round, Amount: r.Amount, Fee: r.ReceiverFee,
			})
		}
		rows = append(rows, sent)
	}
	sorted := make([]*dbsqlc.PartyTransfersCopyParams, len(rows)) // rows are large
	for i := range rows {
		sorted[i] = &rows[i]
	}
	slices.SortFunc(sorted, byPartyAndDate)
	once := make([]dbsqlc.PartyTransfersCopyParams, 0, len(rows))
	for _, row := range sorted {
		if last := len(once) - 1; last >= 0 && byPartyAndDate(&once[last], row) == 0 { // a receiver that is listed twice
			once[last].Amount, once[last].Fee = sumOf(once[last].Amount, row.Amount), sumOf(once[last].Fee, row.Fee)
			continue
		}
		once = append(once, *row)
	}
	return once
}

// byPartyAndDate is the order of the table's index.
func byPartyAndDate(a, b *dbsqlc.PartyTransfersCopyParams) int {
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

// sumOf adds two numbers as the server does: the sum has as many digits behind the point as the longer one. It is NULL
// where one of them is.
func sumOf(a, b pgtype.Numeric) pgtype.Numeric {
	if !a.Valid || !b.Valid {
		return pgtype.Numeric{}
	}
	exp := min(a.Exp, b.Exp)
	return pgtype.Numeric{Int: new(big.Int).Add(scaled(a, exp), scaled(b, exp)), Exp: exp, Valid: true}
}

// scaled is a number in units of 10^exp, which is not above its own exponent.
func scaled(n pgtype.Numeric, exp int32) *big.Int {
	if n.Exp == exp {
		return n.Int
	}
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.Exp-exp)), nil)
	return factor.Mul(factor, n.Int)
}
