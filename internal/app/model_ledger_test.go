package app

import (
	"slices"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// ledgerModel is a database of a participant's ledger, and what was done to it.
type ledgerModel struct {
	*play
	*begunWorld
	redactions
	world   string
	options sandbox.ServerOptions
	grown   []growth      // how the ledger has come about
	floor   int64         // 0: it began at the beginning
	earlier scopesInForce // scopes that were in force before, and offsets up to which
	before  []config.Contracts
}

// growth is a step of a ledger: so many updates, or, if there is a seed, another history from there on, in which the
// updates from again on were received again.
type growth struct {
	updates int
	seed    uint64
	again   int // -1: none
}

// grow makes a ledger of the same history grow.
func (m *ledgerModel) grow(updates int) {
	if m.ledger == nil {
		m.ledger = sandbox.NewLedger(sandbox.Options{Seed: 61, ActiveShare: 0.4})
	}
	m.ledger.Grow(updates)
	m.grown = append(m.grown, growth{updates: updates})
}

// restore makes the ledger that of a participant that was restored from a backup, which had so many updates.
func (m *ledgerModel) restore(updates, again int, seed uint64) {
	steps := m.grown
	m.ledger, m.grown = nil, nil
	m.grow(0)
	for _, step := range steps {
		if step.seed > 0 {
			m.part(step)
			continue
		}
		m.grow(min(step.updates, updates-m.ledger.Len()))
	}
	m.part(growth{seed: seed, again: again})
	m.ledgerURL = serve(m.T, m.ledger, m.options)
}

func (m *ledgerModel) part(g growth) {
	if g.again >= 0 && g.again < m.ledger.Len() {
		m.ledger.Redeal(g.again, g.seed)
	}
	m.ledger.Diverge(g.seed)
	m.grown = append(m.grown, g)
}

func (m *ledgerModel) begin() {
	m.ledgerURL = serve(m.T, m.ledger, m.options)
	parties := m.ledger.Parties()
	switch m.world {
	case "a scope that is changed":
		m.scope.Parties = parties[1:4]
	case "effects of some parties":
		m.scope.Parties = parties[1:3]
	case "strict, from a snapshot":
		m.floor = quietOffset(m.T, m.ledger)
		_, err := RunBackfill(m.Context(), backfillFor(m.database, m.ledgerURL, m.scope, m.floor), testLogger(m.T), nil)
		require.NoError(m, err)
	}
	m.setTruth()
	m.run()
}

func (m *ledgerModel) setTruth() {
	m.truth = simulatedScope(m.scope)
	m.truth.Version = m.options.Version
}

func (m *ledgerModel) config() Indexer {
	cfg := indexerFor(m.database, m.ledgerURL, m.scope)
	cfg.sealWindow = 60
	return cfg
}

func (m *ledgerModel) run() bool {
	cfg := m.config()
	cfg.VerifyRate = 100_000 // what is whole is sealed
	require.NoError(m, RunIndexer(m.Context(), cfg, testLogger(m.T)))
	return true
}

func (m *ledgerModel) watermark() int64 { return watermarkOf(m.T, m.database) }

// shown reports whether the participant shows what is active at the watermark.
func (m *ledgerModel) shown() bool {
	end := m.watermark()
	return end >= m.ledger.End() || !m.ledger.InFlight(end)
}

// between chooses an update above the floor, and at or below the watermark; it returns its number.
func (m *ledgerModel) between() (number int, ok bool) {
	var list []int
	for i, end := 0, m.watermark(); i < m.ledger.Len(); i++ {
		if at := m.ledger.Offset(i); at > m.floor && at <= end {
			list = append(list, i)
		}
	}
	if len(list) < 20 { // it would be nearly empty
		return 0, false
	}
	return list[5+m.IntN(len(list)-10)], true
}

func (m *ledgerModel) actions() []action {
	list := []action{
		{"grow", 2, func() bool { m.grow(5 + m.IntN(40)); return true }},
		{"run", 3, m.run},
		{"stop", 1, func() bool { return m.interrupted(m.config(), false) }},
		{"kill", 2, func() bool { return m.interrupted(m.config(), true) }},
		{"two daemons", 1, func() bool {
			arrived := func() { waitFor(m.T, m.database, lastUpdate(m.ledger)) }
			return m.beside(m.config(), func() { m.grow(10 + m.IntN(30)) }, arrived)
		}},
		{"reset", 2, m.reset},
		{"prune", 2, m.prune},
		{"redact", 2, func() bool { return m.redacted("ledger", config.Database{DatabaseURL: m.database}, m.redactions) }},
		{"damage and repair", 2, func() bool {
			return m.shown() && m.damaged("indexer", VerifyConfig{
				Database: config.Database{DatabaseURL: m.database}, Sources: config.Sources{LedgerURL: m.ledgerURL},
			})
		}},
		{"restore the participant", 2, m.restored},
	}
	if len(m.scope.Parties) > 0 {
		list = append(list, action{"change the scope", 4, m.changeScope})
	}
	return list
}

func (m *ledgerModel) reset() bool {
	i, ok := m.between()
	if !ok {
		return false
	}
	to := m.ledger.Offset(i)
	m.note("  to %d", to)
	_, err := RunReset(m.Context(), config.Database{DatabaseURL: m.database}, ledger.Offset(to), true, testLogger(m.T))
	require.NoError(m, err)
	m.wentBack(to)
	return true
}

// wentBack puts the scope in force that was so at an offset. Nothing above it is sealed any more.
func (m *ledgerModel) wentBack(to int64) {
	require.Equal(m, []string{"true"}, texts(m.T, m.database, "SELECT (ledger.verified_offset() <= $1)::text", to))
	for i, s := range m.earlier {
		if to < s.upTo {
			m.scope.Contracts = m.before[i]
			m.setTruth()
			m.earlier, m.before = m.earlier[:i], m.before[:i]
			return
		}
	}
}

func (m *ledgerModel) prune() bool {
	i, ok := m.between()
	if !ok {
		return false
	}
	before := m.ledger.Offset(i)
	m.note("  before %d", before)
	prune := func(apply bool) store.PrunePlan {
		limit := store.PruneBefore{Offset: new(ledger.Offset(before))}
		plan, err := RunPrune(m.Context(), config.Database{DatabaseURL: m.database}, limit, apply, testLogger(m.T))
		require.NoError(m, err)
		return plan
	}
	plan := prune(true)
	if at := m.ledger.Offset(i - 1); at > m.floor && !m.ledger.InFlight(before-1) {
		require.EqualValues(m, before-1, plan.Floor)
	}
	m.floor = max(m.floor, int64(plan.Floor))
	again := prune(false)
	require.True(m, again.Empty(), "it is pruned already")
	return true
}

func (m *ledgerModel) restored() bool {
	cut, ok := m.between()
	if !ok {
		return false
	}
	again, updates, since := -1, cut, 10+m.IntN(60)
	if m.IntN(2) == 0 { // some of what came later is received again
		again, updates = cut, cut+m.IntN(m.ledger.Len()-cut)
	}
	m.note("  before update %d, with %d, and %d others", cut, updates, since)
	m.restore(updates, again, m.Uint64())
	m.grow(since)
	reanchor := func(apply bool) Reanchored {
		done, err := RunReanchor(m.Context(), reanchorFor(m.database, m.ledgerURL, apply), testLogger(m.T))
		require.NoError(m, err)
		return done
	}
	before := relations(m.T, m.database)
	plan := reanchor(false)
	require.Nil(m, plan.Reset)
	require.Empty(m, sandbox.Diff(before, relations(m.T, m.database)), "nothing was changed")
	done := reanchor(true)
	require.Equal(m, plan.Divergence, done.Divergence)
	require.Less(m, int64(plan.To), m.ledger.Offset(cut))
	if done.Parted {
		m.wentBack(int64(done.To))
		require.False(m, reanchor(true).Parted)
	}
	return true
}

// changeScope has other parties read from here on.
func (m *ledgerModel) changeScope() bool {
	parties := m.ledger.Parties()
	from := 1 + m.IntN(3)
	now := parties[from : from+1+m.IntN(3)]
	if slices.Equal(now, m.scope.Parties) || !m.shown() {
		return false
	}
	m.note("  to %v", now)
	s := inForce{m.truth, m.watermark()}
	m.earlier, m.before = append(m.earlier, s), append(m.before, m.scope.Contracts)
	m.scope.Parties = now
	m.setTruth()
	require.NoError(m, m.change(m.T))
	return true
}

// check compares what the database shows with what the ledger says of the scopes that were in force.
func (m *ledgerModel) check() {
	m.Helper()
	end := m.watermark()
	scopes := append(slices.Clone(m.earlier), inForce{m.truth, max(end, 1)})
	want := scopes.happened(m.ledger, m.floor, end)
	have := relations(m.T, m.database)
	if len(m.earlier) == 0 && m.floor > 0 && m.scope.Shape == "acs-delta" { // a stream shows more than a snapshot does
		want = m.ledger.TruthFromSnapshot(m.truth, m.floor, end)
	} else if len(m.earlier) > 0 || m.floor > 0 { // what was taken in is no event
		leaveEvents(have)
		leaveEvents(want)
	}
	require.Empty(m, sandbox.Diff(sandbox.Redact(want, m.contracts, m.updates), have))
	requireFloors(m.T, m.database, m.floor, m.floor)
	for _, offset := range []int64{m.floor, end, m.floor + m.Int64N(end-m.floor+1)} {
		want := withoutBegin(trueActiveAt(m.ledger, scopes.at(offset), offset))
		require.Equal(m, want, withoutBegin(activeAt(m.T, m.database, offset)), "offset %d", offset)
	}
	if m.shown() {
		result := requireVerified(m.T, m.database, m.ledgerURL)
		active := trueActiveAt(m.ledger, scopes.at(m.floor), m.floor)
		if m.floor > 0 && len(active) > 0 && !m.ledger.InFlight(m.floor) {
			require.Positive(m, result.Updates.Carried, "what was active at the floor was compared")
		}
	}
}
