package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// lookedUp is what looked_up_contracts must have of a contract, by column.
type lookedUp map[string]any

const lookedUpColumns = `jsonb_build_object('status', status, 'package_id', package_id, 'package_name', package_name,
	'module_name', module_name, 'entity_name', entity_name, 'payload', payload, 'contract_key', contract_key,
	'contract_key_hash', contract_key_hash, 'signatories', signatories, 'observers', observers, 'witness_parties', witness_parties,
	'created_at', to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))`

func lookups(t *testing.T, databaseURL string) map[string]lookedUp {
	t.Helper()
	conn := open(t, databaseURL)
	rows, err := conn.Query(t.Context(), "SELECT contract_id, "+lookedUpColumns+" FROM ledger.looked_up_contracts")
	require.NoError(t, err)
	got := map[string]lookedUp{}
	for rows.Next() {
		var id string
		var text []byte
		require.NoError(t, rows.Scan(&id, &text))
		row := lookedUp{}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&row))
		got[id] = row
	}
	require.NoError(t, rows.Err())
	return got
}

func open(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// truthOfLookups is what must be looked up where indexing begins after an offset, and what must be found: all that was
// archived or exercised by the end and is not known to be merely witnessed, and whose creation does not lie behind it.
func truthOfLookups(t *testing.T, l *sandbox.Ledger, scope sandbox.Scope, strict bool, after int64) map[string]lookedUp {
	t.Helper()
	truth := l.Truth(scope, l.End())
	witnessed := 0
	creation, seen, want := map[string]sandbox.Row{}, map[string]bool{}, map[string]lookedUp{}
	for _, row := range truth["created_events"] {
		id := row["contract_id"].(string)
		if creation[id] == nil {
			creation[id] = row
		}
		seen[id] = seen[id] || int64Of(t, row["ledger_offset"]) > after
	}
	for _, row := range slices.Concat(truth["archived_events"], truth["exercised_events"]) {
		id := row["contract_id"].(string)
		switch {
		case seen[id] || int64Of(t, row["ledger_offset"]) <= after:
			continue
		case row["acs_delta"] == false:
			witnessed++
			continue
		case scope.Shape == sandbox.LedgerEffects && row["acs_delta"] == nil:
			continue // an archival, which is shown as an exercise too, and that tells whether it was merely witnessed
		}
		created := creation[id]
		require.NotNil(t, created, "a contract without a creation")
		want[id] = lookedUp{"status": "found"}
		for _, column := range []string{
			"package_id", "package_name", "module_name", "entity_name", "payload", "contract_key", "contract_key_hash", "signatories",
			"observers", "created_at",
		} {
			want[id][column] = created[column]
		}
		witnesses := []any{}
		for _, party := range slices.Concat(created["signatories"].([]any), created["observers"].([]any)) {
			// By interface.md they are querying parties; real servers name all where nobody in particular asks.
			if len(scope.Parties) == 0 && !strict || slices.Contains(scope.Parties, party.(string)) {
				witnesses = append(witnesses, party)
			}
		}
		want[id]["witness_parties"] = witnesses
	}
	if scope.Shape == sandbox.LedgerEffects {
		require.Positive(t, witnessed, "nothing was merely witnessed")
	}
	return want
}

func requireLookedUp(t *testing.T, want, got map[string]lookedUp) {
	t.Helper()
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for id := range want {
		require.ElementsMatch(t, want[id]["witness_parties"], got[id]["witness_parties"]) // their order means nothing
		got[id]["witness_parties"] = want[id]["witness_parties"]
		require.Equal(t, want[id], got[id], id)
	}
}

// waitUntil waits until a query is true.
func waitUntil(t *testing.T, databaseURL, query string) {
	t.Helper()
	conn := open(t, databaseURL)
	eventually(t, query, func() (holds bool) {
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT "+query).Scan(&holds))
		return holds
	})
}

const (
	nothingWanted = "NOT EXISTS (SELECT FROM indexer.lookups WHERE status = 'wanted')"
	lookupPath    = "/v2/contracts/contract-by-id"
	fast          = 1000 // look-ups per second
)

// middle is a ledger, and the offset of an update in the middle of it.
func middle(seed uint64) (l *sandbox.Ledger, at int64) {
	l = sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(200)
	return l, l.Offset(100)
}

// requestCounter counts the requests of a path, by what is asked for.
type requestCounter struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *requestCounter) note(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[r.Method+" "+r.URL.Path]++
}

func (c *requestCounter) of(operation string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[operation]
}

