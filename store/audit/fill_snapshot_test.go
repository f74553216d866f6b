package audit

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// Whatever is read where a snapshot waits is what it was before: each view and function that analysts have, what the
// indexer derives, compares and digests. What waits says something else of each event that both snapshots have.
func TestASnapshotThatWaitsIsNotShown(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := everythingSealed(t)
	ctx := t.Context()
	s := d.store()
	relations := d.Rows("SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind = 'v' " +
		"AND c.relname <> 'parties' ORDER BY 1") // which are names, not what is shown
	require.Greater(t, len(relations), 20)
	for i := range relations {
		relations[i] = "ledger." + relations[i]
	}
	relations = append(relations, "ledger.holdings_at(104)", "indexer.creations", "indexer.first_creations", "indexer.activations(100, 200, 0)",
		"indexer.missing_lookups(0, 200)", "indexer.shown_interfaces(0, 200)", "indexer.active_contracts", "indexer.lookups")
	read := func() map[string][]string {
		all := map[string][]string{}
		for _, relation := range relations {
			all[relation] = storetest.Sorted(d.Rows("SELECT to_jsonb(r)::text FROM " + relation + " r"))
		}
		require.NoError(t, s.CarriedAt(ctx, 100, func(key string, _ findings.Difference) error {
			all["carried"] = storetest.Sorted(append(all["carried"], key))
			return nil
		}))
		require.NoError(t, s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
			for stream, digest := range d.digests(s, tx) {
				all["digest of "+stream] = []string{digest}
			}
			besides, err := s.db.Queries.HeldBesides(ctx, tx)
			require.NoError(t, err)
			all["held"] = []string{fmt.Sprintf("%+v", besides)}
			return nil
		}))
		return all
	}
	before := read()
	require.NotEmpty(t, before["ledger.holdings"])
	other := storetest.EveryEntry()
	for i := range other {
		switch e := &other[i]; {
		case e.Active != nil:
			e.Active.Created.Signatories = []string{"waiting"}
		case e.Unassigned != nil:
			e.Unassigned.Created.Signatories = []string{"waiting"}
		}
	}
	l := d.leadBackfill(d.store())
	progress, err := l.LowerSnapshot().BeginSnapshot(ctx, "", storetest.Scope, 40)
	require.NoError(t, err)
	_, err = l.LowerSnapshot().WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true, Entries: append(other, storetest.ActiveEntry(11, 0, "more", "sync::1", 0))})
	require.NoError(t, err)
	for relation, rows := range read() {
		require.Equal(t, before[relation], rows, relation)
	}
	require.NoError(t, l.LowerSnapshot().DropSnapshot(ctx))
	for relation, rows := range read() {
		require.Equal(t, before[relation], rows, relation)
	}
}
