package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/storetest"
)

func tapAt(round *int64) ledger.Record {
	record := storetest.Tap("#1220bb:0")
	record.Round = round
	return record
}

func (h *testHistory) appendRecords(records ...ledger.Record) {
	h.T.Helper()
	at, err := h.l.AppendTransactions(h.T.Context(), h.at, nil, records)
	h.moved(at, err)
}

// clear makes the history one that has not begun.
func (h *testHistory) clear() {
	h.T.Helper()
	h.Exec(`TRUNCATE indexer.transactions, indexer.transfers, indexer.transfer_receivers, indexer.balance_changes, indexer.taps,
		indexer.unknown_transactions, indexer.party_transfers, indexer.balance_totals, indexer.latest_totals`)
	h.Exec("UPDATE indexer.balance_rounds SET newest = NULL, first_incomplete = NULL")
	h.Exec("UPDATE indexer.transactions_position SET revision = 0, last_seq = 0")
	h.at = ledger.TransactionsPosition{}
}

// The balance of a party at a round, from its changes added up one by one, in units of 10^-10.
type reported struct {
	records []ledger.Record
}

func (m reported) told(round int64) bool {
	seen := false
	for _, record := range m.records {
		unknown, transfer := record.Kind == ledger.RecordUnknown, record.Transfer != nil
		seen = seen || !unknown && record.Round != nil && *record.Round >= round
		known := transfer && record.Round != nil && len(record.Transfer.BalanceChanges) > 0
		if (transfer || unknown) && !known && (record.Round == nil || *record.Round <= round) {
			return false
		}
	}
	return seen
}

// balances has the parties that changes in rounds up to this one name.
func (m reported) balances(t require.TestingT, round int64) map[string]string {
	sums := map[string]*big.Rat{}
	for _, record := range m.records {
		if record.Transfer == nil || record.Round == nil || *record.Round > round {
			continue
		}
		for _, c := range record.Transfer.BalanceChanges {
			if sums[c.Party] == nil {
				sums[c.Party] = new(big.Rat)
			}
			amount, ok := new(big.Rat).SetString(string(c.InitialAmount))
			require.True(t, ok)
			rate, ok := new(big.Rat).SetString(string(c.HoldingFeesRate))
			require.True(t, ok)
			rounds := new(big.Int).Add(big.NewInt(round), big.NewInt(1))
			sums[c.Party].Add(sums[c.Party], amount).Sub(sums[c.Party], rate.Mul(rate, new(big.Rat).SetInt(rounds)))
		}
	}
	balances := map[string]string{}
	for party, sum := range sums {
		balances[party] = "NULL"
		if sum.Sign() >= 0 {
			balances[party] = sum.FloatString(10)
		}
	}
	return balances
}

// parties are those that a change names whose round is known, whichever it is.
func (m reported) parties(t require.TestingT) []string {
	return slices.Sorted(maps.Keys(m.balances(t, math.MaxInt64)))
}

var drawnRounds = []int64{math.MinInt64, -1, 0, 1, 2, 3, 4, 5, 6, math.MaxInt64}

