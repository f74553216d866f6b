package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// everyTypeKnown is true when each package that events name is there, with its types.
const everyTypeKnown = "EXISTS (SELECT FROM indexer.templates) AND NOT EXISTS (SELECT FROM ledger.created_events e WHERE NOT EXISTS " +
	"(SELECT FROM ledger.templates t WHERE t.template_id = e.template_id)) AND NOT EXISTS (SELECT FROM ledger.packages WHERE types IN ('incomplete', 'missing')) " +
	"AND EXISTS (SELECT FROM ledger.interfaces)"

// withTypes is a database that was indexed from a ledger, with the types of everything on it.
func withTypes(t *testing.T, l *sandbox.Ledger, options sandbox.ServerOptions, scope config.Scope, wait string) (database, server string) {
	t.Helper()
	server = serve(t, l, options)
	database = throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, server, scope)
	cfg.PackagesInterval = often
	daemon := startIndexer(t, cfg)
	waitFor(t, database, lastUpdate(l))
	waitUntil(t, database, wait)
	require.NoError(t, daemon.finish())
	return database, server
}

func effects() config.Scope {
	scope := defaultScope()
	scope.Shape = string(ledger.ShapeLedgerEffects)
	scope.Interfaces = sandbox.InterfaceNames()
	return scope
}

// Each package is asked for once, and tells the types of all that is on the ledger; verify holds what is stored against
// its hash.
func TestTypesAreReadFromPackages(t *testing.T) {
	t.Parallel()
	brief.Long(t, "reads all packages of a ledger, and damages and repairs what is stored of them")
	l := sandbox.NewLedger(sandbox.Options{Seed: 61})
	l.Grow(400)
	var requests requestCounter
	database, server := withTypes(t, l, sandbox.ServerOptions{
		Fault: func(r *http.Request) *sandbox.Fault { requests.note(r); return nil },
	}, effects(), everyTypeKnown)
	stored := texts(t, database, "SELECT package_id FROM indexer.package_contents")
	require.Greater(t, len(stored), 8)
	for _, id := range stored {
		require.Equal(t, 1, requests.of("GET /v2/packages/"+id))
	}
	require.Empty(t, texts(t, database, `SELECT DISTINCT e.choice FROM ledger.exercised_events e WHERE NOT EXISTS (
		SELECT FROM ledger.choices c WHERE c.choice = e.choice AND c.consuming = e.consuming AND c.of_id = coalesce(e.interface_id, e.template_id))`))
	require.Empty(t, texts(t, database, `SELECT DISTINCT key FROM ledger.created_events e CROSS JOIN jsonb_object_keys(payload) key WHERE NOT EXISTS (
		SELECT FROM ledger.fields f WHERE f.part = 'payload' AND f.path = key AND f.package_name = e.package_name
			AND f.module_name = e.module_name AND f.entity_name = e.entity_name)`))
	require.Equal(t, []string{
		"closesAt Optional of Timestamp since 1.10.0", "limit Optional of Numeric 10 since 1.9.0", "mandates List of Record Bank.Account:Mandate since 1.9.0",
		"mandates[].holder Party since 1.9.0", "mandates[].note Text since 1.9.0", "meta Record Bank.Api.HoldingV1:Metadata since 1.9.0",
		"meta.values TextMap of Text since 1.9.0", "nickname Optional of Text since 1.9.0", "number Text since 1.9.0", "opened Date since 1.9.0",
		"owner Party since 1.9.0", "status Enum Bank.Account:Status since 1.9.0",
	}, texts(t, database, `SELECT concat_ws(' ', path, type, 'since', since_version) FROM ledger.fields
		WHERE package_name = 'bank' AND entity_name = 'Account' AND part = 'payload' ORDER BY path COLLATE "C"`))
	require.Equal(t, []string{"Splice.Api.Token.HoldingV1:Holding"}, texts(t, database,
		"SELECT module_name || ':' || entity_name FROM ledger.interfaces WHERE package_name = 'splice-api-token-holding-v1'"))
	require.Equal(t, []string{"t t"}, texts(t, database, `SELECT DISTINCT concat_ws(' ', in_events, namespace IS NOT NULL)
		FROM ledger.parties WHERE party IN (SELECT unnest(signatories) FROM ledger.created_events)`))

	analyst := reader(t, database)
	examples := statements(section(t, "../../docs/types.md", "\n## What there is\n", "\n## Typed views"))
	require.Len(t, examples, 5)
	for _, query := range examples {
		rows, err := analyst.Query(t.Context(), query)
		require.NoError(t, err, query)
		n := 0
		for rows.Next() {
			n++
		}
		require.NoError(t, rows.Err(), query)
		require.Equal(t, strings.Contains(query, "types <> 'known'"), n == 0, query)
	}

	cfg := VerifyConfig{Database: config.Database{DatabaseURL: database}, Sources: config.Sources{LedgerURL: server}}
	verify := func(repair bool) (found []string) {
		cfg.Repair = repair
		_, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { found = append(found, d.Relation) })
		require.NoError(t, err)
		return found
	}
	require.Empty(t, verify(false))
	pool := open(t, database)
	for relation, damage := range map[string]string{
		"package_contents":    "UPDATE indexer.package_contents SET content = content || '\\x00' WHERE package_name = 'registry'",
		"package_fields":      "UPDATE indexer.package_fields SET type = 'Text' WHERE path = 'limit' AND part = 'payload'",
		"package_choices":     "DELETE FROM indexer.package_choices WHERE choice = 'Amulet_Expire'",
		"package_definitions": "INSERT INTO indexer.package_definitions SELECT package_id, 'New', entity_name, is_interface, has_key, interfaces FROM indexer.package_definitions WHERE entity_name = 'Offer'",
	} {
		_, err := pool.Exec(t.Context(), damage)
		require.NoError(t, err)
		found := verify(false)
		require.NotEmpty(t, found, relation)
		for _, f := range found {
			require.Equal(t, relation, f)
		}
		require.Equal(t, found, verify(true))
		require.Empty(t, verify(false), relation)
	}
	require.Empty(t, texts(t, database, "SELECT package_id FROM indexer.package_contents WHERE package_name = 'registry'"), "what was damaged is read again")
}

