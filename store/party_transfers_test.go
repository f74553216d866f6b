package store

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

const partyTransferColumns = `SELECT seq, direction, coalesce(counterparties::text, 'NULL'), coalesce(amount::text, 'NULL'), coalesce(fee::text, 'NULL'),
	coalesce(net_amount::text, 'NULL')
	FROM ledger.party_transfers `

func TestPartyTransfers(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	fee := func(text string) *ledger.Decimal { return new(ledger.Decimal(text)) }
	full := storetest.Payment("#full:0", "01:00:00.123456", "alice", fee("0.0300000000"),
		storetest.Receiver("dave", "2.50", fee("0.01")), storetest.Receiver("bob", "1.0000000001", fee("0.02")), storetest.Receiver("dave", "4", fee("0.03")), storetest.Receiver("carol", "-1", nil))
	full.Transfer.Description, full.Transfer.Kind = new("rent"), new("preapproval_send")
	merge := storetest.Payment("#merge:0", "02:00:00", "alice", fee("0"))
	left := storetest.Payment("#left:0", "03:00:00", "alice", nil)
	left.Round, left.Transfer.Receivers = nil, nil
	self := storetest.Payment("#self:0", "04:00:00", "alice", fee("1"), storetest.Receiver("alice", "5", fee("0")), storetest.Receiver("bob", "6", fee("0.5")), storetest.Receiver("bob", "7", nil))
	h.appendRecords(full, merge)
	h.appendRecords(tapAt(nil), left, self)

	require.Equal(t, []string{
		"5 sent {alice,bob} 18 1 -19", // the same transfer: sent first
		"5 received {alice} 5 0 5",
		"4 sent NULL NULL NULL NULL",
		"2 sent {} 0 0 0",
		"1 sent {dave,bob,carol} 6.5000000001 0.0300000000 -6.5300000001",
	}, h.Rows(partyTransferColumns+"WHERE party = 'alice'"))
	require.Equal(t, []string{"5 received {alice} 13 NULL NULL", "1 received {alice} 1.0000000001 0.02 0.9800000001"}, h.Rows(partyTransferColumns+"WHERE party = 'bob'"), "a part of the fee was left out")
	require.Equal(t, []string{"1 received {alice} -1 NULL NULL"}, h.Rows(partyTransferColumns+"WHERE party = 'carol'"))
	require.Equal(t, []string{"1 received {alice} 6.50 0.04 6.46"}, h.Rows(partyTransferColumns+"WHERE party = 'dave'"))
	require.Equal(t, []string{"0 dave 2.49", "1 bob 0.9800000001", "2 dave 3.97", "3 carol NULL"}, h.Rows(`SELECT ordinal, party, coalesce(net_amount::text, 'NULL')
		FROM ledger.transfer_receivers WHERE seq = 1 ORDER BY 1`))
	const rest = "SELECT event_id, (date AT TIME ZONE 'UTC')::text, coalesce(round::text, 'NULL'), coalesce(description, 'NULL'), coalesce(transfer_kind, 'NULL') FROM ledger.party_transfers WHERE "
	require.Equal(t, "#full:0 2025-01-02 01:00:00.123456 5 rent preapproval_send", h.Row(rest+"party = 'dave'"))
	require.Equal(t, "#left:0 2025-01-02 03:00:00 NULL NULL NULL", h.Row(rest+"party = 'alice' AND seq = 4"))
	require.Equal(t, "9", h.Row("SELECT count(*) FROM ledger.party_transfers"))
	const text = "SELECT x::text FROM (SELECT party, date, seq, sent, round, amount, fee FROM indexer.%s) x ORDER BY 1"
	require.Equal(t, h.Rows(fmt.Sprintf(text, "transfer_parties")), h.Rows(fmt.Sprintf(text, "party_transfers")), "to the last digit")
}

