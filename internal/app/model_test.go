package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// modelPatience is how long a seed may take: an indexer that can't go on tries for ever.
const modelPatience = 10 * time.Minute

// modelSteps is how many actions a seed has.
const modelSteps = 12

// modelSeeds are the seeds of each world: what failed once stays. TEST_MODEL_SEED tries another one, TEST_MODEL_STEPS
// that many actions.
var modelSeeds = map[string][]int{
	"deltas in pages":          {1},
	"effects in lists":         {1},
	"strict, from a snapshot":  {1},
	"a scope that is changed":  {1, 2},
	"effects of some parties":  {1},
	"the updates of a network": {1, 2},
}

// Whatever is done to a database, in whatever order: what it shows is what the source says after the same actions, and
// verification finds nothing, with the source and without.
func TestTheModel(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "does whatever can be done to a database, and compares it each time")
	for world, seeds := range modelSeeds {
		if seed := numberFrom(t, "TEST_MODEL_SEED", 0); seed > 0 {
			seeds = []int{seed}
		}
		for _, seed := range seeds {
			t.Run(fmt.Sprint(world, ", seed ", seed), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), modelPatience)
				defer cancel()
				p := &play{T: t, Rand: rand.New(rand.NewPCG(uint64(seed), uint64(len(world)))), ctx: ctx}
				p.perform(modelOf(p, world), numberFrom(t, "TEST_MODEL_STEPS", modelSteps))
			})
		}
	}
}

// play is a sequence of actions that chance chooses.
type play struct {
	*testing.T
	*rand.Rand
	ctx   context.Context
	done  []string
	stops atomic.Int64 // requests until stop is called
	stop  func()
}

// action is something that is done to a database, or to what it is indexed from.
type action struct {
	name   string
	weight int
	do     func() (done bool) // or it can't be done now
}

// played is what actions are done to.
type played interface {
	actions() []action
	check()
}

// Context ends with the patience.
func (p *play) Context() context.Context { return p.ctx }

func (p *play) perform(on played, steps int) {
	defer func() {
		if p.Failed() {
			p.Logf("after:\n%s", strings.Join(p.done, "\n"))
		}
	}()
	var bag []action
	for _, a := range on.actions() {
		for range a.weight {
			bag = append(bag, a)
		}
	}
	on.check()
	for step := 0; step < steps && !p.Failed(); {
		a := bag[p.IntN(len(bag))]
		p.note("%s", a.name)
		if !a.do() {
			p.done = p.done[:len(p.done)-1]
			continue
		}
		step++
		require.NoError(p, p.ctx.Err(), "it does not come to its end")
		on.check()
	}
}

// note adds to what is told where a check fails.
func (p *play) note(format string, args ...any) {
	p.done = append(p.done, fmt.Sprintf(format, args...))
}

// fault counts the requests of a server, and ends what asks them when it is time.
func (p *play) fault(*http.Request) *sandbox.Fault {
	if p.stops.Add(-1) == 0 {
		p.stop()
	}
	return nil
}

