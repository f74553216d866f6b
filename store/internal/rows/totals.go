package rows

import (
	"cmp"
	"maps"
	"slices"

	"ledgerindexer/store/internal/dbsqlc"
)

// Total is a party's running total in a round: a row of indexer.balance_totals.
type Total = dbsqlc.IndexerBalanceTotals

// TotalChanges are changes of running totals that can be told from the last total of each party alone.
type TotalChanges struct {
	Added, Raised []Total // in indexer.balance_totals: new rows, and other amounts of rows that there are
	Begun, Moved  []Total // in indexer.latest_totals
}

// AddedTotals sums up balance changes, of which those without a round count nowhere: per party and round what is added in
// it, by party and round.
func AddedTotals(changes []dbsqlc.IndexerBalanceChanges) []Total {
	type key struct {
		party string
		round int64
	}
	sums := make(map[key]Total, len(changes))
	for i := range changes {
		c := &changes[i]
		if c.Round == nil {
			continue
		}
		amount, rate := c.ChangeToInitialAmountAsOfRoundZero, c.ChangeToHoldingFeesRate
		at := key{c.Party, *c.Round}
		if sum, known := sums[at]; known {
			amount, rate = sum.InitialAmount.Plus(amount), sum.HoldingFeesRate.Plus(rate)
		}
		sums[at] = Total{Party: c.Party, Round: *c.Round, InitialAmount: amount, HoldingFeesRate: rate}
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Party, b.Party), cmp.Compare(a.Round, b.Round))
	})
}

// ChangesBehind puts what is added on top of the parties' last totals. ok is false where something is added before one:
// then later totals change, too.
func ChangesBehind(added []Total, latest map[string]Total) (changes TotalChanges, ok bool) {
	for len(added) > 0 {
		total, known := latest[added[0].Party]
		if known && added[0].Round < total.Round {
			return TotalChanges{}, false
		}
		n := 0
		for ; n < len(added) && added[n].Party == added[0].Party; n++ {
			next := added[n]
			inRound := known && next.Round == total.Round
			if known || n > 0 {
				next.InitialAmount = total.InitialAmount.Plus(next.InitialAmount)
				next.HoldingFeesRate = total.HoldingFeesRate.Plus(next.HoldingFeesRate)
			}
			if inRound && n == 0 {
				changes.Raised = append(changes.Raised, next)
			} else {
				changes.Added = append(changes.Added, next)
			}
			total = next
		}
		if known {
			changes.Moved = append(changes.Moved, total)
		} else {
			changes.Begun = append(changes.Begun, total)
		}
		added = added[n:]
	}
	return changes, true
}

// TotalsInColumns are totals as statements take them: a list for each column.
func TotalsInColumns(totals []Total) (columns dbsqlc.BalanceTotalsRaiseParams) {
	for i := range totals {
		columns.Parties = append(columns.Parties, totals[i].Party)
		columns.Rounds = append(columns.Rounds, totals[i].Round)
		columns.InitialAmounts = append(columns.InitialAmounts, string(totals[i].InitialAmount))
		columns.HoldingFeesRates = append(columns.HoldingFeesRates, string(totals[i].HoldingFeesRate))
	}
	return columns
}
