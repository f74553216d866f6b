package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/check"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// What scopes name.
const (
	holdingInterface = "#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"
	amuletTemplate   = "#splice-amulet:Splice.Amulet:Amulet"
	lockedTemplate   = "#splice-amulet:Splice.Amulet:LockedAmulet"
)

// scopeChange is a change of what is read.
type scopeChange struct {
	shape       string
	before, now config.Contracts
}

// simulatedScope is a scope as the simulator has it.
func simulatedScope(s config.Scope) sandbox.Scope {
	return sandbox.Scope{Parties: s.Parties, Templates: s.Templates, Interfaces: s.Interfaces, Shape: map[string]string{
		"acs-delta": sandbox.ACSDelta, "ledger-effects": sandbox.LedgerEffects,
	}[s.Shape], Version: "3.5", NoTopology: !s.Topology}
}

// newScopeWorld is a ledger with a number of updates, and an empty database. Topology events are not read: the truth
// has those of all parties, whatever the scope.
func newScopeWorld(t *testing.T, seed uint64, updates int) *begunWorld {
	t.Helper()
	w := &begunWorld{ledger: sandbox.NewLedger(sandbox.Options{Seed: seed, ActiveShare: 0.4}), scope: defaultScope(), database: throwaway.Migrated(t, migrate)}
	w.ledger.Grow(updates)
	w.ledgerURL = serve(t, w.ledger, sandbox.ServerOptions{Version: "3.5", ListLimit: 15})
	w.scope.Topology = false
	return w
}

// change indexes on in the world's scope, as `indexer run --change-scope` does.
func (w *begunWorld) change(t *testing.T) error {
	t.Helper()
	run := indexerFor(w.database, w.ledgerURL, w.scope)
	run.ChangeScope, run.VerifyRate = true, 100_000
	return RunIndexer(t.Context(), run, testLogger(t))
}

// inForce is a scope, and the offset up to which it was in force.
type inForce struct {
	scope sandbox.Scope
	upTo  int64
}

// scopesInForce are the scopes that were in force one after the other, the last one up to the end of what is indexed.
type scopesInForce []inForce

// at is the scope that was in force at an offset.
func (list scopesInForce) at(offset int64) sandbox.Scope {
	i := slices.IndexFunc(list, func(s inForce) bool { return offset < s.upTo })
	return list[(i+len(list))%len(list)].scope
}

// happened is what a ledger says of each scope: what happened above a floor while it was in force, and what is active
// at an offset.
func (list scopesInForce) happened(l *sandbox.Ledger, floor, end int64) map[string][]sandbox.Row {
	want, from := map[string][]sandbox.Row{}, floor
	for _, s := range list {
		for relation, rows := range l.Truth(s.scope, end) {
			want[relation] = append(want[relation], slices.DeleteFunc(rows, func(r sandbox.Row) bool {
				if relation == "active_contracts" {
					return false
				}
				offset := wholeOf(r["ledger_offset"])
				return offset <= from || offset > s.upTo
			})...)
		}
		from = max(from, s.upTo)
	}
	return want
}

// leaveEvents leaves out of rows what is active, and what a snapshot or a resync took in, which is no event.
func leaveEvents(rowsOf map[string][]sandbox.Row) {
	delete(rowsOf, "active_contracts")
	for relation, rows := range rowsOf {
		rowsOf[relation] = slices.DeleteFunc(rows, func(r sandbox.Row) bool { return r["update_id"] == nil })
	}
}

// requireScopes compares a database whose scope was changed: what happened is that of the scope that was in force, as
// is what was active at each offset, and nothing else.
func (w *begunWorld) requireScopes(t *testing.T, earlier ...inForce) {
	t.Helper()
	end := w.ledger.End()
	scopes := append(scopesInForce(earlier), inForce{w.truth, end})
	want, have := scopes.happened(w.ledger, 0, end), relations(t, w.database)
	leaveEvents(want)
	leaveEvents(have)
	require.Empty(t, sandbox.Diff(want, have))
	requireActive := func(offset int64) {
		t.Helper()
		require.Equal(t, withoutBegin(trueActiveAt(w.ledger, scopes.at(offset), offset)), withoutBegin(activeAt(t, w.database, offset)), "offset %d", offset)
	}
	for i := 0; i < w.ledger.Len(); i += max(41, w.ledger.Len()/10) {
		requireActive(w.ledger.Offset(i))
	}
	for _, s := range scopes { // at the last offset before a change, and there
		requireActive(s.upTo - 1)
		requireActive(s.upTo)
	}
	var now []string
	for _, r := range w.ledger.Truth(w.truth, end)["active_contracts"] {
		if wholeOf(r["reassignment_counter"]) > 0 { // where a contract that has moved was created may not be known
			continue
		}
		now = append(now, fmt.Sprint(r["contract_id"], " ", r["synchronizer_id"], " ", r["created_offset"]))
	}
	slices.Sort(now)
	require.Equal(t, now, texts(t, w.database, `SELECT contract_id || ' ' || synchronizer_id || ' ' || created_offset AS held
		FROM ledger.active_contracts WHERE reassignment_counter = 0 ORDER BY (contract_id || ' ' || synchronizer_id || ' ' || created_offset) COLLATE "C"`))
	w.requireViews(t, end)
}