// Started in the middle, the contracts that were created before are looked up, and nothing else changes. What one run
// wants and does not ask for, the next one asks for, and no contract is asked for twice.
func TestLookupsOfWhatIsOlder(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon several times")
	for name, c := range map[string]struct {
		options sandbox.ServerOptions
		shape   string
		parties int // 0: any party
	}{
		"3.4":                  {sandbox.ServerOptions{Version: "3.4"}, "acs-delta", 0},
		"3.5, some parties":    {sandbox.ServerOptions{Version: "3.5"}, "ledger-effects", 3},
		"the interface's only": {sandbox.ServerOptions{StrictInterface: true}, "ledger-effects", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			options := c.options
			l, at := middle(41)
			scope := defaultScope()
			scope.Shape, scope.Parties = c.shape, l.Parties()[:c.parties]
			truth := sandbox.Scope{Shape: sandbox.ACSDelta, Parties: scope.Parties, Version: options.Version}
			if c.shape == "ledger-effects" {
				truth.Shape = sandbox.LedgerEffects
			}
			var requests requestCounter
			options.Fault = func(r *http.Request) *sandbox.Fault { requests.note(r); return nil }
			server := serve(t, l, options)
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, server, scope)
			cfg.Start = strconv.FormatInt(at, 10)
			require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
			require.Empty(t, lookups(t, database))
			before := relations(t, database)

			want := truthOfLookups(t, l, truth, options.StrictInterface, at)
			require.NotEmpty(t, want)
			cfg.LookupRate = fast
			daemon := startIndexer(t, cfg)
			waitUntil(t, database, nothingWanted)
			require.NoError(t, daemon.finish())
			requireLookedUp(t, want, lookups(t, database))
			require.Equal(t, before, relations(t, database))
			require.Equal(t, len(want), requests.of("POST "+lookupPath))

			l.Grow(50)
			daemon = startIndexer(t, cfg)
			waitFor(t, database, lastUpdate(l))
			waitUntil(t, database, nothingWanted)
			require.NoError(t, daemon.finish())
			want = truthOfLookups(t, l, truth, options.StrictInterface, at)
			requireLookedUp(t, want, lookups(t, database))
			require.Equal(t, len(want), requests.of("POST "+lookupPath), "asked twice")
		})
	}
}

// Whatever the server makes of look-ups: the stream continues, the queue stays, and a stop is a stop.
func TestLookupsNeverHoldUpTheStream(t *testing.T) {
	t.Parallel()
	l, at := middle(42)
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.Start = strconv.FormatInt(at, 10)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	cfg.LookupRate = fast
	anyContract := regexp.MustCompile(`"contractId":"[^"]*"`)
	for name, c := range map[string]struct {
		fault *sandbox.Fault
		says  string
	}{
		"errors":           {&sandbox.Fault{Status: 500, Body: "no"}, "HTTP status 500"},
		"never":            {&sandbox.Fault{Stall: time.Hour}, ""},
		"refused":          {&sandbox.Fault{Status: 403, ContentType: "application/json", Body: `{"code":"NA"}`}, "what to do: grant the user CanReadAsAnyParty"},
		"another contract": {nil, `of another contract, "00ff"`},
	} {
		var requests requestCounter
		bad := sandbox.ServerOptions{Fault: func(r *http.Request) *sandbox.Fault {
			requests.note(r)
			if r.URL.Path != lookupPath || c.fault == nil {
				return nil
			}
			_, _ = io.Copy(io.Discard, r.Body) // else a client that leaves is not noticed
			return c.fault
		}}
		if c.fault == nil {
			bad.Rewrite = func(e sandbox.Element) []byte {
				if e.Path == lookupPath {
					return anyContract.ReplaceAll(e.Raw, []byte(`"contractId":"00ff"`))
				}
				return e.Raw
			}
		}
		cfg.LedgerURL, cfg.Timeout = serve(t, l, bad), 0
		daemon := startIndexer(t, cfg)
		eventually(t, "a look-up", func() bool { return requests.of("POST "+lookupPath) > 0 })
		l.Grow(100)
		waitFor(t, database, lastUpdate(l))
		eventuallyIn(t, database, "the failure", "$1 = '' OR EXISTS (SELECT FROM indexer.tasks WHERE task = 'lookups' AND strpos(failure, $1) > 0)", c.says)
		require.NoError(t, daemon.finish(), name)

		l.Grow(20)
		cfg.Timeout = 5 * time.Second
		require.ErrorContains(t, RunIndexer(t.Context(), cfg, testLogger(t)), ": updates: task lookups has not done all", name)
		waitFor(t, database, lastUpdate(l))
		require.Empty(t, lookups(t, database), "given up: %s", name)
	}
	cfg.LedgerURL, cfg.Timeout = serve(t, l, sandbox.ServerOptions{}), 0
	daemon := startIndexer(t, cfg)
	waitUntil(t, database, nothingWanted)
	require.NoError(t, daemon.finish())
	truth := sandbox.Scope{Shape: sandbox.ACSDelta}
	requireLookedUp(t, truthOfLookups(t, l, truth, false, at), lookups(t, database))
	var updates int
	for _, row := range l.Truth(truth, l.End())["updates"] {
		if int64Of(t, row["ledger_offset"]) > at {
			updates++
		}
	}
	require.Equal(t, updates, count(t, database, "ledger.updates"))
}

// A contract that the server does not take for one is no reason to leave the others.
func TestOneContractThatIsRefused(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	for name, fault := range map[string]*sandbox.Fault{
		"as invalid":    {Status: 400, ContentType: "application/json", Body: `{"code":"INVALID_FIELD","errorCategory":8}`},
		"with too much": {Status: 200, ContentType: "application/json", Body: `{"createdEvent":` + strings.Repeat(" ", 64<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l, at := middle(44)
			var once sync.Once
			var first []byte
			server := serve(t, l, sandbox.ServerOptions{Fault: func(r *http.Request) *sandbox.Fault {
				if r.URL.Path != lookupPath {
					return nil
				}
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				once.Do(func() { first = body })
				if bytes.Equal(body, first) {
					return fault
				}
				return nil
			}})
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, server, defaultScope())
			cfg.Start = strconv.FormatInt(at, 10)
			require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
			cfg.LookupRate = fast
			daemon := startIndexer(t, cfg)
			waitUntil(t, database, "count(*) = 1 FROM indexer.lookups WHERE status = 'wanted'")
			require.NoError(t, daemon.finish())
			want := truthOfLookups(t, l, sandbox.Scope{Shape: sandbox.ACSDelta}, false, at)
			require.Len(t, lookups(t, database), len(want)-1)
		})
	}
}
