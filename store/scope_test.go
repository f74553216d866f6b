package store

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// What a scope shows of another one is said alike in Go and in SQL.
func TestScopesAreComparedAlike(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	lists := [][]string{nil, {"a"}, {"b", "a"}, {"a", "b", "c"}}
	var scopes []ledger.Scope
	for _, parties := range lists {
		for _, templates := range lists[:3] {
			for _, interfaces := range lists[:3] {
				scopes = append(scopes, ledger.Scope{Parties: parties, Templates: templates, Interfaces: interfaces, Shape: ledger.ShapeACSDelta})
			}
		}
	}
	scopes = append(scopes, ledger.Scope{Shape: ledger.ShapeLedgerEffects}, ledger.Scope{Shape: ledger.ShapeACSDelta, Blobs: true})
	shows := 0
	for _, one := range scopes {
		for _, other := range scopes {
			want := len(one.Lacks(other)) == 0
			require.Equal(t, want, d.Row("SELECT scope_shows($1, $2)", string(one.Canonical()), string(other.Canonical())) == "true", "%s %s", one.Canonical(), other.Canonical())
			if want {
				shows++
			}
			if len(one.OtherForm(other)) == 0 {
				both := union(one, other)
				require.Empty(t, both.Lacks(one))
				require.Empty(t, both.Lacks(other))
			}
		}
	}
	require.Greater(t, shows, len(scopes))
}

// union is the scope that shows what each of two scopes of the same form shows.
func union(one, other ledger.Scope) ledger.Scope {
	all := func(list, other []string) []string {
		if len(list) == 0 || len(other) == 0 {
			return nil
		}
		return slices.Concat(list, other)
	}
	one.Parties, one.Templates = all(one.Parties, other.Parties), all(one.Templates, other.Templates)
	one.Interfaces = slices.Concat(one.Interfaces, other.Interfaces)
	return one
}

// What was written ahead in the scope before goes with it, and is read again in the scope in force.
func TestAChangeOfTheScopeRemovesWhatIsAhead(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.started()
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(0, 10)))
	require.NoError(t, up.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(10, 20)))
	require.NoError(t, up.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(30, 40)))
	up.Close()
	up = d.leadUpdates(d.store())
	scope := storetest.Scope
	scope.Parties = []string{"alice"}
	d.changeScope(up, scope)
	require.Equal(t, []string{"0 10"}, d.Coverage())
	require.Empty(t, d.Facts(10, 100))
	require.NoError(t, up.Append(ctx, scope, storetest.OneCreation(10, 20)))
	require.NoError(t, up.WriteAhead(ctx, scope, storetest.OneCreation(20, 40)))
	require.NoError(t, up.MoveWatermark(ctx, scope, 20, 40))
	require.Empty(t, d.differences(up.store))
}

// changeScope puts a scope in force at the watermark, where the participant shows these entries.
func (d *testDB) changeScope(up *UpdatesWriter, scope ledger.Scope, entries ...ledger.ContractEntry) {
	d.T.Helper()
	at, _, err := up.Watermark(d.T.Context())
	require.NoError(d.T, err)
	resync := up.Resync(false)
	progress, err := resync.BeginSnapshot(d.T.Context(), "", scope, at)
	require.NoError(d.T, err)
	_, err = resync.WriteSnapshotPage(d.T.Context(), progress, nil, ledger.SnapshotPage{Entries: entries, Last: true})
	require.NoError(d.T, err)
}
