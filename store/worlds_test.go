package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/internal/storetest"
)

// seeded is a database that began with a snapshot at offset 100, and continues a little behind it.
func (d *testDB) seeded(entries ...ledger.ContractEntry) *UpdatesWriter {
	d.T.Helper()
	l := d.leadUpdates(d.store())
	d.snapshot(l, 100, entries...)
	require.NoError(d.T, l.Append(d.T.Context(), storetest.Scope, storetest.OneCreation(100, 101)))
	return l
}

// active is what is active at an offset, each as contract, synchronizer and the offset that activated it.
func (d *depths) active(at ledger.Offset) []string {
	scope := sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.6"}
	if d.scope.Shape == ledger.ShapeLedgerEffects {
		scope.Shape = sandbox.LedgerEffects
	}
	list := []string{}
	for _, r := range d.ledger.Truth(scope, int64(at))["active_contracts"] {
		list = append(list, fmt.Sprint(r["contract_id"], " ", r["synchronizer_id"], " ", r["activated_offset"]))
	}
	return storetest.Sorted(list)
}

// activeAt is what a database says was active at an offset, in the form of depths.active.
func (d *testDB) activeAt(at ledger.Offset) []string {
	d.T.Helper()
	return storetest.Sorted(append([]string{}, d.Rows(`SELECT x.contract_id, s.synchronizer_id, x.activated_offset FROM (
		SELECT a.contract_id, a.synchronizer_ref, a.activated_offset FROM indexer.active_contracts a WHERE a.activated_offset <= $1
		UNION ALL
		SELECT l.contract_id, l.synchronizer_ref, l.activated_offset FROM indexer.lifetimes l WHERE l.activated_offset <= $1 AND l.deactivated_offset > $1
	) x JOIN indexer.synchronizers s USING (synchronizer_ref)`, at)...))
}

// requireCarried compares the rows of entries with the snapshot that they are of.
func (d *testDB) requireCarried(s *Store, at ledger.Offset, entries []ledger.ContractEntry) {
	d.T.Helper()
	list, err := Audit.Stored(s).CompareCarried(d.T.Context(), at, entries)
	require.NoError(d.T, err)
	require.Empty(d.T, list)
}

// depths is a simulated ledger, and its snapshots at some offsets, at each of which contracts are between two
// synchronizers.
type depths struct {
	ledger    *sandbox.Ledger
	scope     ledger.Scope
	at        []ledger.Offset
	snapshots [][]ledger.ContractEntry
	pages     []ledger.Page // of a few updates, from the beginning on; none reaches over one of the offsets
}

func newDepths(t *testing.T, seed uint64, shape ledger.Shape) *depths {
	t.Helper()
	d := &depths{ledger: sandbox.NewLedger(sandbox.Options{Seed: seed, ActiveShare: 0.3}), scope: storetest.WholeScope}
	d.scope.Shape = shape
	client := storetest.Reader(t, d.ledger, d.scope)
	for range 3 {
		for d.ledger.Grow(60); !d.ledger.InFlight(d.ledger.End()); {
			d.ledger.Grow(1)
		}
		at := ledger.Offset(d.ledger.End()) // the only offset at which it is shown while contracts are on their way
		var entries []ledger.ContractEntry
		for page := (ledger.SnapshotPage{}); !page.Last; entries = append(entries, page.Entries...) {
			var err error
			page, err = client.ReadSnapshot(t.Context(), at, page.Next)
			require.NoError(t, err)
		}
		d.at, d.snapshots = append(d.at, at), append(d.snapshots, entries)
	}
	d.ledger.Grow(60)
	from := ledger.Offset(0)
	for _, to := range append(slices.Clone(d.at), ledger.Offset(d.ledger.End())) {
		d.pages = append(d.pages, storetest.PagesOf(t, client, from, to, 4)...)
		from = to
	}
	return d
}

// between are the pages of a range.
func (d *depths) between(from, to ledger.Offset) (pages []ledger.Page) {
	for _, page := range d.pages {
		if page.From >= from && page.To <= to {
			pages = append(pages, page)
		}
	}
	return pages
}

// bring writes the next entries of a snapshot, at most so many.
func (d *depths) bring(t *testing.T, sink *UpdatesWriter, n, most int) (finished bool) {
	t.Helper()
	progress, err := sink.BeginSnapshot(t.Context(), "participant::1", d.scope, d.at[n])
	require.NoError(t, err)
	if progress.Finished {
		return true
	}
	rest := d.snapshots[n][progress.Entries:]
	page := ledger.SnapshotPage{Entries: rest, Last: true}
	if len(rest) > most {
		page = ledger.SnapshotPage{Entries: rest[:most], Next: storetest.Token(fmt.Sprint(progress.Entries))}
	}
	_, err = sink.WriteSnapshotPage(t.Context(), progress, nil, page)
	require.NoError(t, err)
	return page.Last
}

// begun is a database that began with a snapshot, or without one, and continues to the end.
func (d *depths) begun(t *testing.T, n int, snapshot bool) (*testDB, *UpdatesWriter) {
	t.Helper()
	db := newDatabase(t)
	up := db.leadUpdates(db.store())
	if snapshot {
		require.True(t, d.bring(t, up, n, len(d.snapshots[n])))
	} else {
		require.NoError(t, up.Start(t.Context(), "participant::1", d.scope, d.at[n], false))
	}
	return db, up
}

// shown is everything that analysts see, and what the indexer derives and claims, with names in the place of their
// numbers.
func (d *testDB) shown() map[string][]string {
	d.T.Helper()
	all := map[string][]string{}
	for _, relation := range []string{
		"updates", "created_events", "archived_events", "exercised_events", "interface_views", "reassignments", "active_contracts", "unknown_updates",
		"exact_payloads", "coverage", "looked_up_contracts",
	} {
		all[relation] = storetest.Sorted(d.Rows("SELECT (to_jsonb(r) - 'template_number')::text FROM ledger." + relation + " r"))
	}
	for _, relation := range []string{"lifetimes", "active_contracts"} {
		all["indexer."+relation] = storetest.Sorted(d.Rows(`SELECT ((to_jsonb(x) - '{template_ref,synchronizer_ref,stakeholders_ref}'::text[])
			|| jsonb_build_object('stakeholders', (SELECT to_jsonb(p.parties) FROM indexer.party_lists p WHERE p.party_list_ref = x.stakeholders_ref), 'template', to_jsonb(t) - '{template_ref,digest}'::text[], 'synchronizer', s.synchronizer_id))::text
			FROM indexer.` + relation + ` x JOIN indexer.templates t USING (template_ref) LEFT JOIN indexer.synchronizers s USING (synchronizer_ref)`))
	}
	all["snapshots"] = d.Rows("SELECT snapshot_offset, entries, finished_at IS NOT NULL FROM indexer.snapshots")
	all["floors"] = d.Rows("SELECT history_floor, state_floor FROM indexer.floors")
	for _, table := range storetest.FactTables {
		all["count of "+table] = d.Rows("SELECT count(*) FROM indexer." + table)
	}
	return all
}
