package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/ingest"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
	"ledgerindexer/verify"
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
			require.Empty(t, texts(t, database, `SELECT c FROM unnest($1::text[]) c WHERE NOT EXISTS (SELECT FROM network.exercised_events e WHERE e.choice = c)`, append(ledger.MovingChoices(), "TransferCommand_Send")),
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
	require.ElementsMatch(t, names("event_id offset_text round input_amount source rules"), slices.Collect(maps.Keys(differ)))
}

// Records are proved against the updates that are stored, and written again from them.
func TestRecordsThatFollowFromUpdatesAreVerified(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOf(84, 600, sandbox.ScanOptions{})
	database := networkDatabase(t)
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
	before -= int64Of(t, truth["transactions"][0]["seq"]) - 1
	for _, list := range truth {
		for _, row := range list {
			row["seq"] = json.Number(fmt.Sprint(before + int64Of(t, row["seq"])))
		}
	}
	return truth
}

// prunedMeanwhile prunes before its first records are read.
type prunedMeanwhile struct {
	ingest.TransactionsSource
	prune func()
}

func (p *prunedMeanwhile) TransactionsAfter(ctx context.Context, after ledger.TransactionsCursor) ([]ledger.Transaction, error) {
	if p.prune != nil {
		p.prune()
		p.prune = nil
	}
	return p.TransactionsSource.TransactionsAfter(ctx, after)
}

// Records are not compared with updates some of which are pruned meanwhile: the rest would be taken for others, or for
// too many.
func TestUpdatesArePrunedWhileTheirRecordsAreVerified(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(83, 300, sandbox.ScanOptions{})
	database := networkDatabase(t)
	cfg := networkFor(database, serveScan(t, scan))
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	cfg.Network = true
	db, err := cfg.Open(t.Context(), testLogger(t))
	require.NoError(t, err)
	t.Cleanup(db.Close)
	derived, err := newUnpruned(t.Context(), db)
	require.NoError(t, err)
	source := &prunedMeanwhile{derived, func() {
		before := store.PruneBefore{Offset: new(ledger.Offset(networkOffsetAt(t, scan, 0.5)))}
		_, err := RunPrune(t.Context(), cfg.Database, before, true, testLogger(t))
		require.NoError(t, err)
	}}
	v := verification{db: newAudited(db), logger: testLogger(t), progress: func(verify.Progress) {}, found: func(d findings.Difference) error {
		t.Error(d)
		return nil
	}}
	records, err := derived.TransactionsAfter(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, v.history(t.Context(), source))
	require.Equal(t, []string{"the records that follow from the updates, with the updates: some of these were pruned meanwhile"}, v.result.Notes)
	requireRestSealed(t, v.db, records)

	// The rest is compared, and repaired, and the records of what was pruned stay as they are.
	want := derivedRelations(t, database)
	execute(t, database, "UPDATE network_indexer.transfers SET sender_fee = sender_fee + 1 WHERE seq = (SELECT max(seq) FROM network_indexer.transfers)")
	result, err := RunVerify(t.Context(), Verify{Database: cfg.Database, Sources: cfg.Sources, Verify: config.Verify{Repair: true}}, testLogger(t), func(findings.Difference) {})
	require.NoError(t, err)
	require.EqualValues(t, 2, result.Differences, "the transfer, and the sender's row of party_transfers")
	require.Zero(t, result.Remaining(true))
	require.Less(t, result.History.Records, int64(len(records)))
	require.Contains(t, result.Notes[len(result.Notes)-1], "with the updates that they follow from: these were pruned")
	require.Empty(t, sandbox.Diff(renumbered(t, database, want), derivedRelations(t, database)))
}

