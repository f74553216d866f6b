package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// partyTotal is a party's running total in a round: a row of indexer.balance_totals.
type partyTotal = dbsqlc.IndexerBalanceTotals

// totalChanges are changes of running totals that can be told from the last total of each party alone.
type totalChanges struct {
	added, raised []partyTotal // in indexer.balance_totals: new rows, and other amounts of rows that there are
	begun, moved  []partyTotal // in indexer.latest_totals
}

// addedTotals sums up balance changes, of which those without a round count nowhere: per party and round what is added in
// it, by party and round.
func addedTotals(changes []dbsqlc.IndexerBalanceChanges) []partyTotal {
	type key struct {
		party string
		round int64
	}
	sums := make(map[key]partyTotal, len(changes))
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
		sums[at] = partyTotal{Party: c.Party, Round: *c.Round, InitialAmount: amount, HoldingFeesRate: rate}
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b partyTotal) int {
		return cmp.Or(cmp.Compare(a.Party, b.Party), cmp.Compare(a.Round, b.Round))
	})
}

// changesBehind puts what is added on top of the parties' last totals. ok is false where something is added before one:
// then later totals change, too.
func changesBehind(added []partyTotal, latest map[string]partyTotal) (changes totalChanges, ok bool) {
	for len(added) > 0 {
		total, known := latest[added[0].Party]
		if known && added[0].Round < total.Round {
			return totalChanges{}, false
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
				changes.raised = append(changes.raised, next)
			} else {
				changes.added = append(changes.added, next)
			}
			total = next
		}
		if known {
			changes.moved = append(changes.moved, total)
		} else {
			changes.begun = append(changes.begun, total)
		}
		added = added[n:]
	}
	return changes, true
}

// addBehind adds balance changes to the running totals where none of them is for a round before a party's last. ok is false
// where one is: then nothing was done.
func (l *Leader) addBehind(ctx context.Context, tx pgx.Tx, rows []dbsqlc.IndexerBalanceChanges) (ok bool, err error) {
	added := addedTotals(rows)
	if len(added) == 0 {
		return true, nil
	}
	var parties []string
	for i := range added {
		if i == 0 || added[i].Party != added[i-1].Party {
			parties = append(parties, added[i].Party)
		}
	}
	list, err := l.store.queries.LatestTotals(ctx, tx, parties)
	if err != nil {
		return false, fmt.Errorf("read the last totals of %d parties: %w", len(parties), err)
	}
	latest := make(map[string]partyTotal, len(list))
	for _, row := range list {
		latest[row.Party] = partyTotal{
			Party: row.Party, Round: row.Round,
			InitialAmount: ledger.Decimal(row.InitialAmount), HoldingFeesRate: ledger.Decimal(row.HoldingFeesRate),
		}
	}
	changes, ok := changesBehind(added, latest)
	if !ok {
		return false, nil
	}
	return true, l.changeTotals(ctx, tx, changes)
}

func (l *Leader) changeTotals(ctx context.Context, tx pgx.Tx, changes totalChanges) error {
	q := l.store.queries
	begun := make([]dbsqlc.IndexerLatestTotals, len(changes.begun))
	for i := range changes.begun {
		begun[i] = dbsqlc.IndexerLatestTotals(changes.begun[i])
	}
	if err := copyRows(ctx, tx, "balance_totals", changes.added); err != nil {
		return err
	}
	if err := copyRows(ctx, tx, "latest_totals", begun); err != nil {
		return err
	}
	if len(changes.raised) > 0 {
		if err := q.BalanceTotalsRaise(ctx, tx, totalsInColumns(changes.raised)); err != nil {
			return fmt.Errorf("raise the totals of %d parties: %w", len(changes.raised), err)
		}
	}
	if len(changes.moved) > 0 {
		if err := q.LatestTotalsMove(ctx, tx, dbsqlc.LatestTotalsMoveParams(totalsInColumns(changes.moved))); err != nil {
			return fmt.Errorf("move the last totals of %d parties: %w", len(changes.moved), err)
		}
	}
	return nil
}

func totalsInColumns(totals []partyTotal) (columns dbsqlc.BalanceTotalsRaiseParams) {
	for i := range totals {
		columns.Parties = append(columns.Parties, totals[i].Party)
		columns.Rounds = append(columns.Rounds, totals[i].Round)
		columns.InitialAmounts = append(columns.InitialAmounts, string(totals[i].InitialAmount))
		columns.HoldingFeesRates = append(columns.HoldingFeesRates, string(totals[i].HoldingFeesRate))
	}
	return columns
}