// interrupted runs an indexer that is stopped at one of its next requests, in order or as if it had been killed: its
// sessions end at once, whatever they do.
func (p *play) interrupted(cfg Indexer, kill bool) bool {
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	p.stop = func() {
		if kill {
			conn, err := pgx.Connect(p.Context(), cfg.DatabaseURL)
			if err != nil {
				p.Error(err)
			} else {
				_, err = conn.Exec(p.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE datname = current_database() AND pid <> pg_backend_pid()`)
				if err := errors.Join(err, conn.Close(p.Context())); err != nil {
					p.Error(err)
				}
			}
		}
		cancel()
	}
	p.stops.Store(1 + p.Int64N(12))
	defer p.stops.Store(0)
	err := RunIndexer(ctx, cfg, testLogger(p.T))
	if ctx.Err() == nil { // it was current before
		require.NoError(p, err)
	}
	return true
}

// beside runs two indexers, one of which ends while the source grows.
func (p *play) beside(cfg Indexer, grow, arrived func()) bool {
	one, other := startIndexer(p.T, cfg), startIndexer(p.T, cfg)
	grow()
	arrived()
	require.NoError(p, one.finish())
	grow()
	arrived()
	require.NoError(p, other.finish())
	return true
}

// damaged damages some of what can be read again, or follows from it, and has it repaired.
func (p *play) damaged(schema string, cfg VerifyConfig) bool {
	damages := []string{
		"DELETE FROM %s.updates WHERE ledger_offset %% 9 = %d AND ledger_offset > %d",
		"DELETE FROM %s.created WHERE ledger_offset %% 7 = %d AND ledger_offset > %d AND node_id BETWEEN 0 AND 99999",
		"UPDATE %s.created SET payload = '{}' WHERE ledger_offset %% 5 = %d AND ledger_offset > %d AND node_id IN (0, 1, 2)",
		"UPDATE %s.archived SET contract_id = contract_id || 'x' WHERE ledger_offset %% 9 = %d AND ledger_offset > %d",
		"DELETE FROM %s.exercised WHERE ledger_offset %% 3 = %d AND ledger_offset > %d",
		"DELETE FROM %s.lifetimes WHERE activated_offset %% 5 = %d AND activated_offset > %d",
		"DELETE FROM %s.active_contracts WHERE activated_offset %% 5 = %d AND activated_offset > %d",
	}
	floor := texts(p.T, cfg.DatabaseURL, "SELECT history_floor::text FROM "+schema+".floors")[0]
	for range 1 + p.IntN(3) {
		statement := strings.Replace(damages[p.IntN(len(damages))], "> %d", "> "+floor, 1)
		statement = fmt.Sprintf(statement, schema, p.IntN(3))
		p.note("  %s", statement)
		execute(p.T, cfg.DatabaseURL, statement)
	}
	cfg.All, cfg.Repair = true, true
	result, err := RunVerify(p.Context(), cfg, testLogger(p.T), func(audit.Difference) {})
	require.NoError(p, err)
	require.Zero(p, result.Remaining(true))
	return true
}

// redactions are the contracts and updates that were redacted.
type redactions struct{ contracts, updates map[string]bool }

// redacted redacts a contract that has ended, or an update.
func (p *play) redacted(schema string, pair config.Database, r redactions) bool {
	const ended = `SELECT c.contract_id FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
		WHERE c.payload IS NOT NULL
			AND NOT EXISTS (SELECT FROM ledger.active_contracts x WHERE x.contract_id = c.contract_id)
		GROUP BY 1 ORDER BY 1`
	const exercised = `SELECT e.update_id FROM ledger.exercised_events e WHERE e.choice_argument IS NOT NULL
		AND NOT EXISTS (SELECT FROM ledger.created_events c WHERE c.ledger_offset = e.ledger_offset) GROUP BY 1 ORDER BY 1`
	choose := func(query string) string {
		list := texts(p.T, pair.DatabaseURL, strings.ReplaceAll(query, "ledger.", schema+"."))
		if len(list) == 0 {
			return ""
		}
		return list[p.IntN(len(list))]
	}
	what := audit.Redaction{ContractID: choose(ended)}
	if p.IntN(3) == 0 {
		what = audit.Redaction{UpdateID: choose(exercised)}
	}
	if what == (audit.Redaction{}) {
		return false
	}
	p.note("  %+v", what)
	report, err := RunRedact(p.Context(), pair, what, "a test", true, testLogger(p.T))
	require.NoError(p, err)
	for _, id := range report.Contracts {
		r.contracts[id] = true
	}
	if what.UpdateID != "" {
		r.updates[what.UpdateID] = true
	}
	return true
}

func modelOf(p *play, world string) played {
	p.Helper()
	r := redactions{map[string]bool{}, map[string]bool{}}
	if world == "the updates of a network" {
		m := &networkModel{play: p, redactions: r}
		m.ledger, m.scan = scanOf(7, 300, sandbox.ScanOptions{BalanceChanges: true, PageLimit: 40, Fault: p.fault})
		m.cfg = networkFor(networkDatabase(p.T), serveScan(p.T, m.scan))
		require.NoError(p, RunIndexer(p.Context(), m.cfg, testLogger(p.T)))
		return m
	}
	scope := defaultScope()
	scope.Interfaces = []string{holdingInterface}
	begun := &begunWorld{database: throwaway.Migrated(p.T, migrate)}
	m := &ledgerModel{play: p, redactions: r, world: world, begunWorld: begun}
	switch world {
	case "deltas in pages":
		m.options = sandbox.ServerOptions{Version: "3.6"}
	case "effects in lists":
		m.options, scope.Shape = sandbox.ServerOptions{StrictInterface: true, ListLimit: 100}, "ledger-effects"
	case "strict, from a snapshot":
		m.options = sandbox.ServerOptions{StrictInterface: true, ListLimit: 20}
	default: // topology events are those of all parties, whatever the scope
		m.options, scope.Topology, scope.Interfaces = sandbox.ServerOptions{Version: "3.5", ListLimit: 15}, false, nil
	}
	if world == "effects of some parties" {
		scope.Shape = "ledger-effects"
	}
	m.options.Fault = p.fault
	m.scope = scope
	m.grow(200)
	m.begin()
	return m
}
