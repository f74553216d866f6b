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

// Only what was added is read where a scope says that alone.
func TestWhatAScopeAdds(t *testing.T) {
	t.Parallel()
	some := Scope{Parties: []string{"a"}, Templates: []string{"t"}, Interfaces: []string{"i"}, Blobs: true}
	with := func(change func(*Scope)) Scope { s := some; change(&s); return s }
	for name, c := range map[string]struct {
		now, added Scope
	}{
		"parties":         {with(func(s *Scope) { s.Parties = []string{"c", "a", "b"} }), with(func(s *Scope) { s.Parties = []string{"c", "b"} })},
		"a template":      {with(func(s *Scope) { s.Templates = []string{"t", "u"} }), with(func(s *Scope) { s.Templates = []string{"u"} })},
		"an interface":    {now: with(func(s *Scope) { s.Interfaces = []string{"i", "j"} })},
		"nothing":         {now: some},
		"both":            {now: with(func(s *Scope) { s.Parties, s.Templates = []string{"a", "b"}, []string{"t", "u"} })},
		"any party":       {now: with(func(s *Scope) { s.Parties = nil })},
		"another party":   {now: with(func(s *Scope) { s.Parties = []string{"b"} })},
		"all templates":   {now: with(func(s *Scope) { s.Templates = nil })},
		"in another form": {now: with(func(s *Scope) { s.Parties, s.Blobs = []string{"a", "b"}, false })},
	} {
		added, ok := c.now.Added(some)
		require.Equal(t, c.added, added, name)
		require.Equal(t, len(added.Parties) > 0, ok, name)
	}
	_, ok := some.Added(Scope{Parties: []string{"a"}, Interfaces: []string{"i"}, Blobs: true})
	require.False(t, ok, "templates where all were read before")
}

// What differs is told from both sides, and nothing else.
func TestScopesAreToldApart(t *testing.T) {
	t.Parallel()
	many := []string{"a", "b", "c", "d", "e", "f", "g"}
	for name, c := range map[string]struct {
		one, other  Scope
		here, there string
	}{
		"equal":           {Scope{Parties: []string{"a", "b"}}, Scope{Parties: []string{"b", "a", "a"}}, "", ""},
		"any and some":    {Scope{}, Scope{Parties: []string{"a"}}, "--parties (any)", "--parties a"},
		"one more":        {Scope{Templates: []string{"a", "b"}}, Scope{Templates: []string{"a"}}, "--templates b", "--templates (without b)"},
		"one for another": {Scope{Parties: []string{"a", "b"}}, Scope{Parties: []string{"a", "c"}}, "--parties b", "--parties c"},
		"many":            {Scope{Interfaces: many}, Scope{}, "--interfaces a,b,c,d,e and 2 more", "--interfaces (none)"},
		"the form": {
			Scope{Shape: ShapeACSDelta, Topology: true}, Scope{Shape: ShapeLedgerEffects, Blobs: true, Topology: true},
			"--shape acs-delta --blobs=false", "--shape ledger-effects --blobs=true",
		},
	} {
		here, there := c.one.Differences(c.other)
		require.Equal(t, [2]string{c.here, c.there}, [2]string{here, there}, name)
	}
}

// What can't be added later is named with the flag that reads it; what can, is not.
func TestWhatAScopeLeavesOut(t *testing.T) {
	t.Parallel()
	all := Scope{Shape: ShapeLedgerEffects, Blobs: true, Reassignments: true, Topology: true, Parties: []string{"a"}, Templates: []string{"t"}}
	require.Empty(t, all.LeftOut())
	for flag, left := range map[string]func(*Scope){
		"--shape ledger-effects": func(s *Scope) { s.Shape = ShapeACSDelta },
		"--blobs":                func(s *Scope) { s.Blobs = false },
		"--reassignments":        func(s *Scope) { s.Reassignments = false },
		"--topology":             func(s *Scope) { s.Topology = false },
	} {
		s := all
		left(&s)
		require.Len(t, s.LeftOut(), 1)
		require.Contains(t, s.LeftOut()[0], "("+flag+")")
	}
}
