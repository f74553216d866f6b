package export

import (
	"os"
	"path/filepath"
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

// The metadata of a table of the export go with its view. What others keep in the place, and an export below it, stay.
func TestOnlyTablesOfTheExportGo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	publish := func(below string, relations ...string) {
		place, err := Open(filepath.Join(folder, below), true)
		require.NoError(t, err)
		e := &Export{catalog: catalog{place: place}}
		for _, name := range relations {
			e.relations = append(e.relations, store.ExportRelation{Name: name, Place: "ledger_offset", Columns: []store.ExportColumn{{Name: "ledger_offset", Type: store.ExportBigint}}})
		}
		require.NoError(t, e.publish(t.Context(), nil))
	}
	publish("", "updates", "typed_account")
	publish("network", "updates")
	foreign := []string{"daily_sums/metadata/v1.metadata.json", "daily_sums/metadata/version-hint.text", "db/sums/metadata/00000-1.metadata.json"}
	for _, name := range foreign {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(`{"properties": {}}`), 0o600))
	}
	publish("", "updates")
	for _, name := range append(foreign, "updates/metadata/v1.metadata.json", "network/updates/metadata/v1.metadata.json") {
		require.FileExists(t, filepath.Join(folder, name))
	}
	left, err := os.ReadDir(filepath.Join(folder, "typed_account/metadata"))
	require.NoError(t, err)
	require.Empty(t, left, "of a view that was dropped")
}