// requireRestSealed seals records some of whose updates were pruned since they were read: these are sealed as they are,
// and the others compared.
func requireRestSealed(t *testing.T, db audited, read []ledger.Transaction) {
	t.Helper()
	leader, ok, err := db.LeadTransactions(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer leader.Close()
	sealer := audit.NewSealer(db.Store, leader.Leader)
	_, err = sealer.SealRecords(t.Context(), 0, read)
	require.ErrorIs(t, err, store.ErrPositionMoved)
	ctx, stop := context.WithCancel(t.Context())
	var results []findings.SealResult
	seals := verify.Seals{Rate: func() int { return 1_000_000 }, Logger: testLogger(t), Sealed: func(s verify.Sealing) {
		if results = append(results, s.Result()); len(results) == 2 {
			stop()
		}
	}}
	seals.AddTransactions(newDerivedHistory(db.Store, nil), db, db, sealer)
	require.NoError(t, seals.Run(ctx))
	require.Equal(t, []findings.SealResult{findings.SealPruned, findings.SealEqual}, results)
}

// History that is filled in below makes records before all others: they are written again, as another generation.
func TestRecordsOfFilledInHistory(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(85, 500, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second})
	database, url := networkDatabase(t), serveScan(t, scan)
	_, err := RunNetworkBackfill(t.Context(), networkBackfillFor(database, url, networkOffsetAt(t, scan, 0.6)), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	want := scan.DerivedTruth()
	require.Less(t, len(derivedRelations(t, database)["transactions"]), len(want["transactions"]))
	_, err = RunNetworkFill(t.Context(), networkFillFor(database, url), testLogger(t))
	require.NoError(t, err)
	// What is redacted before its records have been derived has them too.
	minted := texts(t, database, `SELECT e.update_id FROM network.exercised_events e WHERE e.choice = 'AmuletRules_Mint'
		AND NOT EXISTS (SELECT FROM network.transactions r WHERE r.update_id = e.update_id)
		AND NOT EXISTS (SELECT FROM network.created_events c JOIN network.active_contracts x USING (contract_id) WHERE c.ledger_offset = e.ledger_offset)
		ORDER BY e.ledger_offset LIMIT 1`)
	require.Len(t, minted, 1)
	pair := config.Database{DatabaseURL: database, Schemas: config.Schemas{Network: true}}
	_, err = RunRedact(t.Context(), pair, audit.Redaction{UpdateID: minted[0]}, "a test", true, testLogger(t))
	require.NoError(t, err)
	_, err = RunPrune(t.Context(), pair, store.PruneBefore{Offset: new(ledger.Offset(networkOffsetAt(t, scan, 0.4)))}, true, testLogger(t))
	requireProblem(t, err, "could not be after pruning: "+filledIn)
	requireReadToItsEnd(t, networkFor(database, url))
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	require.Empty(t, sandbox.Diff(renumbered(t, database, want), derivedRelations(t, database)))
}

// requireReadToItsEnd begins to derive records again, and lets history be filled in below what it has derived: a daemon
// goes on, and a run that ends begins again.
func requireReadToItsEnd(t *testing.T, cfg Indexer) {
	t.Helper()
	db, err := store.Open(config.StoreOf(cfg.DatabaseURL, config.NetworkSchemas, testLogger(t)))
	require.NoError(t, err)
	defer db.Close()
	leader, ok, err := db.LeadTransactions(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer leader.Close()
	h := newDerivedTransactions(&indexer{cfg: cfg, logger: testLogger(t), store: db}, newDerivedHistory(db, nil))
	deriveAgain := func() ledger.TransactionsPosition {
		t.Helper()
		require.NoError(t, h.deriveAgain(t.Context(), leader))
		at, _, err := leader.TransactionsPosition(t.Context())
		require.NoError(t, err)
		return at
	}
	at := deriveAgain()
	require.True(t, at.Rereading())
	records, err := h.derived.TransactionsAfter(t.Context(), "")
	require.NoError(t, err)
	last := records[len(records)-1]
	at, err = leader.AppendTransactions(t.Context(), at, nil, ledger.TransactionsBatch{Records: []ledger.Transaction{last}, Cursor: last.Cursor()})
	require.NoError(t, err)
	h.cfg.UntilCurrent = false
	require.Equal(t, at, deriveAgain())
	h.cfg.UntilCurrent = true
	at = deriveAgain()
	require.Zero(t, at.Records())
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
	status := statusOfNetwork(t, database)
	require.Equal(t, int64(count(t, database, "network.amulet_sums")), status.Updates)
	require.Zero(t, status.Unbalanced+status.Unproved)

	// An update that makes an amulet out of nothing is noticed, as the first of its kind.
	execute(t, database, `UPDATE network_indexer.created SET payload = jsonb_set(payload, '{amount,initialAmount}', '"1000000.0"')
		WHERE (ledger_offset, node_id) IN (SELECT c.ledger_offset, c.node_id FROM network_indexer.created c JOIN network_indexer.amulet_templates t USING (template_ref)
			WHERE NOT t.is_locked ORDER BY 1, 2 OFFSET 50 LIMIT 1)`)
	execute(t, database, "DELETE FROM network_indexer.amulet_checks")
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	status = statusOfNetwork(t, database)
	require.Positive(t, status.Unbalanced)
	require.Equal(t, texts(t, database, "SELECT update_id FROM network.amulet_sums WHERE difference <> 0 ORDER BY ledger_offset LIMIT 1")[0], status.FirstID)

	verification := Verify{Database: config.Database{DatabaseURL: database}, Sources: networkFor(database, url).Sources}
	verification.Network = true
	result, err := RunVerify(t.Context(), verification, testLogger(t), func(findings.Difference) {})
	require.NoError(t, err)
	require.Equal(t, []any{status.Updates, status.Unbalanced, status.FirstID}, []any{result.Amulets.Updates, result.Amulets.Unbalanced, result.Amulets.FirstID})

	// When it is repaired, they agree again.
	verification.Repair, verification.All = true, true
	result, err = RunVerify(t.Context(), verification, testLogger(t), func(findings.Difference) {})
	require.NoError(t, err)
	require.Zero(t, result.Remaining(true))
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	status = statusOfNetwork(t, database)
	require.Equal(t, int64(count(t, database, "network.amulet_sums")), status.Updates)
	require.Zero(t, status.Unbalanced+status.Unproved)

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
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	status = statusOfNetwork(t, database)
	require.Zero(t, status.Unbalanced)
	require.Equal(t, int64(count(t, database, "network.amulet_sums WHERE difference IS NULL")), status.Unproved)
	require.GreaterOrEqual(t, status.Unproved, int64(4), "what was redacted, and what archives it")
}

// requireLogged checks that what the DSO logs explains what no other choice does, to the last digit.
func requireLogged(t *testing.T, databaseURL string) {
	t.Helper()
	require.Equal(t, names("MergeSplit Mint TransferIn TransferOut"), texts(t, databaseURL, "SELECT DISTINCT label FROM network.token_events WHERE standard = 'V2' ORDER BY 1"))
	require.Empty(t, texts(t, databaseURL, `SELECT e::text FROM network.token_events e WHERE e.standard = 'V2' AND e.amount <> (
		SELECT coalesce(sum(CASE l ->> 'side' WHEN 'SenderSide' THEN -1 ELSE 1 END * (l ->> 'amount')::numeric), 0) FROM jsonb_array_elements(e.legs) l)`))
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

	reset := func() {
		t.Helper()
		_, err := RunReset(t.Context(), of, ledger.Offset(networkOffsetAt(t, scan, 0.5)), true, testLogger(t))
		require.NoError(t, err)
	}
	reset()
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(renumbered(t, database, scan.DerivedTruth()), derivedRelations(t, database)), "the same updates make the same records")
	status := statusOfNetwork(t, database)
	require.Equal(t, int64(count(t, database, "network.amulet_sums")), status.Updates)

	reset()
	other.Store(true)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Len(t, derivedRelations(t, database)["transfers"], len(want["transfers"]))
	require.Positive(t, count(t, database, "network.transfers WHERE holding_fees >= 1"))
	verification := Verify{Database: of, Sources: cfg.Sources}
	result, err := RunVerify(t.Context(), verification, testLogger(t), func(d findings.Difference) { t.Error(d) })
	require.NoError(t, err)
	require.Equal(t, int64(len(want["transactions"])), result.History.Records)
}

// Records of updates that were pruned can't be derived again. They stay as they are whatever the others are derived
// again for: a reset, or other rules.
func TestRecordsOfPrunedUpdatesStay(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOf(89, 600, sandbox.ScanOptions{BalanceChanges: true})
	database, url := networkDatabase(t), serveScan(t, scan)
	cfg := networkFor(database, url)
	of := cfg.Database
	of.Network = true
	at := func(share float64) ledger.Offset { return ledger.Offset(networkOffsetAt(t, scan, share)) }
	prune := func(share float64) error {
		_, err := RunPrune(t.Context(), of, store.PruneBefore{Offset: new(at(share))}, true, testLogger(t))
		return err
	}
	verify := func() {
		t.Helper()
		result, err := RunVerify(t.Context(), Verify{Database: of, Sources: cfg.Sources}, testLogger(t), func(d findings.Difference) { t.Error(d) })
		require.NoError(t, err)
		require.NotNil(t, result.History, "with the totals of the records")
	}
	rewritten := func() []string {
		return texts(t, database, "SELECT format('%s %s %s', from_exclusive, to_inclusive, reason) FROM network.rewrites WHERE stream = 'transactions' ORDER BY rewrite DESC LIMIT 1")
	}
	shown := func() []string {
		return []string{fmt.Sprintf("0 %s read again", texts(t, database, "SELECT max(seq)::text FROM network.transactions")[0])}
	}
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	sums := statusOfNetwork(t, database)
	require.NoError(t, prune(0.3))
	require.Equal(t, sums, statusOfNetwork(t, database), "what stays is not added up again")
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	want := scan.DerivedTruth()
	require.Empty(t, sandbox.Diff(want, derivedRelations(t, database)))
	pruned := count(t, database, "network.transactions t WHERE NOT EXISTS (SELECT FROM network.updates u WHERE u.update_id = t.update_id)")
	require.Positive(t, pruned)

	_, err := RunReset(t.Context(), of, at(0.7), true, testLogger(t))
	require.NoError(t, err)
	require.Empty(t, sandbox.Diff(want, derivedRelations(t, database)), "until they are derived again")
	require.ErrorContains(t, prune(0.4), "could not be after pruning")
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(renumbered(t, database, want), derivedRelations(t, database)))
	require.Equal(t, shown(), rewritten())
	verify()

	// The records are as an earlier version of the rules made them, with other fees.
	execute(t, database, "UPDATE network_indexer.transactions SET rules = 0, fingerprint = fingerprint + 1")
	execute(t, database, "UPDATE network_indexer.transfers SET sender_fee = sender_fee + 1")
	execute(t, database, "UPDATE network_indexer.party_transfers SET fee = fee + 1 WHERE sent")
	requireProblem(t, prune(0.4), "could not be after pruning: "+rulesChanged)
	earlier := derivedRelations(t, database)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Equal(t, shown(), rewritten())
	verify()
	now := derivedRelations(t, database)
	want = renumbered(t, database, scan.DerivedTruth())
	first := int64Of(t, want["transactions"][0]["seq"])
	for relation, rows := range renumbered(t, database, earlier) {
		byThen := func(row sandbox.Row) bool { return int64Of(t, row["seq"]) < first+int64(pruned) }
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
