package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// limitedRole makes a role, lets it read, and returns it, and the database's URL with it.
func limitedRole(t *testing.T, database, suffix string, grant store.Reader) (role, as string) {
	t.Helper()
	owner := open(t, database)
	role = texts(t, database, "SELECT current_database()::text")[0] + suffix
	_, err := owner.Exec(t.Context(), "CREATE ROLE "+pgx.Identifier{role}.Sanitize()+" LOGIN PASSWORD 'secret-of-a-test'")
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, database)
		require.NoError(t, err)
		defer conn.Close(ctx)
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			_, err := conn.Exec(ctx, statement+pgx.Identifier{role}.Sanitize())
			require.NoError(t, err)
		}
	})
	grant.Role = role
	db, err := store.Open(store.Config{URL: database})
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Grant(t.Context(), grant)
	require.NoError(t, err)
	u, err := url.Parse(database)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "secret-of-a-test")
	q := u.Query()
	q.Del("user")
	q.Del("password")
	u.RawQuery = q.Encode()
	return role, u.String()
}

// seen is what parties may see of the truth, by the rule that docs/access.md states: worked out here from the rows
// alone.
type seen struct {
	parties map[string]bool
	rows    map[string][]sandbox.Row
	events  map[string]bool // creations that are seen, by offset and node
	updates map[string]bool // by offset
}

func place(r sandbox.Row) string { return fmt.Sprint(r["ledger_offset"], "/", r["node_id"]) }

// any reports whether one of the parties is in one of a row's lists.
func (s *seen) any(r sandbox.Row, columns ...string) bool {
	for _, column := range columns {
		list, _ := r[column].([]any)
		for _, party := range list {
			if s.parties[party.(string)] {
				return true
			}
		}
	}
	return false
}

func (s *seen) keep(truth map[string][]sandbox.Row, relation string, may func(sandbox.Row) bool) {
	s.rows[relation] = nil
	for _, r := range truth[relation] {
		if may(r) {
			s.rows[relation] = append(s.rows[relation], r)
			s.updates[fmt.Sprint(r["ledger_offset"])] = true
		}
	}
}

func seenBy(truth map[string][]sandbox.Row, parties []string) *seen {
	s := &seen{parties: map[string]bool{}, rows: map[string][]sandbox.Row{}, events: map[string]bool{}, updates: map[string]bool{}}
	for _, party := range parties {
		s.parties[party] = true
	}
	s.keep(truth, "created_events", func(r sandbox.Row) bool {
		may := s.any(r, "signatories", "observers", "witness_parties")
		s.events[place(r)] = s.events[place(r)] || may
		return may
	})
	for _, relation := range sandbox.Relations() {
		if slices.Contains(names("updates created_events interface_views active_contracts"), relation) {
			continue
		}
		s.keep(truth, relation, func(r sandbox.Row) bool {
			party, _ := r["party_id"].(string)
			return s.any(r, "witness_parties") || s.parties[party]
		})
	}
	s.keep(truth, "interface_views", func(r sandbox.Row) bool { return s.events[place(r)] })
	updates := maps.Clone(s.updates)
	s.keep(truth, "updates", func(r sandbox.Row) bool { return updates[fmt.Sprint(r["ledger_offset"])] })
	s.keep(truth, "active_contracts", func(r sandbox.Row) bool { return s.any(r, "signatories", "observers") })
	return s
}

// A role that is limited to parties sees of every relation what these may see, whatever the ledger and whoever they
// are: with facts and with the rows of a snapshot.
func TestALimitedRoleSeesWhatItsPartiesMaySee(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares every relation as it is for many roles")
	const seed = 8
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(300)
	scope := config.Scope{Shape: "ledger-effects", Contracts: config.Contracts{Interfaces: sandbox.InterfaceNames()}, Reassignments: true, Topology: true}
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), scope)
	of := sandbox.Scope{Shape: sandbox.LedgerEffects, Interfaces: sandbox.InterfaceNames()}
	var floor int64
	for i := l.Len() / 2; ; i++ {
		if floor = l.Offset(i); !l.InFlight(floor) {
			break
		}
	}
	_, err := RunBackfill(t.Context(), Backfill{
		Database: cfg.Database, Ledger: config.Ledger{LedgerURL: cfg.LedgerURL}, Scope: scope, Snapshot: config.Snapshot{AtOffset: &floor},
	}, testLogger(t), nil)
	require.NoError(t, err)
	truth := l.TruthFromSnapshot(of, floor, l.End())
	// One role is there before its rows are.
	parties := partiesOf(truth)
	random := rand.New(rand.NewPCG(seed, 0))
	early := pick(random, parties)
	_, earlyURL := limitedRole(t, database, "_early", store.Reader{Parties: early})
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))

	_, allURL := limitedRole(t, database, "_all", store.Reader{AllParties: true})
	require.Equal(t, relations(t, database), relations(t, allURL))
	require.Empty(t, sandbox.Diff(truth, relations(t, database)))
	_, nobodyURL := limitedRole(t, database, "_nobody", store.Reader{Parties: []string{"nobody::00"}})
	for relation, rows := range relations(t, nobodyURL) {
		require.Empty(t, rows, relation)
	}
	requireSeen(t, truth, early, database, earlyURL)
	for i := range 4 {
		chosen := pick(random, parties)
		_, as := limitedRole(t, database, fmt.Sprint("_limited", i), store.Reader{Parties: chosen})
		requireSeen(t, truth, chosen, database, as)
	}
}

