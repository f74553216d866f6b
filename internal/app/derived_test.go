package app

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// derivedRelations reads the relations of the transaction history that follow from the updates of the network.
func derivedRelations(t *testing.T, databaseURL string) map[string][]sandbox.Row {
	t.Helper()
	return rowsIn(t, databaseURL, "network", "row_to_json(r)", sandbox.HistoryRelations())
}

// What POST /v0/transactions serves follows from what POST /v2/updates serves: record by record, field by field.
// docs/sql.md lists in which fields it is not the same.
func TestTheHistoryFollowsFromTheUpdates(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	for _, of := range []sandbox.Options{{Seed: 81}, {Seed: 82, Elsewhere: true}} {
		l, scan := scanOfLedger(of, 700, sandbox.ScanOptions{BalanceChanges: true})
		database := networkDatabase(t)
		cfg := networkFor(database, serveScan(t, scan))
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
		require.Empty(t, sandbox.Diff(scan.DerivedTruth(), derivedRelations(t, database)))
		l.Grow(200) // and goes on where it was
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
		want := scan.DerivedTruth()
		require.Empty(t, sandbox.Diff(want, derivedRelations(t, database)))
		for _, relation := range sandbox.HistoryRelations()[:7] {
			require.Greater(t, len(want[relation]), 5, relation)
		}
		requireOnlyDeviations(t, scan.Truth(), want)
		if of.Elsewhere {
			require.Empty(t, texts(t, database, `SELECT c FROM unnest($1::text[]) c WHERE NOT EXISTS (SELECT FROM network.exercised_events e WHERE e.choice = c)`, append(ledger.TransferChoices(), "TransferCommand_Send")),
				"choices that no update has")
		}
	}
}

// requireOnlyDeviations compares the records that the service has with those that follow from its updates: both have
// the same rows, in the same order, and these columns are all in which they differ.
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
	require.ElementsMatch(t, names("event_id offset_text round input_amount source rules update_offset"), slices.Collect(maps.Keys(differ)))
}

