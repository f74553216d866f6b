package app

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// A daemon that follows a ledger and its network goes on while contracts and updates of both are redacted, and after a
// reset it reads them again without their content. Verification finds nothing, and counts them.
func TestTheDaemonGoesOnBesideRedacting(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon for a ledger and its network, and verifies both")
	l, scan := scanOf(101, 250, sandbox.ScanOptions{})
	database := databaseOfBoth(t)
	scope := defaultScope()
	scope.Shape = "ledger-effects"
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), scope)
	cfg.ScanURL, cfg.ScanHistory = []string{serveScan(t, scan)}, config.ScanUpdates
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	cfg.UntilCurrent = false
	daemon := startIndexer(t, cfg)

	pairs := map[string]config.Database{"ledger": {DatabaseURL: database}, "network": {DatabaseURL: database, Schemas: config.Schemas{Network: true}}}
	ask := func(schema, query string) []string {
		return texts(t, database, strings.ReplaceAll(query, "ledger.", schema+"."))
	}
	redactions := map[string]int64{}
	for schema, pair := range pairs {
		redact := func(what audit.Redaction) {
			report, err := RunRedact(t.Context(), pair, what, "a test", true, testLogger(t))
			require.NoError(t, err)
			require.NotEmpty(t, report.Rows)
			redactions[schema] += int64(len(report.Contracts))
			l.Grow(20)
		}
		for _, id := range ask(schema, `SELECT c.contract_id FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
			WHERE NOT EXISTS (SELECT FROM ledger.active_contracts x WHERE x.contract_id = c.contract_id) AND c.payload IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT 3`) {
			redact(audit.Redaction{ContractID: id})
		}
		for _, id := range ask(schema, `SELECT e.update_id FROM ledger.exercised_events e WHERE e.choice_argument IS NOT NULL
			AND NOT EXISTS (SELECT FROM ledger.created_events c WHERE c.ledger_offset = e.ledger_offset) ORDER BY e.ledger_offset LIMIT 1`) {
			redact(audit.Redaction{UpdateID: id})
		}
	}
	updates := len(scan.NetworkTruth()["updates"])
	eventuallyOf(t, daemon, "all updates are there", func() bool {
		return count(t, database, "network.updates") == updates &&
			count(t, database, fmt.Sprintf("ledger.updates WHERE ledger_offset = %d", lastUpdate(l))) == 1
	})
	require.NoError(t, daemon.finish())

	verified := func(what string) {
		t.Helper()
		for schema, pair := range pairs {
			require.Empty(t, ask(schema, `SELECT c.payload::text FROM ledger.created_events c JOIN ledger.redactions r ON r.id = c.contract_id WHERE c.payload IS NOT NULL
				UNION ALL SELECT e.choice_argument::text FROM ledger.exercised_events e JOIN ledger.redactions r ON r.id IN (e.contract_id, e.update_id) WHERE e.choice_argument IS NOT NULL
				UNION ALL SELECT v.view_value::text FROM ledger.interface_views v JOIN ledger.redactions r ON r.id = v.contract_id WHERE v.view_value IS NOT NULL`))
			v := VerifyConfig{Database: pair, Sources: config.Sources{LedgerURL: cfg.LedgerURL, ScanURL: cfg.ScanURL}, Verify: config.Verify{All: true}}
			if pair.Network {
				v.LedgerURL = ""
			}
			result, err := RunVerify(t.Context(), v, testLogger(t), func(d audit.Difference) { t.Errorf("%s: %v", what, d) })
			require.NoError(t, err)
			require.Equal(t, redactions[schema], result.RedactedContracts)
			require.Equal(t, int64(1), result.RedactedUpdates)
			require.NotNil(t, result.Updates)
		}
	}
	verified("redacted")
	for _, pair := range pairs {
		_, err := RunReset(t.Context(), pair, ledger.Offset(0), true, testLogger(t))
		require.NoError(t, err)
	}
	cfg.UntilCurrent = true
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	verified("read again")
	require.Equal(t, len(scan.NetworkTruth()["updates"]), count(t, database, "network.updates"))
}

// said are the texts of transfers in JSON: a description, or a reason in the metadata of the token standard. Each
// expression begins with what is always the same, and is found more than ten times as fast as one for both.
var said = []*regexp.Regexp{regexp.MustCompile(`("description":)"(?:[^"\\]|\\.)*"`), regexp.MustCompile(`(/reason":)"(?:[^"\\]|\\.)*"`)}

