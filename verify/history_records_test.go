package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// recordTables are those that hold the rows of records.
var recordTables = []string{
	"transactions", "transfers", "transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions",
	"unknown_transactions", "record_exact_payloads",
}

// everywhere makes a statement of each table of records.
func everywhere(format string) []string {
	var list []string
	for _, table := range recordTables {
		list = append(list, strings.ReplaceAll(format, "TABLE", "indexer."+table))
	}
	return list
}

func deleted(where string) []string { return everywhere("DELETE FROM TABLE WHERE " + where) }

// copied stores a record once more under another seq.
func copied(from, to int64) []string {
	return everywhere(fmt.Sprintf(`INSERT INTO TABLE SELECT (jsonb_populate_record(x, jsonb_build_object('seq', %d))).* FROM TABLE x WHERE seq = %d`, to, from))
}

// moved gives a range of records other seqs.
func moved(from, to int64, by string) []string {
	return everywhere(fmt.Sprintf(`UPDATE TABLE SET seq = -(seq + %s) WHERE seq BETWEEN %d AND %d`, by, from, to))
}

var settled = everywhere("UPDATE TABLE SET seq = -seq WHERE seq < 0")

func swapped(a, b int64) []string {
	return slices.Concat(moved(a, a, fmt.Sprint(b-a)), moved(b, b, fmt.Sprint(a-b)), settled)
}

