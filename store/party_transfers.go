package store

import (
	"cmp"
	"math/big"
	"slices"

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
		n := 0
		for n < len(receivers) && receivers[n].Seq == t.Seq {
			n++
		}
		sent := dbsqlc.PartyTransfersCopyParams{Party: t.Sender, Date: t.Date, Seq: t.Seq, Sent: true, Round: t.Round, Fee: t.SenderFee}
		if t.Receivers != nil {
			sent.Amount = pgtype.Numeric{Int: new(big.Int), Valid: true}
		}
		first := len(rows)
		rows = append(rows, sent)
		for j := range receivers[:n] {
			r := &receivers[j]
			rows[first].Amount = sumOf(rows[first].Amount, r.Amount)
			received := rows[first+1:]
			k := slices.IndexFunc(received, func(row dbsqlc.PartyTransfersCopyParams) bool { return row.Party == r.Party })
			if k >= 0 { // it is listed twice
				received[k].Amount, received[k].Fee = sumOf(received[k].Amount, r.Amount), sumOf(received[k].Fee, r.ReceiverFee)
				continue
			}
			rows = append(rows, dbsqlc.PartyTransfersCopyParams{
				Party: r.Party, Date: t.Date, Seq: t.Seq, Round: t.Round, Amount: r.Amount, Fee: r.ReceiverFee,
			})
		}
		receivers = receivers[n:]
	}
	slices.SortFunc(rows, func(a, b dbsqlc.PartyTransfersCopyParams) int {
		return cmp.Or(cmp.Compare(a.Party, b.Party), a.Date.Time.Compare(b.Date.Time), cmp.Compare(a.Seq, b.Seq))
	})
	return rows
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