func drawRecords(t *rapid.T) []ledger.Record {
	complete := rapid.IntRange(0, 3).Draw(t, "complete") > 0
	drawRound := func() *int64 {
		if rapid.IntRange(0, 4).Draw(t, "extreme") == 0 {
			return new(rapid.SampledFrom(drawnRounds).Draw(t, "round"))
		}
		return new(rapid.Int64Range(0, 6).Draw(t, "round"))
	}
	few := rapid.Bool().Draw(t, "few amounts") // so that totals become zero
	decimal := func(label string) ledger.Decimal {
		if few {
			n := rapid.Int64Range(-1, 1).Draw(t, label)
			return ledger.Decimal(big.NewRat(n, 1).FloatString(rapid.IntRange(0, 5).Draw(t, "scale of "+label)))
		}
		n := rapid.Int64Range(-2e10, 5e10).Draw(t, label)
		return ledger.Decimal(big.NewRat(n, 1e10).FloatString(10))
	}
	records := make([]ledger.Record, rapid.IntRange(1, 30).Draw(t, "records"))
	for i := range records {
		round := drawRound()
		switch incomplete := !complete && rapid.IntRange(0, 9).Draw(t, "incomplete") == 0; {
		case rapid.IntRange(0, 9).Draw(t, "tap") == 0:
			records[i] = tapAt(round)
			continue
		case incomplete:
			records[i] = storetest.Transfer(round)
			switch rapid.IntRange(0, 4).Draw(t, "how") {
			case 0:
				records[i] = unknownAt(round)
			case 1:
				records[i] = unknownAt(nil)
			case 2:
				records[i].Transfer.BalanceChanges = nil
			case 3:
				records[i] = storetest.Transfer(nil, storetest.Change("alice", "1", "1"))
			}
			continue
		}
		var changes []ledger.BalanceChange
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			changes = append(changes, storetest.Change(rapid.SampledFrom([]string{"alice", "bob", "carol"}).Draw(t, "party"), decimal("amount"), decimal("rate")))
		}
		records[i] = storetest.Transfer(round, changes...)
		for range rapid.IntRange(0, 4).Draw(t, "receivers") {
			r := ledger.Receiver{Party: rapid.SampledFrom([]string{"alice", "bob", "carol"}).Draw(t, "receiver"), Amount: decimal("received")}
			if rapid.IntRange(0, 2).Draw(t, "fee") > 0 {
				r.Fee = new(decimal("receiver's fee"))
			}
			records[i].Transfer.Receivers = append(records[i].Transfer.Receivers, r)
		}
	}
	return records
}

// Running totals are exact whatever the order of rounds, and however the records are cut into batches.
func TestReportedBalancesAreTheSum(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	rapid.Check(t, func(rt *rapid.T) {
		h.clear()
		m := reported{records: drawRecords(rt)}
		var borders []int64
		for at := 0; at < len(m.records); {
			at += rapid.IntRange(1, len(m.records)-at).Draw(rt, "batch")
			borders = append(borders, int64(at))
		}
		from := int64(0)
		for _, to := range borders {
			h.appendRecords(m.records[from:to]...)
			from = to
		}

		at, all := []string{}, []string{}
		for _, round := range append([]int64{-2, 7}, drawnRounds...) {
			told, balances := m.told(round), m.balances(rt, round)
			for _, party := range []string{"alice", "bob", "carol", "nobody"} {
				balance := "NULL"
				if known, ok := balances[party]; ok && told {
					balance = known
				}
				at = append(at, fmt.Sprint(round, " ", party, " ", balance))
			}
			if told {
				for party, balance := range balances {
					all = append(all, fmt.Sprint(round, " ", party, " ", balance))
				}
				continue
			}
			parties := m.parties(rt)
			if len(parties) == 0 {
				parties = []string{"NULL"}
			}
			for _, party := range parties {
				all = append(all, fmt.Sprint(round, " ", party, " NULL"))
			}
		}
		rounds := append([]int64{-2, 7}, drawnRounds...)
		require.Equal(rt, storetest.Sorted(at), storetest.Sorted(h.Rows(`SELECT r, p, coalesce(round(ledger.reported_balance_at(p, r), 10)::text, 'NULL')
			FROM unnest($1::bigint[]) r, unnest('{alice,bob,carol,nobody}'::text[]) p`, rounds)))
		require.Equal(rt, storetest.Sorted(all), storetest.Sorted(h.Rows(`SELECT r, coalesce(b.party, 'NULL'), coalesce(round(b.balance, 10)::text, 'NULL')
			FROM unnest($1::bigint[]) r, ledger.reported_balances_at(r) b`, rounds)))
		require.Equal(rt, "0", h.Row(`SELECT count(*) FROM (SELECT DISTINCT party, round FROM ledger.balance_changes WHERE round IS NOT NULL) c
			FULL JOIN indexer.balance_totals t ON t.party = c.party AND t.round = c.round WHERE c.party IS NULL OR t.party IS NULL`), "one row per party and round that has changes")
		require.Equal(rt, h.Rows("SELECT DISTINCT ON (party) t::text FROM indexer.balance_totals t ORDER BY party, round DESC"),
			h.Rows("SELECT t::text FROM indexer.latest_totals t ORDER BY party"))
		require.Equal(rt, h.Row("SELECT max(round) FROM ledger.transactions WHERE kind <> 'unknown'"), h.Row("SELECT newest FROM indexer.balance_rounds"))
		h.nothingDiffersInBalances(rt)
	})
	h.clear()
	h.appendRecords(storetest.Transfer(new(int64(5)), storetest.Change("alice", "7", "0")))
	const balance = "SELECT ledger.reported_balance_at('alice', 5)::text"
	require.Equal(t, "7", h.Row(balance))
	h.moved(h.l.ClearTransactions(t.Context(), h.at))
	require.Equal(t, "<nil>", h.Row(balance), "nothing is known until the history is read again")
	require.Equal(t, "true true true", h.Row(`SELECT ledger.reported_balance_at(NULL, 5) IS NULL,
		ledger.reported_balance_at('alice', NULL) IS NULL, (SELECT bool_and(balance IS NULL) FROM ledger.reported_balances_at(NULL))`))
}