// Whatever is done to records: it is found under the name of a relation, and repaired.
func TestHistoryRecordsAreRepaired(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("alters columns and rows one after the other, and compares each time")
	}
	h := newServedHistory(t, 800, sandbox.ScanOptions{PageLimit: 100})
	h.followAll()
	truth, last := h.rows(), h.at.LastSeq
	require.Greater(t, last, int64(210))
	position := func(change string) []string { return []string{"UPDATE indexer.history_position SET " + change} }
	for _, c := range []struct {
		name, difference string
		statements       []string
	}{
		{"one lost", "transactions, seq 50: the row is not stored", deleted("seq = 50")},
		{"the first lost", "transactions, seq 1: the row is not stored", deleted("seq = 1")},
		{"the last lost", fmt.Sprintf("transactions, seq %d: the row is not stored", last), deleted(fmt.Sprintf("seq = %d", last))},
		{"the last lost in one table", fmt.Sprintf("transactions, seq %d: the row is not stored", last), []string{fmt.Sprintf("DELETE FROM indexer.transactions WHERE seq = %d", last)}},
		{"many lost", "transactions, seq 180: the row is not stored", deleted("seq BETWEEN 20 AND 180")},
		{"every other one lost", "transactions, seq 2: the row is not stored", deleted("seq % 2 = 0")},
		{"all lost", "transactions, seq 1: the row is not stored", deleted("true")},
		{"the rows of a kind lost", "transfers", []string{"DELETE FROM indexer.transfers"}},
		{"receivers lost", "transfer_receivers", []string{"DELETE FROM indexer.transfer_receivers WHERE ordinal = 0"}},
		{"one appended again", fmt.Sprintf("transactions, seq %d: the row is stored", last+1), copied(10, last+1)},
		{"one appended again, and claimed", fmt.Sprintf(`transactions, seq %d`, last+1), slices.Concat(copied(10, last+1),
			position(fmt.Sprintf("last_seq = %d, window_seqs = window_seqs || %[1]d::bigint", last+1)))},
		{"one invented", fmt.Sprintf("transactions, seq %d: the row is stored", last+1), slices.Concat(copied(10, last+1),
			[]string{fmt.Sprintf("UPDATE indexer.transactions SET event_id = 'invented', fingerprint = 1 WHERE seq = %d", last+1)})},
		{"one in the place of another", "transactions, seq 60: event_id", slices.Concat(deleted("seq = 60"), copied(10, 60))},
		{"one in the place of an earlier one", "transactions, seq 10: event_id", slices.Concat(deleted("seq = 10"), copied(60, 10))},
		{"one invented in the place of another", "transactions, seq 60: event_id", []string{"UPDATE indexer.transactions SET event_id = 'invented', fingerprint = 1 WHERE seq = 60"}},
		{"one stored twice in the middle", "transactions, seq", slices.Concat(moved(21, last, "1"), settled, copied(20, 21),
			position(fmt.Sprintf("last_seq = %d, window_seqs = ARRAY(SELECT generate_series(%d, %[1]d))", last+1, last-198)))},
		{"neighbours swapped", "transactions, seq 41: seq is", swapped(40, 41)},
		{"two swapped", "transactions, seq 200: seq is", swapped(7, 200)},
		{"fingerprints altered", "transactions, seq 77: fingerprint", []string{"UPDATE indexer.transactions SET fingerprint = fingerprint + 1"}},
		{"ids altered", "transactions, seq 77: event_id", []string{"UPDATE indexer.transactions SET event_id = event_id || '?' WHERE seq > 70"}},
		{"ids swapped", "transactions, seq 77: event_id", []string{`UPDATE indexer.transactions t SET event_id = (SELECT x.event_id FROM indexer.transactions x
			WHERE x.seq = CASE t.seq WHEN 77 THEN 99 ELSE 77 END) WHERE seq IN (77, 99)`}},
		{"ahead of its records", "history_position: last_seq", position("last_seq = last_seq + 3")},
		{"behind its records", "history_position: last_seq", position("last_seq = last_seq - 3")},
		{"no window", "history_position: window_seqs", position("window_seqs = '{}'")},
		{"another window", "history_position: window_seqs", position("window_seqs = '{1, 2, 3}'")},
		{"read again, it says", "history_position: rereading", position("rereading = true")},
		{"an order that can't be", "history_position: ordered_from", position("ordered_from = 0")},
		{"no position", "history_position: the row is not stored", []string{"DELETE FROM indexer.history_position"}},
		{"no checkpoint", "checkpoints, stream transactions: the row is not stored", []string{"DELETE FROM indexer.checkpoints"}},
		{"no network", "network: the row is not stored", []string{"DELETE FROM indexer.network"}},
		{"gone, it says", "history_gone, seq 33", []string{"INSERT INTO indexer.history_gone VALUES (33)"}},
		{"the last gone, it says", "history_gone, seq", []string{fmt.Sprintf("INSERT INTO indexer.history_gone VALUES (%d)", last)}},
		{"gone that there is not", "history_gone, seq 5000", []string{"INSERT INTO indexer.history_gone VALUES (5000)"}},
		{"met again, it says", "history_sightings, seq 5", []string{"INSERT INTO indexer.history_sightings VALUES (5)"}},
		{"no rounds", "balance_rounds", []string{"DELETE FROM indexer.balance_rounds"}},
		{"no totals", "balance_totals", []string{"DELETE FROM indexer.balance_totals", "DELETE FROM indexer.latest_totals"}},
		{"another's transfers", "party_transfers", []string{"UPDATE indexer.party_transfers SET party = 'x' || party"}},
	} {
		for _, statement := range c.statements {
			h.exec(statement)
		}
		list, result := h.verify(true)
		require.True(t, slices.ContainsFunc(names(list), func(text string) bool { return strings.HasPrefix(text, c.difference) }), "%s: %s", c.name, firsts(list))
		require.Zero(t, result.Remaining, c.name)
		h.requireRows(truth, c.name)
	}
	list, _ := h.verify(false)
	require.Empty(t, names(list))
	// A writer that remembers the position from before reads it again, and goes on.
	at, err := h.leader.HistoryPosition(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.at.Window, at.Window)
	require.Equal(t, h.at.LastSeq, at.LastSeq)
}

func firsts(list []ledger.Difference) []string { return names(list[:min(5, len(list))]) }