// requireViews compares the interface views that are stored of what is active with those of the scope in force. A
// payload that it shows is stored; one that it does not show any more may be.
func (w *begunWorld) requireViews(t *testing.T, end int64) {
	t.Helper()
	truth, active, payloads, views := w.ledger.Truth(w.truth, end), map[any]bool{}, []string{}, []string{}
	for _, r := range truth["active_contracts"] {
		active[r["contract_id"]] = true
		if r["payload"] != nil {
			payloads = append(payloads, r["contract_id"].(string))
		}
	}
	for _, r := range truth["interface_views"] {
		if active[r["contract_id"]] {
			views = append(views, fmt.Sprint(r["contract_id"], " ", r["interface_id"], " ", r["status_code"]))
		}
	}
	slices.Sort(views)
	require.Equal(t, slices.Compact(views), texts(t, w.database, `SELECT x.held FROM (
		SELECT DISTINCT v.contract_id || ' ' || v.interface_id || ' ' || v.status_code AS held FROM ledger.interface_views v
		JOIN ledger.active_events a ON a.ledger_offset = v.ledger_offset AND a.node_id = v.node_id) x ORDER BY x.held COLLATE "C"`))
	require.Subset(t, texts(t, w.database, "SELECT contract_id FROM ledger.active_contracts WHERE payload IS NOT NULL"), payloads)
}

func wholeOf(value any) int64 {
	n, _ := value.(json.Number).Int64()
	return n
}

// narrowings are scopes of which something is taken away.
func narrowings(parties []string) map[string]scopeChange {
	return map[string]scopeChange{
		"any party":           {"ledger-effects", config.Contracts{}, config.Contracts{Parties: parties[1:3]}},
		"a template":          {"ledger-effects", config.Contracts{Templates: []string{amuletTemplate, lockedTemplate}}, config.Contracts{Templates: []string{amuletTemplate}}},
		"all other templates": {"acs-delta", config.Contracts{Interfaces: []string{holdingInterface}}, config.Contracts{Templates: []string{lockedTemplate}, Interfaces: []string{holdingInterface}}},
		"an interface":        {"acs-delta", config.Contracts{Templates: []string{lockedTemplate}, Interfaces: sandbox.InterfaceNames()}, config.Contracts{Templates: []string{lockedTemplate}, Interfaces: sandbox.InterfaceNames()[:1]}},
	}
}

// Something is taken away from a scope, and added again: what was stored of it stays as history, what is active is the
// ledger's each time, and verification finds no difference.
func TestTheScopeIsChanged(t *testing.T) {
	t.Parallel()
	parties := sandbox.NewLedger(sandbox.Options{Seed: 94, ActiveShare: 0.4}).Parties()
	for name, c := range narrowings(parties) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			w := newScopeWorld(t, 94, 160)
			w.scope.Shape, w.scope.Contracts = c.shape, c.before
			w.index(t, true)
			before := inForce{simulatedScope(w.scope), w.ledger.End()}
			w.scope.Contracts = c.now
			w.truth = simulatedScope(w.scope)
			w.ledger.Grow(60)
			require.NoError(t, w.change(t))
			require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT ledger.is_complete(0, ledger.latest_offset())::text"))
			w.requireScopes(t, before)
			requireVerified(t, w.database, w.ledgerURL)
			narrowed := inForce{w.truth, w.ledger.End()}
			w.scope.Contracts = c.before
			w.truth = before.scope
			w.ledger.Grow(60)
			require.NoError(t, w.change(t))
			require.Equal(t, []string{"false"}, texts(t, w.database, "SELECT ledger.is_complete(0, ledger.latest_offset())::text"))
			w.requireScopes(t, before, narrowed)
			requireVerified(t, w.database, w.ledgerURL)
		})
	}
}

