package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A scope may be changed to one that shows all that it shows, in the same form.
func TestScopeLacks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of, now Scope
		lacks   []string
	}{
		"equal":              {Scope{Parties: []string{"a", "b"}}, Scope{Parties: []string{"b", "a"}}, nil},
		"more of each":       {Scope{Parties: []string{"a"}, Templates: []string{"t"}}, Scope{Parties: []string{"a", "b"}, Templates: []string{"t", "u"}, Interfaces: []string{"i"}}, nil},
		"everything":         {Scope{Parties: []string{"a"}, Templates: []string{"t"}}, Scope{}, nil},
		"less of everything": {Scope{}, Scope{Parties: []string{"a"}, Templates: []string{"t"}}, []string{"--parties", "--templates"}},
		"others":             {Scope{Parties: []string{"a"}, Interfaces: []string{"i"}}, Scope{Parties: []string{"b"}, Interfaces: []string{"j"}}, []string{"--parties", "--interfaces"}},
		"another form":       {Scope{}, Scope{Shape: ShapeLedgerEffects, Blobs: true, Reassignments: true, Topology: true}, []string{"--shape", "--blobs", "--reassignments", "--topology"}},
	} {
		require.Equal(t, c.lacks, c.now.Lacks(c.of), name)
	}
}
