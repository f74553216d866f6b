package app

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// A daemon that follows a ledger and its network goes on while contracts and updates of both are redacted, and after a reset it reads
// them again without their content. Verification finds nothing, and counts them.
func TestTheDaemonGoesOnBesideRedacting(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon for a ledger and its network, and verifies both")
	l, scan := scanOf(101, 400, sandbox.ScanOptions{})
	database := throwaway.Database(t)
	scope := defaultScope()
	scope.Shape = "ledger-effects"
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), scope)
	cfg.ScanURL, cfg.ScanHistory = []string{serveScan(t, scan)}, "both"
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
			v := Verify{Database: pair, Sources: config.Sources{LedgerURL: cfg.LedgerURL, ScanURL: cfg.ScanURL}, Verify: config.Verify{All: true}}
			if pair.Network {
				v.LedgerURL = ""
			}
			result, err := RunVerify(t.Context(), v, testLogger(t), func(d findings.Difference) { t.Errorf("%s: %v", what, d) })
			require.NoError(t, err)
			require.Equal(t, redactions[schema], result.RedactedContracts)
			require.Equal(t, int64(1), result.RedactedUpdates)
			require.NotNil(t, result.Updates)
		}
	}
	verified("redacted")
	for _, pair := range pairs {
		_, err := RunReset(t.Context(), pair, ledger.Offset(0), testLogger(t))
		require.NoError(t, err)
	}
	cfg.UntilCurrent = true
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	verified("read again")
	require.Equal(t, len(scan.NetworkTruth()["updates"]), count(t, database, "network.updates"))
}

// Killed with SIGKILL at any point, beside a daemon that follows the ledger, redacting leaves everything as it was, and gets through when
// it is run again: then no row of any table has the content, and verification finds nothing.
func TestRedactingIsKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	l := sandbox.NewLedger(sandbox.Options{Seed: 103})
	l.Grow(600)
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	daemon := startIndexer(t, cfg)
	of := texts(t, database, `SELECT unnest(ARRAY[x.contract_id, x.payload::text]) FROM (SELECT c.contract_id, c.payload FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
		WHERE NOT EXISTS (SELECT FROM ledger.created_events o WHERE o.payload = c.payload AND o.contract_id <> c.contract_id)
			AND NOT EXISTS (SELECT FROM ledger.active_contracts o WHERE o.contract_id = c.contract_id)
		ORDER BY length(c.payload::text) DESC, c.ledger_offset LIMIT 1) x`)
	require.Len(t, of, 2)
	holding := func() (tables []string) {
		for _, table := range texts(t, database, "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'indexer'::regnamespace AND c.relkind = 'r'") {
			found := texts(t, database, "SELECT 1::text FROM "+table+" t WHERE position($1 IN replace(t::text, '\"\"', '\"')) > 0 LIMIT 1", of[1])
			if len(found) > 0 {
				tables = append(tables, table)
			}
		}
		return tables
	}
	require.NotEmpty(t, holding())
	env := []string{"INDEXER_DATABASE_URL=" + database}
	killUntilDone(t, rand.New(rand.NewPCG(5, 6)), env, build(t, "indexer"), "redact", "--contract", of[0], "--reason", "a test", "--apply")
	l.Grow(20)
	waitFor(t, database, lastUpdate(l))
	require.NoError(t, daemon.finish())
	require.Empty(t, holding())
	v := Verify{Database: config.Database{DatabaseURL: database}, Sources: config.Sources{LedgerURL: cfg.LedgerURL}, Verify: config.Verify{All: true}}
	result, err := RunVerify(t.Context(), v, testLogger(t), func(d findings.Difference) { t.Error(d) })
	require.NoError(t, err)
	require.EqualValues(t, 1, result.RedactedContracts)
}
