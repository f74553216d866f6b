package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
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
				both := one.Union(other)
				require.Empty(t, both.Lacks(one))
				require.Empty(t, both.Lacks(other))
			}
		}
	}
	require.Greater(t, shows, len(scopes))
}