// What a party holds that was added to the scope is known from there on, and unknown before. Of a party that was read
// all the time it is known throughout.
func TestBalancesOfAPartyThatIsAdded(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	w := newScopeWorld(t, 57, 600)
	w.ledgerURL = serve(t, w.ledger, sandbox.ServerOptions{Version: "3.5", Parties: true})
	w.scope.Shape = "ledger-effects"
	parties := largest(w.ledger, simulatedScope(w.scope))[:2]
	stays, comes := parties[:1], parties[1:]
	w.scope.Parties = stays
	w.index(t, true)
	changed := w.ledger.End()
	w.scope.Parties = parties
	w.ledger.Grow(200)
	require.NoError(t, w.change(t))
	waitUntil(t, w.database, "(SELECT count(*) FROM ledger.hosted_parties WHERE hosted) = 2")

	const held = `SELECT DISTINCT (ledger.balance_at_offset(p.owner, p.instrument, $2, p.instrument_admin) IS NOT DISTINCT FROM coalesce(
			(SELECT sum(h.amount) FROM ledger.holdings_at($2) h WHERE h.owner = p.owner AND h.instrument = p.instrument
				AND h.instrument_admin = p.instrument_admin AND h.admin_signed), 0))::text
		FROM indexer.positions p WHERE p.owner = ANY ($1) AND p.admin_signed`
	const unknown = `SELECT DISTINCT (ledger.balance_at_offset(p.owner, p.instrument, $2, p.instrument_admin) IS NULL)::text
		FROM indexer.positions p WHERE p.owner = ANY ($1) AND p.admin_signed AND p.instrument_admin <> ALL ($3)`
	for _, offset := range []int64{changed, w.ledger.End()} {
		require.Equal(t, []string{"true"}, texts(t, w.database, held, parties, offset))
	}
	require.Equal(t, []string{"true"}, texts(t, w.database, held, stays, changed-1))
	require.Equal(t, []string{"true"}, texts(t, w.database, unknown, comes, changed-1, stays))

	const statement = `SELECT DISTINCT (s.balance IS NOT NULL)::text FROM ledger.party_statement($1, $2, ledger.latest_offset()) s
		WHERE s.instrument_admin <> ALL ($3)`
	const last = `SELECT DISTINCT (s.balance = ledger.balance_at_offset($1, s.instrument, ledger.latest_offset(), s.instrument_admin))::text FROM (
			SELECT DISTINCT ON (s.instrument, s.instrument_admin) s.* FROM ledger.party_statement($1, $2, ledger.latest_offset()) s
			ORDER BY s.instrument, s.instrument_admin, s.ledger_offset DESC, s.node_id DESC) s`
	require.Equal(t, []string{"false"}, texts(t, w.database, statement, comes[0], int64(0), stays))
	require.Equal(t, []string{"true"}, texts(t, w.database, last, comes[0], changed))
	require.Equal(t, []string{"true"}, texts(t, w.database, last, stays[0], int64(0)))
}

// largest returns the parties of a ledger that see most of what is active, the first one first.
func largest(l *sandbox.Ledger, scope sandbox.Scope) []string {
	active := map[string]int{}
	parties := l.Parties()
	for _, party := range parties {
		scope.Parties = []string{party}
		active[party] = len(l.Truth(scope, l.End())["active_contracts"])
	}
	slices.SortStableFunc(parties, func(a, b string) int { return active[b] - active[a] })
	return parties
}

// A party with many contracts is added while the ledger grows, and is taken away again: each time the active
// contracts are the ledger's. What was in the scope before is not read again where something is added only.
func TestAPartyComesAndGoesBesideTheDaemon(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "indexes many contracts several times")
	w := &begunWorld{ledger: sandbox.NewLedger(sandbox.Options{Seed: 95, ActiveShare: 0.9}), scope: defaultScope(), database: throwaway.Migrated(t, migrate)}
	w.ledger.Grow(1500)
	participant := sandbox.NewServer(w.ledger, sandbox.ServerOptions{Version: "3.5"})
	var mu sync.Mutex
	asked := map[string]bool{} // the parties whose active contracts were asked for
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "active-contracts") {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			r.Body = io.NopCloser(bytes.NewReader(body))
			mu.Lock()
			for _, party := range w.ledger.Parties() {
				// At 0, where nothing is active, it is asked whether the participant has the operation.
				atEnd := !bytes.Contains(body, []byte(`"activeAtOffset":0,`))
				asked[party] = asked[party] || atEnd && bytes.Contains(body, []byte(party))
			}
			mu.Unlock()
		}
		participant.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.ledgerURL = server.URL
	w.scope.Topology = false
	parties := largest(w.ledger, simulatedScope(w.scope))
	one, both := parties[len(parties)-1:], []string{parties[0], parties[len(parties)-1]}
	w.scope.Parties = one
	w.index(t, true)
	var scopes []inForce
	for _, now := range [][]string{both, one, both} {
		scopes = append(scopes, inForce{simulatedScope(w.scope), watermarkOf(t, w.database)})
		w.scope.Parties = now
		w.truth = simulatedScope(w.scope)
		run := indexerFor(w.database, w.ledgerURL, w.scope)
		run.ChangeScope = true
		daemon := startIndexer(t, run)
		for range 4 {
			w.ledger.Grow(25)
			time.Sleep(20 * time.Millisecond)
		}
		waitUntil(t, w.database, fmt.Sprint("ledger.latest_offset() >= ", w.ledger.End()))
		require.NoError(t, daemon.finish())
		w.requireScopes(t, scopes...)
		mu.Lock()
		require.Equal(t, []bool{len(now) == 2, len(now) == 1}, []bool{asked[both[0]], asked[one[0]]})
		clear(asked)
		mu.Unlock()
	}
	require.Greater(t, len(w.ledger.Truth(w.truth, w.ledger.End())["active_contracts"]), 500)
	requireVerified(t, w.database, w.ledgerURL)
}

