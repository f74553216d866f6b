package export

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// A table has no file of another template: of a view that was dropped, and had its name and columns. Such a file stays
// where its range was pruned.
func TestATableIsOfOneTemplate(t *testing.T) {
	t.Parallel()
	place, err := Open(t.TempDir(), true)
	require.NoError(t, err)
	view := store.ExportRelation{Name: "typed_account", Of: "template bank:Bank:Account", Place: "ledger_offset", Columns: []store.ExportColumn{{Name: "ledger_offset", Type: store.ExportBigint}}}
	e := &Export{catalog: catalog{place: place}, relations: []store.ExportRelation{view}}
	var manifests []Manifest
	for from, of := range []string{"template bank:Other:Account", view.Of, ""} {
		m := Manifest{From: ledger.Offset(from), To: ledger.Offset(from + 1)}
		m.Files = []File{{Relation: view.Name, Name: fileName(view.Name, m.From, m.To, "first"), Rows: 1, Of: of, Columns: columnsOf(view)}}
		manifests = append(manifests, m)
	}
	require.NoError(t, e.publish(t.Context(), manifests))
	entries := contentOf(t, place, view.Name+"/metadata/1-entries.avro")
	require.NotContains(t, entries, rangeName(0, 1))
	require.Contains(t, entries, rangeName(1, 2))
	require.Contains(t, entries, rangeName(2, 3), "an older manifest does not say of what its file is")
}
