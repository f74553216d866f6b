package audit

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/store/internal/storetest"
)

// manyEvents fills a database with a million events: each update creates two contracts, archives one of an earlier update
// and consumes another.
func manyEvents(b *testing.B, d *testDB, l *updatesWriter, updates int64) {
	b.Helper()
	for _, relation := range []string{"updates", "created", "archived", "exercised", "lifetimes"} {
		require.NoError(b, l.term.Partitions.Ensure(b.Context(), relation, slices.Values([]int64{1, updates})))
	}
	d.Exec("INSERT INTO indexer.templates VALUES (1, 'p:M:T', 'p', 'name', 'M', 'T'); INSERT INTO indexer.synchronizers VALUES (1, 'sync::1'); INSERT INTO indexer.party_lists VALUES (1, '{alice}')")
	d.Exec("CREATE FUNCTION cid(n bigint) RETURNS text LANGUAGE sql IMMUTABLE RETURN '00' || encode(sha256(n::text::bytea), 'hex') || encode(sha256((-n)::text::bytea), 'hex')")
	d.Exec("INSERT INTO indexer.updates (ledger_offset, update_id, kind, synchronizer_ref) SELECT n, 'u' || n, 'transaction', 1 FROM generate_series(1, $1::bigint) n", updates)
	d.Exec(`INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref, synchronizer_ref, acs_delta, payload, signatories_ref)
		SELECT n, i, 'transaction', cid(2 * n + i), 1, 1, true, jsonb_build_object('owner', repeat('x', 80), 'n', n), 1 FROM generate_series(1, $1::bigint) n, generate_series(0, 1) i`, updates)
	d.Exec("INSERT INTO indexer.archived (ledger_offset, node_id, contract_id, template_ref, synchronizer_ref) SELECT n, 2, cid(2 * (n - 1000)), 1, 1 FROM generate_series(1001, $1::bigint) n", updates)
	d.Exec(`INSERT INTO indexer.exercised (ledger_offset, node_id, contract_id, template_ref, synchronizer_ref, choice, consuming, last_descendant_node_id, acs_delta)
		SELECT n, 3, cid(2 * (n - 5000) + 1), 1, 1, 'Archive', n % 3 > 0, 3, true FROM generate_series(5001, $1::bigint) n`, updates)
	d.Exec("INSERT INTO indexer.coverage VALUES ('updates', $1, 0, $2)", storetest.Scope.Hash(), updates)
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = $1", updates)
	d.Exec("ANALYZE")
}

// BenchmarkDerived tells how long it takes to compare what follows from a million events with itself, and to make it anew.
func BenchmarkDerived(b *testing.B) {
	const updates = 250_000
	d := newDatabase(b)
	l := d.started()
	manyEvents(b, d, l, updates)
	r, ok, err := LeadRepair(b.Context(), l.store.Store)
	require.NoError(b, err)
	require.True(b, ok)
	defer r.Close()
	started := time.Now()
	require.NoError(b, r.RepairDerived(b.Context(), nil))
	b.Logf("%6.2f s to make it anew", time.Since(started).Seconds())
	d.Exec("ANALYZE")
	started = time.Now()
	var last string
	step := func(what string) {
		if last != "" {
			b.Logf("%6.2f s %s", time.Since(started).Seconds(), last)
		}
		last, started = what, time.Now()
	}
	for b.Loop() {
		require.NoError(b, l.store.CompareDerived(b.Context(), step, func(d findings.Difference) error {
			b.Fatal(d.String())
			return nil
		}))
	}
	step("")
}