// Typed views show a limited role the values of the events that it sees, also those that are made after the grant.
func TestALimitedRoleReadsTypedViews(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads all packages of a ledger")
	database, l, _ := typedWorld.indexed(t)
	party := partiesOf(l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects}, l.End()))[0]
	_, as := limitedRole(t, database, "_limited", store.Reader{Parties: []string{party}})
	reports, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	seen := texts(t, as, "SELECT ledger_offset || '/' || node_id FROM ledger.events")
	owner, reader := open(t, database), open(t, as)
	sees, all := 0, 0
	for _, r := range reports {
		rows := "SELECT (to_jsonb(v) - 'active')::text FROM typed." + pgx.Identifier{r.Name}.Sanitize() + " v" // who is no stakeholder does not see whether
		got := jsonRows(t, reader, rows)
		require.Equal(t, jsonRows(t, owner, rows+" WHERE v.ledger_offset || '/' || v.node_id = ANY ($1::text[])", seen), got, r.Of)
		sees, all = sees+len(got), all+count(t, database, "typed."+r.Name)
	}
	require.Positive(t, sees)
	require.Less(t, sees, all)
}

// pick chooses one to three parties.
func pick(random *rand.Rand, parties []string) (chosen []string) {
	for range 1 + random.IntN(3) {
		chosen = append(chosen, parties[random.IntN(len(parties))])
	}
	return chosen
}

func partiesOf(truth map[string][]sandbox.Row) []string {
	all := map[string]bool{}
	for _, r := range truth["created_events"] {
		for _, column := range []string{"signatories", "observers", "witness_parties"} {
			list, _ := r[column].([]any)
			for _, party := range list {
				all[party.(string)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// requireSeen compares every relation that a role reads with what parties may see.
func requireSeen(t *testing.T, truth map[string][]sandbox.Row, parties []string, database, as string) {
	t.Helper()
	want := seenBy(truth, parties)
	require.Empty(t, sandbox.Diff(want.rows, relations(t, as)), "%v", parties)
	require.NotEmpty(t, want.rows["created_events"])
	const inEvents = "(x.ledger_offset, x.node_id) IN (SELECT o, n FROM unnest($1::bigint[], $2::integer[]) e (o, n))"
	var offsets []int64
	var nodes []int32
	for _, relation := range []string{"created_events", "archived_events", "exercised_events", "reassignments"} {
		for _, r := range want.rows[relation] {
			offset, _ := r["ledger_offset"].(json.Number).Int64()
			node, _ := r["node_id"].(json.Number).Int64()
			offsets, nodes = append(offsets, offset), append(nodes, int32(node))
		}
	}
	owner, reader := open(t, database), open(t, as)
	const withoutParent = "to_jsonb(x) - 'parent_node_id'" // it may be an exercise that is not seen
	require.Equal(t, jsonRows(t, owner, "SELECT ("+withoutParent+")::text FROM ledger.events x WHERE "+inEvents, offsets, nodes),
		jsonRows(t, reader, "SELECT ("+withoutParent+")::text FROM ledger.events x"), "events of %v", parties)

	stakeholder := "x.signatories && $1::text[] OR x.observers && $1::text[]"
	for _, relation := range []string{"contract_lifetimes x", "active_at((SELECT (ledger.latest_offset() + greatest(ledger.state_floor(), 0)) / 2)) x"} {
		require.Equal(t, jsonRows(t, owner, "SELECT to_jsonb(x)::text FROM ledger."+relation+" WHERE "+stakeholder, parties),
			jsonRows(t, reader, "SELECT (to_jsonb(x))::text FROM ledger."+relation), "%s of %v", relation, parties)
	}
	held := "EXISTS (SELECT FROM ledger.created_events e WHERE e.ledger_offset = x.activated_offset AND e.node_id = x.activated_node_id AND (e.signatories && $1::text[] OR e.observers && $1::text[]))"
	for _, relation := range []string{"holdings x", "holding_lifetimes x", "holdings_at((SELECT (ledger.latest_offset() + greatest(ledger.state_floor(), 0)) / 2)) x"} {
		require.Equal(t, jsonRows(t, owner, "SELECT to_jsonb(x)::text FROM ledger."+relation+" WHERE "+held, parties),
			jsonRows(t, reader, "SELECT to_jsonb(x)::text FROM ledger."+relation), "%s of %v", relation, parties)
	}
	require.Equal(t, jsonRows(t, owner, `SELECT jsonb_build_array(x.owner, x.instrument, x.instrument_admin, x.admin_signed, sum(x.amount), count(*))::text FROM ledger.holdings x
		WHERE `+held+" GROUP BY x.owner, x.instrument, x.instrument_admin, x.admin_signed", parties),
		jsonRows(t, reader, "SELECT jsonb_build_array(x.owner, x.instrument, x.instrument_admin, x.admin_signed, x.amount, x.contracts)::text FROM ledger.holding_totals x"))
	past := "((SELECT (ledger.latest_offset() + greatest(ledger.state_floor(), 0)) / 2)) x"
	require.Equal(t, jsonRows(t, owner, `SELECT jsonb_build_array(x.owner, x.instrument, x.instrument_admin, x.admin_signed, sum(x.amount), count(*))::text FROM ledger.holdings_at`+past+
		" WHERE "+held+" GROUP BY x.owner, x.instrument, x.instrument_admin, x.admin_signed", parties),
		jsonRows(t, reader, "SELECT jsonb_build_array(x.owner, x.instrument, x.instrument_admin, x.admin_signed, x.amount, x.contracts)::text FROM ledger.holding_totals_at"+past))
	require.Equal(t, jsonRows(t, owner, "SELECT x.party FROM ledger.parties x WHERE x.party = ANY ($1::text[])", parties),
		jsonRows(t, reader, "SELECT x.party FROM ledger.parties x"))
}

func jsonRows(t *testing.T, conn *pgx.Conn, query string, args ...any) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	rows, err := conn.Query(ctx, query, args...)
	require.NoError(t, err, query)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err, query)
	slices.Sort(list)
	return list
}
