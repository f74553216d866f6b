package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

const (
	recordedEnd    = 519 // of the ledger
	recordedActive = 320 // contracts there
)

// recordedLedger is what a real participant showed, to be served once more.
func recordedLedger(t *testing.T) *sandbox.Replay {
	t.Helper()
	var exchanges []sandbox.Exchange
	for _, e := range recorded.Exchanges(t) {
		exchanges = append(exchanges, sandbox.Exchange(e))
	}
	r, err := sandbox.ReplayExchanges(exchanges, recorded.Packages(t))
	require.NoError(t, err)
	return r
}

// listsOnly is a fault that leaves out the pages of updates and of snapshots.
func listsOnly(r *http.Request) *sandbox.Fault {
	if strings.HasSuffix(r.URL.Path, "-page") {
		return &sandbox.Fault{Status: http.StatusNotFound, Body: `{"errors":["unknown"],"status":404}`}
	}
	return nil
}

// recordedScope is what was asked of the participant in a shape.
func recordedScope(shape string) config.Scope {
	scope := defaultScope()
	scope.Shape = shape
	if shape == "ledger-effects" {
		scope.Interfaces, scope.Blobs = []string{"#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"}, true
	}
	return scope
}

// What a real participant showed is indexed whole, by pages and by lists, each in a shape; each update can be rebuilt,
// and comparing finds nothing. A snapshot, read by the other one of pages and the continuation tokens of lists, gives
// the contracts that its updates leave active.
func TestRecordedLedger(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	for shape, c := range map[string]struct {
		updates  int
		path     string // of the snapshot
		updated  func(*http.Request) *sandbox.Fault
		snapshot func(*http.Request) *sandbox.Fault
	}{
		"acs-delta":      {109, "GET /v2/state/active-contracts-page", listsOnly, nil},
		"ledger-effects": {112, "POST /v2/state/active-contracts", nil, listsOnly},
	} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			l, scope := recordedLedger(t), recordedScope(shape)
			options := sandbox.ServerOptions{Version: recorded.Release, Fault: c.updated}
			var s served
			whole := s.index(t, l, options, scope, nil)
			require.Len(t, s.updates, c.updates)
			s.requireRebuilt(t, whole)
			require.Equal(t, recordedActive, count(t, whole, "ledger.active_contracts"))
			result := requireVerified(t, whole, serve(t, l, options))
			require.Empty(t, result.Notes)
			require.EqualValues(t, c.updates, result.Updates.Updates)
			require.EqualValues(t, recordedActive, result.Updates.Active)

			var requests requestCounter
			options.Fault = func(r *http.Request) *sandbox.Fault {
				requests.note(r)
				if c.snapshot == nil {
					return nil
				}
				return c.snapshot(r)
			}
			var snapshot served
			database := snapshot.backfill(t, l, options, scope, nil)
			require.Len(t, snapshot.entries, recordedActive)
			require.GreaterOrEqual(t, requests.of(c.path), 2, "more than is asked to find it")
			snapshot.requireRebuilt(t, database)
			server := serve(t, l, options)
			require.NoError(t, RunIndexer(t.Context(), indexerFor(database, server, scope), testLogger(t)))
			require.EqualValues(t, recordedActive, requireVerified(t, database, server).Updates.Carried)
			const active = `SELECT jsonb_build_array(contract_id, synchronizer_id, template_id, payload, signatories, observers,
				created_at)::text FROM ledger.active_contracts ORDER BY contract_id`
			require.Equal(t, texts(t, whole, active), texts(t, database, active))
		})
	}
}

