package typed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ledgerindexer/internal/damllf"
)

// Kind is what a view shows.
type Kind string

// The kinds of views.
const (
	Template  Kind = "template"  // payloads
	Interface Kind = "interface" // interface views
	Argument  Kind = "argument"  // arguments of a choice
)

// Subject is a template, an interface or a choice that a view shows, over all versions of its package.
type Subject struct {
	Kind                    Kind
	Package, Module, Entity string
	Choice                  string // of an Argument; else empty
	OfInterface             bool   // of an Argument: the choice is an interface's
	definitions             []definition
}

// definition is a subject in one version of its package.
type definition struct {
	version, id string
	expr        *damllf.TypeExpr // nil if no known package defines it
}

// Owner returns the template or interface as package:Module:Entity.
func (s *Subject) Owner() string { return s.Package + ":" + s.Module + ":" + s.Entity }

// String describes the subject.
func (s *Subject) String() string {
	switch s.Kind {
	case Argument:
		return "the arguments of choice " + s.Choice + " of " + s.Owner()
	case Interface:
		return "interface " + s.Owner()
	}
	return "template " + s.Owner()
}

// Subjects returns everything in packages that views can show, sorted by owner: each template or interface, followed by the arguments of
// its choices, except Archive, which has none. Packages that can't be read are skipped.
func (p *Packages) Subjects(ids []string) ([]*Subject, error) {
	type key struct {
		kind                        Kind
		pkg, module, entity, choice string
	}
	all := map[key]*Subject{}
	for _, id := range ids {
		decoded, err := p.Decode(id)
		if _, ok := errors.AsType[*contentError](err); ok {
			return nil, err
		}
		if err != nil {
			continue
		}
		add := func(kind Kind, name damllf.Name, choice string, ofInterface bool, expr *damllf.TypeExpr) {
			k := key{kind, decoded.Name, name.Module, name.Entity, choice}
			if all[k] == nil {
				all[k] = &Subject{Kind: kind, Package: decoded.Name, Module: name.Module, Entity: name.Entity, Choice: choice, OfInterface: ofInterface}
			}
			all[k].definitions = append(all[k].definitions, definition{decoded.Version, id, expr})
		}
		choices := func(name damllf.Name, ofInterface bool, of map[string]damllf.Choice) {
			for choice, c := range of {
				if choice != "Archive" {
					add(Argument, name, choice, ofInterface, c.Argument)
				}
			}
		}
		for name, t := range decoded.Templates {
			add(Template, name, "", false, t.Payload)
			choices(name, false, t.Choices)
		}
		for name, i := range decoded.Interfaces {
			add(Interface, name, "", false, i.View)
			choices(name, true, i.Choices)
		}
	}
	list := slices.Collect(maps.Values(all))
	Sort(list)
	for _, s := range list {
		slices.SortFunc(s.definitions, func(a, b definition) int {
			return cmp.Or(CompareVersions(a.version, b.version), strings.Compare(a.id, b.id))
		})
	}
	return list, nil
}

// Sort sorts subjects by their owners, and then by choice.
func Sort(list []*Subject) {
	slices.SortFunc(list, func(a, b *Subject) int {
		return cmp.Or(strings.Compare(a.Owner(), b.Owner()), strings.Compare(a.Choice, b.Choice), strings.Compare(string(a.Kind), string(b.Kind)))
	})
}

// CompareVersions compares versions of packages number by number.
func CompareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	})
}

// NameError means that a name fits no template or interface, or several.
type NameError struct {
	Name       string
	Ambiguous  bool
	Candidates []string // similar names, at most mostCandidates
}

const mostCandidates = 10

func (e *NameError) Error() string {
	if e.Ambiguous {
		return fmt.Sprintf("%q is the name of several: %s", e.Name, strings.Join(e.Candidates, ", "))
	}
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("there is no template or interface %q, and none with a name like it", e.Name)
	}
	return fmt.Sprintf("there is no template or interface %q; there are %s", e.Name, strings.Join(e.Candidates, ", "))
}

// Find returns the subjects of one template or interface: itself and the arguments of its choices. name is package:Module:Entity, in
// which the package may have a # before it or be an id, or in short Module:Entity or Entity. The error is a *NameError.
func Find(subjects []*Subject, name string) ([]*Subject, error) {
	owners := map[string][]*Subject{}
	for _, s := range subjects {
		if s.named(name) {
			owners[s.Owner()] = append(owners[s.Owner()], s)
		}
	}
	switch names := slices.Sorted(maps.Keys(owners)); {
	case len(names) == 1:
		return owners[names[0]], nil
	case len(names) > 1:
		return nil, &NameError{Name: name, Ambiguous: true, Candidates: names[:min(len(names), mostCandidates)]}
	}
	return nil, &NameError{Name: name, Candidates: alike(subjects, name)}
}

func (s *Subject) named(name string) bool {
	pkg, rest, _ := strings.Cut(name, ":")
	switch qualified := s.Module + ":" + s.Entity; {
	case name == s.Entity, name == qualified:
		return true
	case rest != qualified:
		return false
	case strings.TrimPrefix(pkg, "#") == s.Package:
		return true
	}
	return slices.ContainsFunc(s.definitions, func(d definition) bool { return d.id == pkg })
}

// alike returns owners with names like one, the most alike first, or all if there are few.
func alike(subjects []*Subject, name string) []string {
	words := strings.FieldsFunc(strings.ToLower(name[:min(len(name), longestName)]), func(r rune) bool { return strings.ContainsRune(":.#", r) })
	shared := map[string]int{} // with the entity: the most letters in a row
	for _, s := range subjects {
		if _, known := shared[s.Owner()]; known {
			continue
		}
		most, entity := 0, strings.ToLower(s.Entity)
		for _, word := range words {
			// A half is shared by names of which one letter in the middle is wrong.
			if n := run(word, entity); n > 2 && 2*n >= min(len(word), len(entity)) {
				most = max(most, n)
			}
		}
		shared[s.Owner()] = most
	}
	list := slices.Sorted(maps.Keys(shared))
	if likely := slices.DeleteFunc(slices.Clone(list), func(owner string) bool { return shared[owner] == 0 }); len(likely) > 0 || len(list) > mostCandidates {
		list = likely
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(shared[b], shared[a]) })
	return list[:min(len(list), mostCandidates)]
}

// run returns the length of the longest part that two texts share.
func run(a, b string) (longest int) {
	lengths := make([]int, len(b)+1) // of the parts that end before each place of b and the place of a
	for i := range len(a) {
		for j := len(b); j > 0; j-- {
			if a[i] != b[j-1] {
				lengths[j] = 0
				continue
			}
			lengths[j] = lengths[j-1] + 1
			longest = max(longest, lengths[j])
		}
	}
	return longest
}