// Per update of the network, archived + minted - created = burned; and the sums of what is beside the records are those
// of the records.
func TestTheSumsOfEachUpdateAgree(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOfLedger(sandbox.Options{Seed: 89, Elsewhere: true}, 1_500, sandbox.ScanOptions{})
	database, url := networkDatabase(t), serveScan(t, scan)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	require.Empty(t, texts(t, database, `SELECT row_to_json(s)::text FROM network.amulet_sums s WHERE difference IS DISTINCT FROM 0`))
	// No witness is named, and still a party's rows are all that move what it holds.
	require.Equal(t, texts(t, database, "SELECT e::text FROM network.token_events e ORDER BY 1"), texts(t, database, `
		SELECT e::text FROM (SELECT DISTINCT party FROM network.token_events) p CROSS JOIN LATERAL network.token_events_of(p.party) e ORDER BY 1`))
	requireLogged(t, database)
	for _, relation := range names("amulet_sums burns rewards traffic_purchases") {
		require.Greater(t, count(t, database, "network."+relation), 5, relation)
	}
	sums := sumsOfNetwork(t, database)
	require.Equal(t, int64(count(t, database, "network.amulet_sums")), sums.Updates)
	require.Zero(t, sums.Unbalanced+sums.Unproved)

	// An update that makes an amulet out of nothing is noticed, as the first of its kind.
	execute(t, database, `UPDATE network_indexer.created SET payload = jsonb_set(payload, '{amount,initialAmount}', '"1000000.0"')
		WHERE (ledger_offset, node_id) IN (SELECT c.ledger_offset, c.node_id FROM network_indexer.created c JOIN network_indexer.amulet_templates t USING (template_ref)
			WHERE NOT t.is_locked ORDER BY 1, 2 OFFSET 50 LIMIT 1)`)
	sums = sumsOfNetwork(t, database)
	require.Positive(t, sums.Unbalanced)
	require.Equal(t, texts(t, database, "SELECT update_id FROM network.amulet_sums WHERE difference <> 0 ORDER BY ledger_offset LIMIT 1")[0], sums.FirstID)

	verification := VerifyConfig{Database: config.Database{DatabaseURL: database}, Sources: networkFor(database, url).Sources}
	verification.Network = true
	result, err := RunVerify(t.Context(), verification, testLogger(t), func(audit.Difference) {})
	require.NoError(t, err)
	require.Equal(t, sums, *result.Amulets)

	// When it is repaired, they agree again.
	verification.Repair, verification.All = true, true
	result, err = RunVerify(t.Context(), verification, testLogger(t), func(audit.Difference) {})
	require.NoError(t, err)
	require.Zero(t, result.Remaining(true))
	sums = sumsOfNetwork(t, database)
	require.Equal(t, int64(count(t, database, "network.amulet_sums")), sums.Updates)
	require.Zero(t, sums.Unbalanced+sums.Unproved)

	require.Equal(t, names("dust fees name preapproval traffic"), texts(t, database, "SELECT DISTINCT kind FROM network.burns ORDER BY 1"))
	require.Equal(t, names("app development_fund sv unclaimed_activity validator"), texts(t, database, "SELECT DISTINCT kind FROM network.rewards ORDER BY 1"))
	require.Equal(t, names("Amulet_Expire Amulet_ExpireV2 LockedAmulet_ExpireAmulet LockedAmulet_ExpireAmuletV2"),
		texts(t, database, "SELECT DISTINCT choice FROM network.burns WHERE kind = 'dust' ORDER BY 1"))
	require.Equal(t, texts(t, database, "SELECT count(*)::text FROM network.exercised_events WHERE choice LIKE 'AnsRules_Collect%'"),
		texts(t, database, "SELECT count(*)::text FROM network.burns WHERE kind = 'name'"), "a subscription to anything else burns nothing")
	require.Positive(t, count(t, database, `network.exercised_events c WHERE c.choice LIKE 'Subscription%Payment_Collect' AND NOT EXISTS (
		SELECT FROM network.exercised_events e WHERE e.ledger_offset = c.ledger_offset AND e.choice LIKE 'AnsRules_Collect%')`))
	require.Equal(t, texts(t, database, "SELECT amount::text FROM network.rewards WHERE kind = 'development_fund' ORDER BY ledger_offset"),
		texts(t, database, `SELECT c.payload ->> 'amount' FROM network.created_events c JOIN network.archived_events a USING (contract_id)
			WHERE c.entity_name = 'DevelopmentFundCoupon' ORDER BY a.ledger_offset`), "which is minted for coupons")
	require.Equal(t, []string{"0"}, texts(t, database, "SELECT count(*)::text FROM network.burns WHERE party IS NULL"))
	require.Greater(t, len(scan.MiningRounds()), 30)
	require.Empty(t, sandbox.Diff(map[string][]sandbox.Row{"mining_rounds": scan.MiningRounds()}, rowsIn(t, database, "network", "row_to_json(r)", names("mining_rounds"))))

	// Of what was redacted nothing is said. What moves no amulets still moves none.
	moving := count(t, database, "network.amulet_sums")
	redacted := texts(t, database, `WITH ended AS (SELECT e.* FROM network.exercised_events e WHERE NOT EXISTS (
			SELECT FROM network.created_events c JOIN network.active_contracts x USING (contract_id) WHERE c.ledger_offset = e.ledger_offset))
		(SELECT DISTINCT ON (e.choice) e.update_id FROM ended e JOIN network.amulet_sums s USING (ledger_offset)
		WHERE e.choice IN ('AmuletRules_Transfer', 'AmuletRules_Mint') AND s.created > 0 ORDER BY e.choice, e.ledger_offset)
		UNION ALL (SELECT e.update_id FROM ended e LEFT JOIN network.amulet_sums s USING (ledger_offset)
		WHERE e.package_name LIKE 'splice-%' AND s.ledger_offset IS NULL ORDER BY e.ledger_offset LIMIT 1)`)
	require.Len(t, redacted, 3)
	for _, id := range redacted {
		_, err = RunRedact(t.Context(), verification.Database, audit.Redaction{UpdateID: id}, "a test", true, testLogger(t))
		require.NoError(t, err)
	}
	require.Empty(t, texts(t, database, "SELECT row_to_json(s)::text FROM network.amulet_sums s WHERE difference <> 0"))
	unknown := texts(t, database, `SELECT DISTINCT coalesce(s.archived::text, 'NULL') FROM network.amulet_sums s JOIN network.exercised_events e USING (ledger_offset)
		JOIN network.created_events c ON c.contract_id = e.contract_id WHERE e.consuming AND c.payload IS NULL AND c.entity_name LIKE '%Amulet'`)
	require.Equal(t, []string{"NULL"}, unknown, "what archives something that was redacted has no sum of it")
	require.Equal(t, moving, count(t, database, "network.amulet_sums"))
	sums = sumsOfNetwork(t, database)
	require.Zero(t, sums.Unbalanced)
	require.Equal(t, int64(count(t, database, "network.amulet_sums WHERE difference IS NULL")), sums.Unproved)
	require.GreaterOrEqual(t, sums.Unproved, int64(4), "what was redacted, and what archives it")
}

// requireLogged checks that what the DSO logs explains what no other choice does, to the last digit.
func requireLogged(t *testing.T, databaseURL string) {
	t.Helper()
	require.Equal(t, names("MergeSplit Mint TransferIn TransferOut"), texts(t, databaseURL, "SELECT DISTINCT label FROM network.token_events WHERE standard = 'V2' ORDER BY 1"))
	require.Empty(t, texts(t, databaseURL, `SELECT e::text FROM network.token_events e WHERE e.standard = 'V2' AND e.amount <> (
		SELECT coalesce(sum(CASE l ->> 'side' WHEN 'SenderSide' THEN -1 ELSE 1 END * (l ->> 'amount')::numeric), 0) FROM jsonb_array_elements(e.legs) l)`))
}

