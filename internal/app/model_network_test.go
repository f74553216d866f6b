package app

import (
	"slices"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// networkModel is a database of the updates of a network, and what was done to it.
type networkModel struct {
	*play
	redactions
	ledger  *sandbox.Ledger
	scan    *sandbox.Scan
	cfg     Indexer
	floor   int64
	derived bool // the records are those of the updates
}

func (m *networkModel) run() bool {
	require.NoError(m, RunIndexer(m.Context(), m.cfg, testLogger(m.T)))
	m.derived = true
	return true
}

func (m *networkModel) watermark() int64 {
	return collect[int64](m.T, m.cfg.DatabaseURL, "SELECT network.latest_offset()")[0]
}

// between chooses the offset of an update above the floor, and at or below the watermark.
func (m *networkModel) between() (offset int64, ok bool) {
	var list []int64
	end := m.watermark()
	for _, row := range m.scan.NetworkTruth()["updates"] {
		if at := wholeOf(row["ledger_offset"]); at > m.floor && at <= end {
			list = append(list, at)
		}
	}
	if len(list) < 20 { // it would be nearly empty
		return 0, false
	}
	return list[5+m.IntN(len(list)-10)], true
}

func (m *networkModel) pair() config.Database {
	return config.Database{DatabaseURL: m.cfg.DatabaseURL, Schemas: config.Schemas{Network: true}}
}

func (m *networkModel) actions() []action {
	underived := func(do func() bool) func() bool {
		return func() bool { m.derived = false; return do() }
	}
	return []action{
		{"grow", 2, underived(func() bool { m.ledger.Grow(5 + m.IntN(60)); return true })},
		{"run", 3, m.run},
		{"stop", 1, underived(func() bool { return m.interrupted(m.cfg, false) })},
		{"kill", 2, underived(func() bool { return m.interrupted(m.cfg, true) })},
		{"two daemons", 1, underived(func() bool {
			arrived := func() {
				updates := m.scan.NetworkTruth()["updates"]
				eventuallyIn(m.T, m.cfg.DatabaseURL, "all updates are there", "network.latest_offset() >= $1",
					wholeOf(updates[len(updates)-1]["ledger_offset"]))
			}
			return m.beside(m.cfg, func() { m.ledger.Grow(10 + m.IntN(30)) }, arrived)
		})},
		{"reset", 2, underived(m.reset)},
		{"prune", 2, m.prune},
		{"redact", 3, func() bool { return m.derived && m.redacted("network", m.pair(), m.redactions) }},
		{"damage and repair", 2, func() bool {
			return m.damaged("network_indexer", VerifyConfig{Database: m.pair(), Sources: m.cfg.Sources})
		}},
		{"other rules", 2, underived(func() bool {
			execute(m.T, m.cfg.DatabaseURL, "UPDATE network_indexer.transactions SET rules = 0")
			return true
		})},
	}
}

func (m *networkModel) reset() bool {
	to, ok := m.between()
	if !ok {
		return false
	}
	m.note("  to %d", to)
	_, err := RunReset(m.Context(), m.pair(), ledger.Offset(to), true, testLogger(m.T))
	require.NoError(m, err)
	return true
}

// prune prunes where all records are derived: it refuses where they could not be any more.
func (m *networkModel) prune() bool {
	before, ok := m.between()
	if !ok || !m.derived {
		return false
	}
	m.note("  before %d", before)
	limit := store.PruneBefore{Offset: new(ledger.Offset(before))}
	plan, err := RunPrune(m.Context(), m.pair(), limit, true, testLogger(m.T))
	require.NoError(m, err)
	m.floor = max(m.floor, int64(plan.Floor))
	return true
}

// check compares what the database shows with what the network's service says.
func (m *networkModel) check() {
	m.Helper()
	end, want, have := m.watermark(), m.scan.NetworkTruth(), networkRelations(m.T, m.cfg.DatabaseURL)
	newest := wholeOf(want["updates"][len(want["updates"])-1]["ledger_offset"])
	if m.floor > 0 {
		want = m.scan.NetworkTruthFromSnapshot(ledger.Offset(m.floor).NetworkPosition())
	}
	for relation, rows := range want {
		if relation != "active_contracts" {
			want[relation] = slices.DeleteFunc(rows, func(r sandbox.Row) bool { return wholeOf(r["ledger_offset"]) > end })
		}
	}
	if end < newest { // what was active then is not told
		delete(want, "active_contracts")
		delete(have, "active_contracts")
	}
	require.Empty(m, sandbox.Diff(sandbox.Redact(want, m.contracts, m.updates), have))
	if !m.derived {
		return
	}
	records := sandbox.Redact(m.scan.DerivedTruth(), m.contracts, m.updates)
	for _, rows := range records { // a record does not name the contracts that it follows from
		for _, row := range rows {
			delete(row, "description")
		}
	}
	shown := derivedRelations(m.T, m.cfg.DatabaseURL)
	for _, rows := range shown {
		for _, row := range rows {
			delete(row, "description")
		}
	}
	require.Empty(m, sandbox.Diff(records, shown))
	v := VerifyConfig{Database: m.pair(), Sources: m.cfg.Sources, Verify: config.Verify{All: true}}
	_, err := RunVerify(m.Context(), v, testLogger(m.T), func(d audit.Difference) { m.Errorf("verify: %v", d) })
	require.NoError(m, err)
}