// A package that can't be had is said once, counted, and neither the stream nor other packages wait for it.
func TestPackagesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 62})
	l.Grow(200)
	lost := ""
	for _, p := range l.Packages() {
		if p.Name == "splice-api-token-holding-v1" {
			lost = p.ID
		}
	}
	database, _ := withTypes(t, l, sandbox.ServerOptions{Fault: func(r *http.Request) *sandbox.Fault {
		if r.URL.Path == "/v2/packages/"+lost {
			return &sandbox.Fault{Status: 200, ContentType: "application/octet-stream", Body: "x"}
		}
		return nil
	}}, effects(), "EXISTS (SELECT FROM ledger.packages WHERE types = 'missing') AND (SELECT count(*) FROM ledger.templates) > 10 "+
		"AND NOT EXISTS (SELECT FROM indexer.package_contents WHERE NOT needs <@ ARRAY['"+lost+"'])")
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects, Interfaces: sandbox.InterfaceNames()}, l.End()), relations(t, database)))
	require.Contains(t, texts(t, database, "SELECT types_failure FROM ledger.packages WHERE package_id = $1", lost)[0], "its 1 bytes have the hash")
	require.Equal(t, []string{"1 t"}, texts(t, database, "SELECT concat_ws(' ', tries, next_at > now() + interval '50 min') FROM indexer.package_tries"))
	require.Contains(t, texts(t, database, "SELECT coalesce(types, '-') FROM ledger.packages WHERE package_name = 'splice-amulet'"), "incomplete")
	require.Equal(t, []string{"known"}, texts(t, database, "SELECT types FROM ledger.packages WHERE package_name = 'registry'"))
}