// By date, then by seq, whatever the order in which they came, with and without asking for it.
func TestPartyTransfersLatestFirst(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	for _, clock := range []string{"03:00:00", "01:00:00", "02:00:00", "03:00:00", "00:59:59.999999"} {
		h.appendRecords(storetest.Payment("#1:0", clock, "bob", nil, storetest.Receiver("alice", "1", nil)), storetest.Payment("#1:0", clock, "alice", nil, storetest.Receiver("carol", "1", nil)))
	}
	for _, order := range []string{"", "ORDER BY date DESC, seq DESC"} {
		require.Equal(t, []string{"8", "7", "2", "1", "6", "5", "4"}, h.Rows("SELECT seq FROM ledger.party_transfers WHERE party = 'alice' "+order+" LIMIT 7"))
	}
	require.Equal(t, []string{"6", "5", "4", "3"}, h.Rows(`SELECT seq FROM ledger.party_transfers
		WHERE party = 'alice' AND date >= '2025-01-02 01:00:00Z' AND date < '2025-01-02 03:00:00Z'`))
}

// The longest ids and numbers that are decoded fit into the index together.
func TestPartyTransfersOfTheLongestTexts(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	long := func(seed uint64, digits int) ledger.Decimal {
		r, text := rand.New(rand.NewPCG(seed, 1)), []byte("1")
		for range digits - 1 {
			text = append(text, byte('0'+r.IntN(10)))
		}
		return ledger.Decimal(text)
	}
	amount, fee := long(1, 300)+"."+long(4, 300), long(2, 300)+"."+long(3, 300)
	longest := string(long(5, 1000))
	left := storetest.Payment("#3:0", "03:00:00", "alice", &fee)
	left.Transfer.Receivers = nil
	h.appendRecords(
		storetest.Payment("#1:0", "01:00:00", "alice", nil, storetest.Receiver(longest, amount, &fee)), storetest.Payment("#2:0", "02:00:00", "alice", &fee, storetest.Receiver("bob", "1", nil)), left,
	)
	const columns = "SELECT seq, coalesce(counterparties::text, 'NULL'), coalesce(amount::text, 'NULL'), coalesce(fee::text, 'NULL') FROM ledger.party_transfers "
	require.Equal(t, []string{
		fmt.Sprint("3 NULL NULL ", fee), fmt.Sprint("2 {bob} 1 ", fee), fmt.Sprint("1 {", longest, "} ", amount, " NULL"),
	}, h.Rows(columns+"WHERE party = 'alice'"))
	h.becomeAnalyst()
	require.Equal(t, []string{fmt.Sprint("1 {alice} ", amount, " ", fee)}, h.Rows(columns+"WHERE party = $1", longest))
}

// fillTransfers makes a history of n transfers with two balance changes each, over a month, and derives what is derived
// from it. Of the transfers a tenth has the same party as sender or receiver; the others have 20,000 parties. It
// returns that party.
func (h *testHistory) fillTransfers(n int) (heavy string) {
	h.T.Helper()
	h.Exec(`CREATE TEMPORARY TABLE people AS SELECT i, 'party-' || i || '::1220' || encode(sha256(i::text::bytea), 'hex') AS party FROM generate_series(0, 20000) i`)
	h.Exec("ALTER TABLE people ADD PRIMARY KEY (i)")
	h.Exec(`CREATE TEMPORARY TABLE made AS
		SELECT seq, '2025-01-01Z'::timestamptz + seq * (interval '30 days' / $1::bigint) AS date, seq * 4000 / $1::bigint AS round,
			CASE seq % 20 WHEN 7 THEN 0 ELSE 1 + (hashint8extended(seq, 1) & 2147483647) % 20000 END AS sender,
			CASE seq % 20 WHEN 13 THEN 0 ELSE 1 + (hashint8extended(seq, 2) & 2147483647) % 20000 END AS receiver,
			(hashint8extended(seq, 3) & 2147483647) * 0.0000000001 AS amount
		FROM generate_series(1, $1::bigint) seq`, n)
	h.Exec(`INSERT INTO indexer.transactions (seq, event_id, kind, date, round, fingerprint)
		SELECT seq, '#1220' || encode(sha256(seq::text::bytea), 'hex') || ':' || seq % 10, 'transfer', date, round, seq FROM made ORDER BY seq`)
	h.Exec(`INSERT INTO indexer.transfers (seq, date, round, sender, sender_fee, description, transfer_kind, receivers, balance_changes)
		SELECT seq, date, round, party, 0.0300000000, 'invoice ' || seq, 'preapproval_send', 1, 2 FROM made JOIN people ON i = sender ORDER BY seq`)
	h.Exec(`INSERT INTO indexer.transfer_receivers (seq, ordinal, party, amount, receiver_fee)
		SELECT seq, 0, party, amount, 0.0000000000 FROM made JOIN people ON i = receiver ORDER BY seq`)
	h.Exec(`INSERT INTO indexer.balance_changes (seq, ordinal, date, round, party, change_to_initial_amount_as_of_round_zero, change_to_holding_fees_rate)
		SELECT seq, ordinal, date, round, party, CASE ordinal WHEN 0 THEN -amount ELSE amount END, 0.0000190259
		FROM made, LATERAL (VALUES (0, sender), (1, receiver)) v (ordinal, who) JOIN people ON i = who ORDER BY seq, ordinal`)
	h.Exec("UPDATE indexer.transactions_position SET revision = 1, last_seq = $1", n)
	h.Exec("INSERT INTO indexer.party_transfers SELECT party, date, seq, sent, round, amount, fee FROM indexer.transfer_parties")
	h.Exec("INSERT INTO indexer.balance_totals SELECT party, round, initial_amount, holding_fees_rate FROM indexer.running_totals")
	h.Exec("INSERT INTO indexer.latest_totals SELECT party, round, initial_amount, holding_fees_rate FROM indexer.running_totals WHERE latest")
	h.Exec("UPDATE indexer.balance_rounds SET newest = 4000")
	h.Exec("DROP TABLE made")
	h.Exec("VACUUM ANALYZE")
	return h.Row("SELECT party FROM people WHERE i = 0")
}