// sumsOfNetwork adds up the amulets of all updates of a network.
func sumsOfNetwork(t *testing.T, databaseURL string) store.AmuletSums {
	t.Helper()
	db, err := store.Open(config.StoreOf(databaseURL, config.NetworkSchemas, testLogger(t)))
	require.NoError(t, err)
	defer db.Close()
	sums, err := db.AmuletSums(t.Context(), func(ledger.Offset) {})
	require.NoError(t, err)
	return sums
}

// After a reset of the updates their records are those of what is read again, also where that is something else.
func TestRecordsAfterAReset(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	var other atomic.Bool // the service sends other amounts than before
	_, scan := scanOf(88, 600, sandbox.ScanOptions{Rewrite: func(e sandbox.Element) []byte {
		if other.Load() && e.Path == "/v2/updates" {
			return bytes.ReplaceAll(e.Raw, []byte(`"holdingFees":"0.0`), []byte(`"holdingFees":"1.0`))
		}
		return e.Raw
	}})
	database, url := networkDatabase(t), serveScan(t, scan)
	cfg := networkFor(database, url)
	of := cfg.Database
	of.Network = true
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	want := scan.DerivedTruth()
	require.Empty(t, sandbox.Diff(want, derivedRelations(t, database)))

	_, err := RunReset(t.Context(), of, ledger.Offset(networkOffsetAt(t, scan, 0.5)), true, testLogger(t))
	require.NoError(t, err)
	other.Store(true)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Len(t, derivedRelations(t, database)["transfers"], len(want["transfers"]))
	require.Positive(t, count(t, database, "network.transfers WHERE holding_fees >= 1"))
	verification := VerifyConfig{Database: of, Sources: cfg.Sources}
	result, err := RunVerify(t.Context(), verification, testLogger(t), func(d audit.Difference) { t.Error(d) })
	require.NoError(t, err)
	require.Equal(t, int64(len(want["transactions"])), result.Transactions.Records)
}

// Records of updates that were pruned can't be derived again. They stay as they are whatever the others are derived
// again for: a reset, or other rules.
func TestRecordsOfPrunedUpdatesStay(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	cfg, scan, _ := indexedNetwork(t)
	database, of := cfg.DatabaseURL, cfg.Database
	of.Network = true
	at := func(share float64) ledger.Offset { return ledger.Offset(networkOffsetAt(t, scan, share)) }
	prune := func(share float64) error {
		_, err := RunPrune(t.Context(), of, store.PruneBefore{Offset: new(at(share))}, true, testLogger(t))
		return err
	}
	verify := func() {
		t.Helper()
		result, err := RunVerify(t.Context(), VerifyConfig{Database: of, Sources: cfg.Sources}, testLogger(t), func(d audit.Difference) { t.Error(d) })
		require.NoError(t, err)
		require.NotNil(t, result.Transactions, "with the totals of the records")
	}
	rewritten := func() []string {
		return texts(t, database, "SELECT format('%s %s %s', from_exclusive, to_inclusive, reason) FROM network.rewrites WHERE stream = 'transactions' ORDER BY rewrite DESC LIMIT 1")
	}
	require.NoError(t, prune(0.3))
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	want := scan.DerivedTruth()
	require.Empty(t, sandbox.Diff(want, derivedRelations(t, database)))
	pruned := count(t, database, "network.transactions t WHERE NOT EXISTS (SELECT FROM network.updates u WHERE u.update_id = t.update_id)")
	require.Positive(t, pruned)
	all := count(t, database, "network.transactions")

	_, err := RunReset(t.Context(), of, at(0.7), true, testLogger(t))
	require.NoError(t, err)
	left := count(t, database, "network.transactions")
	require.Greater(t, left, pruned)
	require.Less(t, left, all)
	require.Equal(t, []string{fmt.Sprintf("%d %d reset", left, all)}, rewritten())
	verify()
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(want, derivedRelations(t, database)))
	verify()

	// The records are as an earlier version of the rules made them, with other fees.
	execute(t, database, "UPDATE network_indexer.transactions SET rules = 0, fingerprint = fingerprint + 1")
	execute(t, database, "UPDATE network_indexer.transfers SET sender_fee = sender_fee + 1")
	execute(t, database, "UPDATE network_indexer.party_transfers SET fee = fee + 1 WHERE sent")
	requireProblem(t, prune(0.4), "could not be after pruning")
	earlier := derivedRelations(t, database)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Equal(t, []string{fmt.Sprintf("%d %d read again", pruned, all)}, rewritten())
	verify()
	now := derivedRelations(t, database)
	for relation, rows := range earlier {
		byThen := func(row sandbox.Row) bool { return int64Of(t, row["seq"]) <= int64(pruned) }
		kept := slices.DeleteFunc(rows, func(row sandbox.Row) bool { return !byThen(row) })
		want[relation] = append(kept, slices.DeleteFunc(want[relation], byThen)...)
	}
	require.Empty(t, sandbox.Diff(want, now))
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Equal(t, now, derivedRelations(t, database), "nothing is derived again for records that can't be")
	require.NoError(t, prune(0.4))
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(now, derivedRelations(t, database)))
}
