package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
)

func TestCompareUpdate(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	s := l.store
	compare := func(id string, shown *ledger.Update) UpdateRecord {
		t.Helper()
		r, err := s.CompareUpdate(t.Context(), id, shown)
		require.NoError(t, err)
		return r
	}
	texts := func(r UpdateRecord) (texts []string) {
		for _, d := range r.Differences {
			texts = append(texts, d.String())
		}
		return texts
	}
	require.Equal(t, UpdateRecord{}, compare("update-101", nil), "nothing was indexed")
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 100, false))
	pages := storetest.EveryKind(100)
	require.NoError(t, l.Append(t.Context(), storetest.Scope, pages))
	updates := pages[0].Updates

	r := compare("update-101", &updates[0])
	require.Empty(t, r.Differences)
	require.Equal(t, []ledger.Offset{101}, r.Offsets)
	require.False(t, r.Beyond || r.Below)
	require.Equal(t, store.Extent{Started: true, Watermark: 104, HistoryFloor: 100}, r.Extent)
	relations := map[string]int{}
	for _, row := range r.Rows {
		relations[row.Relation+" 101"]++
	}
	var stored []string
	for relation, n := range relations {
		stored = append(stored, fmt.Sprint(relation, " ", n))
	}
	require.ElementsMatch(t, d.Facts(100, 101), stored)
	require.Equal(t, 2, relations["created 101"])

	require.Equal(t, []string{
		"updates at offset 101: the row is stored, and the ledger has none", "created at offset 101, node_id 0: the row is stored, and the ledger has none",
	}, texts(compare("update-101", nil))[:2])
	rows := len(r.Rows)
	require.Len(t, compare("update-101", nil).Differences, rows)

	// What the ledger shows at another offset is missing there and one too many here.
	moved := updates[0]
	moved.Offset = 104
	r = compare("update-101", &moved)
	require.Equal(t, []ledger.Offset{101}, r.Offsets)
	require.Contains(t, texts(r), `updates at offset 104: update_id is "update-104", and "update-101" in the ledger`)
	require.Contains(t, texts(r), "updates at offset 101: the row is stored, and the ledger has none")
	require.Contains(t, texts(r), "created at offset 104, node_id 1: the row is not stored")
	require.Contains(t, texts(r), "unknown_elements at offset 104, ordinal 0: the row is stored, and the ledger has none")

	// Outside of what is indexed nothing is compared, unless something is stored.
	later, earlier := storetest.NewUpdate(105, "sync::1"), storetest.NewUpdate(100, "sync::1")
	r = compare("update-105", &later)
	require.True(t, r.Beyond)
	require.Empty(t, r.Differences)
	require.Empty(t, r.Rows)
	r = compare("update-100", &earlier)
	require.True(t, r.Below)
	require.Empty(t, r.Differences)
	moved.Offset = 105
	require.Len(t, compare("update-101", &moved).Differences, rows)

	d.Exec("UPDATE indexer.updates SET update_id = 'update-101' WHERE ledger_offset = 103")
	r = compare("update-101", &updates[0])
	require.Equal(t, []ledger.Offset{101, 103}, r.Offsets)
	require.Equal(t, []string{
		"updates at offset 103: the row is stored, and the ledger has none", "topology_events at offset 103, node_id 100: the row is stored, and the ledger has none",
	}, texts(r))
	for _, unknown := range []string{"", "x\x00", "\xff", "'", strings.Repeat("x", 1<<20)} {
		r := compare(unknown, nil)
		require.Empty(t, r.Offsets)
		require.Empty(t, r.Differences)
	}
}

// A stored row is shown with names for what it refers to, and with all else as it is.
func TestStoredUpdate(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	pages := storetest.EveryKind(0)
	c := &pages[0].Updates[0].Created[1]
	c.RepresentativePackageID, c.Blob, c.Argument = new("pkg-3"), []byte{1, 0xff}, ledger.JSON(`{"a": 1.50, "b": "<\u0001>"}`)
	require.NoError(t, l.Append(t.Context(), storetest.Scope, pages))
	r, err := l.store.StoredUpdate(t.Context(), "update-1")
	require.NoError(t, err)
	var created map[string]any
	require.NoError(t, json.Unmarshal(r.Rows[2].Columns, &created))
	for column, want := range map[string]any{
		"contract_id": "transient-0", "template_id": "pkg-1:Main:Asset", "package_name": "asset", "representative_package_id": "pkg-3",
		"synchronizer_id": "sync::1", "record_time": "2025-01-02T03:04:05.123456+00:00", "acs_delta": true, "contract_key": nil,
		"signatories": []any{"alice"}, "observers": nil, "stakeholders": []any{"alice"}, "created_event_blob": "01ff",
		"payload": map[string]any{"a": 1.5, "b": "<\u0001>"},
	} {
		require.Contains(t, created, column)
		require.Equal(t, want, created[column], column)
	}
	for column := range created {
		require.NotContains(t, column, "_ref")
	}
	require.Contains(t, string(r.Rows[2].Columns), "1.50")
	r, err = l.store.StoredUpdate(t.Context(), "update-2")
	require.NoError(t, err)
	var row map[string]any
	require.NoError(t, json.Unmarshal(r.Rows[2].Columns, &row))
	require.Equal(t, "reassignments", r.Rows[2].Relation)
	require.Equal(t, "sync::1", row["source_synchronizer_id"])
	require.Equal(t, "sync::2", row["target_synchronizer_id"])
	require.NotContains(t, row, "source_ref")

	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 1")
	r, err = l.store.StoredUpdate(t.Context(), "update-2")
	require.NoError(t, err)
	require.Empty(t, r.Rows, "beyond the watermark nothing is told")
}