// Beside the updates of a real participant, the contracts that are older are looked up, its vetted packages are
// followed, and the types of what is on the ledger are read from them.
func TestRecordedContractsAndPackages(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scope := recordedLedger(t), recordedScope("acs-delta")
	database := throwaway.Migrated(t, migrate)
	server := serve(t, l, sandbox.ServerOptions{Version: recorded.Release})
	cfg := indexerFor(database, server, scope)
	const start = 259 // between contracts with keys and what archived them
	cfg.Start, cfg.PackagesInterval, cfg.LookupRate = fmt.Sprint(start), often, fast
	daemon := startIndexer(t, cfg)
	waitFor(t, database, recordedEnd)
	waitUntil(t, database, nothingWanted)
	waitUntil(t, database, "EXISTS (SELECT FROM ledger.vetted_packages)")
	for id := range recorded.Packages(t) {
		waitUntil(t, database, "EXISTS (SELECT FROM indexer.package_contents WHERE package_id = '"+id+"')")
	}
	require.NoError(t, daemon.finish())

	wanted := recordedLookups(t, start)
	got := lookups(t, database)
	require.Len(t, wanted, 2)
	require.Len(t, got, len(wanted))
	for id, event := range wanted {
		require.Equal(t, "found", got[id]["status"])
		sent := map[string]json.RawMessage{"payload": event.CreateArgument, "contract_key": event.ContractKey}
		for name, value := range sent {
			stored, err := json.Marshal(got[id][name])
			require.NoError(t, err)
			require.JSONEq(t, string(value), string(stored), name)
			require.NotEqual(t, "null", string(stored), name)
		}
	}

	require.EqualValues(t, len(wanted), requireVerified(t, database, server).Updates.Lookups)

	views := viewsOf(database, "#allvals:AllVals:Everything", "#keyed:Keyed:Acct")
	reports, err := CreateViews(t.Context(), views, testLogger(t))
	require.NoError(t, err)
	for _, r := range reports {
		require.Empty(t, r.Failure)
	}
	for view, of := range map[string]string{"allvals_everything": "Everything", "keyed_acct": "Acct"} {
		rows := count(t, database, "ledger.created_events WHERE entity_name = '"+of+"'")
		require.Positive(t, rows)
		require.Equal(t, rows, count(t, database, "typed."+view))
	}
	compared := compareWithValues(t, database, reports)
	kinds := []string{"boolean", "bigint", "numeric(38,10)", "date", "timestamp with time zone", "text", "jsonb"}
	for _, kind := range kinds {
		require.Greater(t, compared[kind], 20, kind)
	}

	var want []string
	for _, e := range recorded.Exchanges(t) {
		if !strings.Contains(e.Path, "package-vetting") || !strings.Contains(e.Request, "participantIds") {
			continue
		}
		var page struct {
			VettedPackages []struct {
				SynchronizerID string
				TopologySerial int
				Packages       []struct{ PackageID, PackageName, PackageVersion string }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(e.Answer), &page))
		for _, v := range page.VettedPackages {
			for _, p := range v.Packages {
				want = append(want, fmt.Sprintf("%s %d %s %s %s - -",
					v.SynchronizerID, v.TopologySerial, p.PackageID, p.PackageName, p.PackageVersion))
			}
		}
	}
	slices.Sort(want)
	require.NotEmpty(t, want)
	require.Equal(t, want, vettedRows(t, database))
}

// recordedCreation is what of a CreatedEvent is compared.
type recordedCreation struct {
	ContractID                  string
	CreateArgument, ContractKey json.RawMessage
}

// recordedLookups are the creations, at an offset or before it, of the contracts that are archived after it.
func recordedLookups(t *testing.T, after int64) map[string]recordedCreation {
	t.Helper()
	exchanges := recorded.Exchanges(t)
	long := slices.IndexFunc(exchanges, func(e recorded.Exchange) bool {
		return strings.Contains(e.Request, "ACS_DELTA") && len(e.Answer) > 1_000_000
	})
	var page struct {
		Updates []struct {
			Update struct {
				Transaction struct {
					Value struct {
						Offset int64
						Events []struct{ CreatedEvent, ArchivedEvent recordedCreation }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(exchanges[long].Answer), &page))
	created, wanted := map[string]recordedCreation{}, map[string]recordedCreation{}
	for _, u := range page.Updates {
		for _, e := range u.Update.Transaction.Value.Events {
			if u.Update.Transaction.Value.Offset <= after {
				created[e.CreatedEvent.ContractID] = e.CreatedEvent
			} else if c, before := created[e.ArchivedEvent.ContractID]; before && e.ArchivedEvent.ContractID != "" {
				wanted[c.ContractID] = c
			}
		}
	}
	return wanted
}