// After a change of the scope the last stored update is of the earlier one, in which `indexer check` has to look for it.
func TestACheckAfterTheScopeWasChanged(t *testing.T) {
	t.Parallel()
	for _, parties := range [][2]int{{1, 2}, {2, 1}} {
		w := newScopeWorld(t, 94, 160)
		all := w.ledger.Parties()[1:]
		w.scope.Shape, w.scope.Parties = "ledger-effects", all[:parties[0]]
		w.index(t, true)
		w.scope.Parties = all[:parties[1]]
		require.NoError(t, w.change(t))
		report := check.Run(t.Context(), check.Config{LedgerURL: w.ledgerURL, DatabaseURL: w.database, Scope: w.scope.Domain(), Timeout: time.Minute})
		i := slices.IndexFunc(report.Findings, func(f check.Finding) bool { return f.Topic == "watermark" })
		require.Equal(t, check.OK, report.Findings[i].Level, "%v", report.Findings[i])
	}
}

// Without the rights of a party that was taken away the daemon goes on. Verifying says what it needs them for, and does
// without when what was stored of that party is pruned.
func TestRightsOfAPartyThatWasTakenAway(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	w := newScopeWorld(t, 94, 80)
	parties := w.ledger.Parties()[1:3]
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: w.ledger.ParticipantID()})
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAs(parties[0]), sandbox.CanReadAs(parties[1])}})
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(authority.Token("reader")), 0o600))
	w.ledgerURL = serve(t, w.ledger, sandbox.ServerOptions{Version: "3.5", ListLimit: 15, Authority: authority})
	read := func(change bool) {
		t.Helper()
		cfg := indexerFor(w.database, w.ledgerURL, w.scope)
		cfg.LedgerAccess.TokenFile, cfg.ChangeScope = token, change
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	}
	w.scope.Parties = parties
	read(false)
	w.ledger.Grow(30)
	w.scope.Parties = parties[:1]
	read(true)
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAs(parties[0])}})
	w.ledger.Grow(30)
	read(false)

	v := VerifyConfig{Database: config.Database{DatabaseURL: w.database}, Sources: config.Sources{LedgerURL: w.ledgerURL}, Verify: config.Verify{All: true}}
	v.LedgerAccess.TokenFile = token
	verified := func() (VerifyResult, error) {
		return RunVerify(t.Context(), v, testLogger(t), func(d audit.Difference) { t.Error(d) })
	}
	_, err := verified()
	requireProblem(t, err, "the scope of then", "lacks CanReadAs for party "+parties[1], "the earlier scope", "`indexer prune`")
	prune(t, w.database, offsetAfter(w.ledger, w.ledger.Offset(85))+1)
	result, err := verified()
	require.NoError(t, err)
	require.Contains(t, strings.Join(result.Notes, "; "), "the scope was changed before it", "what their creations say is not compared")
}

// knowing is a source that knows some parties.
type knowing struct {
	daemonSource
	hosted map[string]bool
}

func (k knowing) Hosted(context.Context, []string) (map[string]bool, error) { return k.hosted, nil }

// A party that the participant does not know is not added; one that it does not host is, and one that it does not know
// any more can stay.
func TestUnknownPartiesAreNotAdded(t *testing.T) {
	t.Parallel()
	u := &updates{indexer: &indexer{logger: testLogger(t)}, origin: knowing{hosted: map[string]bool{"alice": true, "bob": false}}}
	scope := func(parties ...string) ledger.Scope { return ledger.Scope{Parties: parties} }
	require.NoError(t, u.refuseUnknown(t.Context(), scope("gone"), scope("gone", "alice", "bob")))
	require.NoError(t, u.refuseUnknown(t.Context(), scope("alice"), scope()))
	var problem *ledger.Problem
	require.ErrorAs(t, u.refuseUnknown(t.Context(), scope("alice"), scope("alice", "bob", "nobody")), &problem)
	require.Contains(t, problem.What, "the participant does not know nobody")
	require.Contains(t, problem.Do, "correct --parties")
}
