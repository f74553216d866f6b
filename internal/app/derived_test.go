package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// derivedRelations reads the relations of the transaction history that follow from the updates of the network.
func derivedRelations(t *testing.T, databaseURL string) map[string][]sandbox.Row {
	t.Helper()
	return rowsIn(t, databaseURL, "network", "row_to_json(r)", sandbox.HistoryRelations())
}

// What POST /v0/transactions serves follows from what POST /v2/updates serves: record by record, field by field. docs/sql.md lists in
// which fields it is not the same.
func TestTheHistoryFollowsFromTheUpdates(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{81, 82, 83} {
		l, scan := scanOf(seed, 1_200, sandbox.ScanOptions{BalanceChanges: true})
		database := throwaway.Database(t)
		cfg := networkFor(database, serveScan(t, scan))
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
		require.Empty(t, sandbox.Diff(scan.DerivedTruth(), derivedRelations(t, database)))
		l.Grow(300) // and goes on where it was
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
		want := scan.DerivedTruth()
		require.Empty(t, sandbox.Diff(want, derivedRelations(t, database)))
		for _, relation := range sandbox.HistoryRelations()[:7] {
			require.Greater(t, len(want[relation]), 10, relation)
		}
		requireOnlyDeviations(t, scan.Truth(), want)
	}
}

// requireOnlyDeviations compares the records that the service has with those that follow from its updates: both have the same rows, in
// the same order, and these columns are all in which they differ.
func requireOnlyDeviations(t *testing.T, served, derived map[string][]sandbox.Row) {
	t.Helper()
	differ := map[string]bool{}
	for relation, rows := range served {
		require.Len(t, derived[relation], len(rows), relation)
		for i, row := range rows {
			for column, value := range row {
				if other := derived[relation][i][column]; other != value {
					if a, list := value.([]any); list && slices.Equal(a, other.([]any)) {
						continue
					}
					differ[column] = true
				}
			}
		}
	}
	require.ElementsMatch(t, names("event_id offset_text round input_amount source"), slices.Collect(maps.Keys(differ)))
}

// Records are proved against the updates that are stored, and written again from them.
func TestRecordsThatFollowFromUpdatesAreVerified(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(84, 600, sandbox.ScanOptions{})
	database := throwaway.Database(t)
	cfg := networkFor(database, serveScan(t, scan))
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	verification := Verify{Database: cfg.Database, Sources: cfg.Sources}
	verification.Network = true
	var found []string
	verified := func() *Verification {
		t.Helper()
		found = nil
		result, err := RunVerify(t.Context(), verification, testLogger(t), func(d findings.Difference) { found = append(found, d.String()) })
		require.NoError(t, err)
		return &result
	}
	result := verified()
	require.Empty(t, found)
	require.Equal(t, int64(len(scan.DerivedTruth()["transactions"])), result.History.Records)

	execute(t, database, "UPDATE network_indexer.transfers SET sender_fee = sender_fee + 1 WHERE seq = (SELECT max(seq) FROM network_indexer.transfers)")
	verified()
	require.Len(t, found, 2, "the transfer, and the sender's row of party_transfers")
	require.Contains(t, found[0], "sender_fee")
	verification.Repair = true
	require.Zero(t, verified().Remaining(true))
	require.Empty(t, sandbox.Diff(renumbered(t, database, scan.DerivedTruth()), derivedRelations(t, database)))
}

// renumbered are the rows of a truth with the seqs of another generation, which follow one another.
func renumbered(t *testing.T, databaseURL string, truth map[string][]sandbox.Row) map[string][]sandbox.Row {
	t.Helper()
	var before int64
	_, err := fmt.Sscan(texts(t, databaseURL, "SELECT (min(seq) - 1)::text FROM network.transactions")[0], &before)
	require.NoError(t, err)
	require.Positive(t, before)
	for _, list := range truth {
		for _, row := range list {
			row["seq"] = json.Number(fmt.Sprint(before + int64Of(t, row["seq"])))
		}
	}
	return truth
}

// History that is filled in below makes records before all others: they are written again, as another generation.
func TestRecordsOfFilledInHistory(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(85, 500, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second})
	database, url := throwaway.Database(t), serveScan(t, scan)
	_, err := RunNetworkBackfill(t.Context(), networkBackfillFor(database, url, networkOffsetAt(t, scan, 0.6)), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	want := scan.DerivedTruth()
	require.Less(t, len(derivedRelations(t, database)["transactions"]), len(want["transactions"]))
	_, err = RunNetworkFill(t.Context(), networkFillFor(database, url), testLogger(t))
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	require.Empty(t, sandbox.Diff(renumbered(t, database, want), derivedRelations(t, database)))
}

// Per update of the network, archived + minted - created = burned; and the sums of what is beside the records are those of the records.
func TestTheSumsOfEachUpdateAgree(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(86, 1_500, sandbox.ScanOptions{})
	database := throwaway.Database(t)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, serveScan(t, scan)), testLogger(t)))
	require.Empty(t, texts(t, database, `SELECT row_to_json(s)::text FROM network.amulet_sums s WHERE difference IS DISTINCT FROM 0`))
	for _, relation := range names("amulet_sums burns rewards traffic_purchases") {
		require.Greater(t, count(t, database, "network."+relation), 5, relation)
	}
	status := statusOfNetwork(t, database)
	require.Equal(t, int64(count(t, database, "network.amulet_sums")), status.Updates)
	require.Zero(t, status.Unbalanced+status.Unproved)

	// An update that makes an amulet out of nothing is noticed, as the first of its kind.
	execute(t, database, `UPDATE network_indexer.created SET payload = jsonb_set(payload, '{amount,initialAmount}', '"1000000.0"')
		WHERE (ledger_offset, node_id) IN (SELECT c.ledger_offset, c.node_id FROM network_indexer.created c JOIN network_indexer.amulet_templates t USING (template_ref)
			WHERE NOT t.is_locked ORDER BY 1, 2 OFFSET 50 LIMIT 1)`)
	execute(t, database, "DELETE FROM network_indexer.amulet_checks")
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, serveScan(t, scan)), testLogger(t)))
	status = statusOfNetwork(t, database)
	require.Positive(t, status.Unbalanced)
	require.Equal(t, texts(t, database, "SELECT update_id FROM network.amulet_sums WHERE difference <> 0 ORDER BY ledger_offset LIMIT 1")[0], status.FirstID)

	require.Equal(t, names("dust fees traffic"), texts(t, database, "SELECT DISTINCT kind FROM network.burns ORDER BY 1"))
}

func statusOfNetwork(t *testing.T, databaseURL string) *store.AmuletSums {
	t.Helper()
	db, err := store.Open(config.StoreOf(databaseURL, config.NetworkSchemas, testLogger(t)))
	require.NoError(t, err)
	defer db.Close()
	status, err := db.Status(t.Context())
	require.NoError(t, err)
	return status.History.Amulets
}