// The latest transfers of a party, and those of a time, are a range of one index: there is nothing to sort.
func TestPartyTransfersAreReadByOneIndexRange(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "writes very many rows")
	h := newHistory(t)
	heavy := h.fillTransfers(20_000)
	require.Equal(t, "2000", h.Row("SELECT count(*) FROM ledger.party_transfers WHERE party = $1", heavy))
	day := "AND date >= '2025-01-20Z' AND date < '2025-01-21Z'"
	for _, party := range []string{heavy, "somebody else"} {
		for _, query := range []string{
			"SELECT * FROM ledger.party_transfers WHERE party = '%s' LIMIT 100",
			"SELECT * FROM ledger.party_transfers WHERE party = '%s' ORDER BY date DESC LIMIT 100",
			"SELECT * FROM ledger.party_transfers WHERE party = '%s' ORDER BY date DESC, seq DESC LIMIT 100",
			"SELECT * FROM ledger.party_transfers WHERE party = '%s' " + day,
			"SELECT * FROM ledger.party_transfers WHERE party = '%s' " + day + " ORDER BY date DESC, seq DESC",
			"SELECT * FROM ledger.party_transfers WHERE party = '%s' AND date < '2025-01-20Z' LIMIT 100",
			"SELECT l.* FROM (SELECT '%s'::text OFFSET 0) p (party), LATERAL (SELECT * FROM ledger.party_transfers t WHERE t.party = p.party LIMIT 10) l",
		} {
			query = fmt.Sprintf(query, party)
			plan := h.plan(query)
			require.NotContains(t, strings.ReplaceAll(plan, "Seq Scan on transactions_position", ""), "Seq Scan", query)
			rows, _, _ := strings.Cut(plan, "SubPlan") // look-ups for a row
			require.Contains(t, rows, "Index Only Scan Backward using party_transfers_pkey", query)
			require.NotContains(t, rows, "Sort", query)
			require.NotContains(t, rows, "Join", query)
			require.NotContains(t, rows, "Filter: (party", query)
			require.NotContains(t, rows, "Filter: (date", query)
		}
	}
	plan := h.plan("SELECT date, direction, amount, fee, round FROM ledger.party_transfers WHERE party = '" + heavy + "' LIMIT 100")
	require.NotContains(t, plan, "SubPlan", "nothing is looked up that nobody asked for")
	require.NotContains(t, plan, "Sort")
	require.Equal(t, "0", h.Row(`SELECT count(*) FROM (
		SELECT seq, party, true AS sent FROM ledger.transfers t, LATERAL (SELECT t.sender AS party) s UNION ALL SELECT seq, party, false FROM ledger.transfer_receivers) x
		FULL JOIN indexer.party_transfers p USING (seq, party, sent) WHERE x IS NULL OR p IS NULL`))
}