// nothingDiffersInBalances compares what follows from the records with them, to the last digit.
func (h *testHistory) nothingDiffersInBalances(t require.TestingT) {
	list, err := Audit.Stored(h.l.store).CompareBalances(h.T.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// unknownAt is a record of an unknown kind, which may be a transfer.
func unknownAt(round *int64) ledger.Record {
	return ledger.Record{EventID: "#9:9", Kind: ledger.RecordUnknown, Round: round, Raw: ledger.JSON(`{"event_id":"#9:9","burn":{}}`)}
}

// An analyst needs no rights beneath, and a function means the same whatever the caller's search_path has.
func TestReportedBalanceForAnAnalyst(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	h.appendRecords(storetest.Transfer(new(int64(5)), storetest.Change("alice", "7", "0.5")))
	h.Exec("CREATE SCHEMA trap")
	h.Exec("CREATE FUNCTION trap.minus(numeric, numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 666'")
	h.Exec("CREATE OPERATOR trap.- (FUNCTION = trap.minus, LEFTARG = numeric, RIGHTARG = numeric)")
	h.Exec("GRANT USAGE ON SCHEMA trap TO public")
	h.becomeAnalyst()
	h.Exec("SET search_path = trap, pg_catalog")
	require.Equal(t, "666", h.Row("SELECT (1.0 - 1.0)::text"), "the trap is set")
	require.Equal(t, "4.0", h.Row("SELECT ledger.reported_balance_at('alice', 5)::text"))
	require.Equal(t, "alice 4.0", h.Row("SELECT party, balance::text FROM ledger.reported_balances_at(5)"))
	_, err := h.Conn.Exec(t.Context(), "SELECT indexer.balances_are_known(5)")
	require.ErrorContains(t, err, "permission denied")
}

// A range without transfers and rounds leaves everything as it is.
func TestDeriveFromNothing(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	h.appendRecords(storetest.Transfer(new(int64(5)), storetest.Change("alice", "7", "0")))
	state := func() string {
		return h.Row(`SELECT string_agg(x, ' ') FROM (SELECT t.xmin::text || t FROM indexer.balance_totals t UNION ALL SELECT t.xmin::text || t FROM indexer.balance_rounds t
			UNION ALL SELECT t.xmin::text || t FROM indexer.party_transfers t UNION ALL SELECT t.xmin::text || t FROM indexer.latest_totals t ORDER BY 1) AS _(x)`)
	}
	before := state()
	h.appendRecords(tapAt(nil), tapAt(new(int64(5))), tapAt(new(int64(4))))
	require.Equal(t, before, state())
}

// However small the planner takes the tables for, none is read as a whole: a plan outlives its statistics.
func TestTotalsAreAddedByIndex(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	for round := range int64(10) {
		h.appendRecords(storetest.Transfer(&round, storetest.Change("alice", "1", "0"), storetest.Change("bob", "1", "0")))
	}
	h.Exec("VACUUM ANALYZE")
	require.NoError(t, h.l.term.Write(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if err := queries.PlanByIndexOnly(ctx, tx); err != nil {
			return err
		}
		if err := queries.BalanceTotalsAdd(ctx, tx, dbsqlc.BalanceTotalsAddParams{FromExclusive: 5, ToInclusive: 10}); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT relname FROM pg_stat_xact_user_tables WHERE seq_scan > 0
			AND relname IN ('balance_changes', 'balance_totals', 'latest_totals')`)
		require.NoError(t, err)
		whole, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.Empty(t, whole)
		return err
	}))
}