// Whatever is redacted of the updates from which records follow: who paid whom, how much and when stays, and still
// follows after a reset, or by other rules. What the redacted updates say is nowhere.
func TestRecordsOfRedactedUpdatesStay(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "redacts something of each kind of update that moves amulets, one after the other")
	_, scan := scanOfLedger(sandbox.Options{Seed: 105, Elsewhere: true}, 400, sandbox.ScanOptions{BalanceChanges: true, Rewrite: func(e sandbox.Element) []byte {
		if e.Path != "/v2/updates" {
			return e.Raw
		}
		var of struct {
			ID string `json:"update_id"`
		}
		require.NoError(t, json.Unmarshal(e.Raw, &of))
		for _, text := range said {
			e.Raw = text.ReplaceAll(e.Raw, []byte(`$1"said in `+of.ID+`"`))
		}
		return e.Raw
	}})
	database := networkDatabase(t)
	cfg := networkFor(database, serveScan(t, scan))
	pair := config.Database{DatabaseURL: database, Schemas: config.Schemas{Network: true}}
	read := func() {
		t.Helper()
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	}
	// records are those that are shown but for what they say, with the balances.
	records := func() (list []string) {
		for _, relation := range names("transactions transfers transfer_receivers balance_changes mints taps aborted_transfer_instructions party_transfers") {
			list = append(list, texts(t, database, "SELECT (to_jsonb(r) - 'seq' - 'description')::text FROM network."+relation+" r ORDER BY r.seq, 1")...)
		}
		return append(list, texts(t, database, `SELECT format('%s %s %s', n, b.party, b.balance) FROM (SELECT (max(round) * part / 4)::bigint AS n
			FROM network.transactions, generate_series(1, 4) part GROUP BY part) r CROSS JOIN LATERAL network.reported_balances_at(n) b ORDER BY n, b.party`)...)
	}
	read()
	before := records()
	require.Greater(t, len(before), 500)

	const notActive = `NOT EXISTS (SELECT FROM network.created_events c JOIN network.active_contracts x USING (contract_id) WHERE c.ledger_offset = e.ledger_offset)`
	contracts, updates := map[string]bool{}, []string{}
	redact := func(all ...audit.Redaction) { // as RunRedact does, which takes the lead for each
		t.Helper()
		db, err := pair.Open(t.Context(), testLogger(t))
		require.NoError(t, err)
		defer db.Close()
		repairer, leads, err := audit.LeadRepair(t.Context(), db)
		require.NoError(t, err)
		require.True(t, leads)
		defer repairer.Close()
		for _, what := range all {
			what.Derived = true
			report, err := repairer.Redact(t.Context(), what, "a test")
			require.NoError(t, err, what)
			for _, id := range report.Contracts {
				contracts[id] = true
			}
		}
	}
	var all []audit.Redaction
	for _, choice := range ledger.TransferChoices() {
		found := 0
		for _, id := range texts(t, database, `SELECT e.update_id FROM network.exercised_events e WHERE e.choice = $1 AND `+notActive+` ORDER BY e.ledger_offset LIMIT 1`, choice) {
			updates, found = append(updates, id), found+1
		}
		for _, id := range texts(t, database, `SELECT x.contract_id FROM network.exercised_events e JOIN network.exercised_events x USING (ledger_offset)
			WHERE e.choice = $1 AND x.consuming AND x.entity_name ~ 'Amulet' ORDER BY e.ledger_offset DESC LIMIT 1`, choice) {
			all, found = append(all, audit.Redaction{ContractID: id}), found+1 // an amulet, or an instruction
		}
		require.Positive(t, found, choice)
	}
	slices.Sort(updates)
	updates = slices.Compact(updates)
	for _, id := range updates { // some of them have a redacted contract already
		all = append(all, audit.Redaction{UpdateID: id})
	}
	redact(append(all, audit.Redaction{UpdateID: updates[0]})...)
	verified := func(what string) {
		t.Helper()
		require.Equal(t, before, records(), what)
		v := VerifyConfig{Database: pair, Sources: config.Sources{ScanURL: cfg.ScanURL}, Verify: config.Verify{All: true}}
		result, err := RunVerify(t.Context(), v, testLogger(t), func(d audit.Difference) { t.Errorf("%s: %v", what, d) })
		require.NoError(t, err)
		require.EqualValues(t, len(updates), result.RedactedUpdates)
		require.EqualValues(t, len(contracts), result.RedactedContracts)
		for _, table := range texts(t, database, "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'network_indexer'::regnamespace AND c.relkind = 'r'") {
			require.Empty(t, texts(t, database, "SELECT t::text FROM "+table+" t WHERE t::text ~ 'said in ("+strings.Join(updates, "|")+")'"), "%s: %s", what, table)
		}
	}
	verified("redacted")

	// Each contract that has a choice of them, in an update of each choice that says something: then its records say nothing.
	const ended = `NOT EXISTS (SELECT FROM network.active_contracts x WHERE x.contract_id = e.contract_id)`
	saying := texts(t, database, `SELECT DISTINCT ON (e.choice) e.update_id FROM network.exercised_events e JOIN network.transfers x USING (update_id)
		WHERE x.description IS NOT NULL AND e.choice = ANY ($1) AND `+ended+` ORDER BY e.choice, e.ledger_offset`, ledger.TransferChoices())
	require.NotEmpty(t, saying)
	all = nil
	for _, id := range texts(t, database, `SELECT DISTINCT e.contract_id FROM network.exercised_events e
		WHERE e.update_id = ANY ($1) AND e.choice = ANY ($2) AND `+ended, saying, ledger.TransferChoices()) {
		all = append(all, audit.Redaction{ContractID: id})
	}
	redact(all...)
	require.Empty(t, texts(t, database, "SELECT description FROM network.transfers WHERE description IS NOT NULL AND update_id = ANY ($1)", saying))

	_, err := RunReset(t.Context(), pair, ledger.Offset(0), true, testLogger(t))
	require.NoError(t, err)
	read()
	execute(t, database, "UPDATE network_indexer.transactions SET rules = 0")
	read()
	verified("read again, by other rules")
	noted := count(t, database, "network_indexer.redacted_records")
	_, err = RunPrune(t.Context(), pair, store.PruneBefore{Offset: new(ledger.Offset(networkOffsetAt(t, scan, 0.5)))}, true, testLogger(t))
	require.NoError(t, err)
	read()
	verified("pruned")
	require.Equal(t, noted, count(t, database, "network_indexer.redacted_records"))
}
