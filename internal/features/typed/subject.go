package typed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ledgerindexer/internal/features/damllf"
)

// Kind is what a view shows.
type Kind string

// The kinds of views.
const (
	Template  Kind = "template"  // payloads and keys
	Interface Kind = "interface" // interface views
	Choice    Kind = "choice"    // arguments and results of a choice
)

// Subject is a template, an interface or a choice that a view shows, over all versions of its package.
type Subject struct {
	Kind                    Kind
	Package, Module, Entity string
	Choice                  string // the name of a Choice; else empty
	OfInterface             bool   // of a Choice: it is an interface's
	definitions             []definition
}

// definition is a subject in one version of its package.
type definition struct {
	version, id string
	expr        *damllf.TypeExpr
	beside      *damllf.TypeExpr // of the contract's key, or of the exercise's result; nil if there is none
}

// Owner returns the template or interface as package:Module:Entity.
func (s *Subject) Owner() string { return s.Package + ":" + s.Module + ":" + s.Entity }

// String describes the subject.
func (s *Subject) String() string {
	switch s.Kind {
	case Choice:
		return "choice " + s.Choice + " of " + s.Owner()
	case Interface:
		return "interface " + s.Owner()
	}
	return "template " + s.Owner()
}

// Subjects returns everything in packages that views can show, sorted by owner: each template or interface, followed by
// its choices, except Archive, which has no arguments. Packages that can't be read are skipped.
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
		add := func(kind Kind, name damllf.Name, choice string, ofInterface bool, expr, beside *damllf.TypeExpr) {
			k := key{kind, decoded.Name, name.Module, name.Entity, choice}
			if all[k] == nil {
				all[k] = &Subject{Kind: kind, Package: decoded.Name, Module: name.Module, Entity: name.Entity, Choice: choice,
					OfInterface: ofInterface}
			}
			all[k].definitions = append(all[k].definitions, definition{decoded.Version, id, expr, beside})
		}
		choices := func(name damllf.Name, ofInterface bool, of map[string]damllf.Choice) {
			for choice, c := range of {
				if choice != "Archive" {
					add(Choice, name, choice, ofInterface, c.Argument, c.Result)
				}
			}
		}
		for name, t := range decoded.Templates {
			add(Template, name, "", false, t.Payload, t.Key)
			choices(name, false, t.Choices)
		}
		for name, i := range decoded.Interfaces {
			add(Interface, name, "", false, i.View, nil)
			choices(name, true, i.Choices)
		}
	}
	list := slices.Collect(maps.Values(all))
	slices.SortFunc(list, func(a, b *Subject) int {
		return cmp.Or(strings.Compare(a.Owner(), b.Owner()), strings.Compare(a.Choice, b.Choice),
			strings.Compare(string(a.Kind), string(b.Kind)))
	})
	for _, s := range list {
		slices.SortFunc(s.definitions, func(a, b definition) int {
			return cmp.Or(CompareVersions(a.version, b.version), strings.Compare(a.id, b.id))
		})
	}
	return list, nil
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

const (
	mostCandidates = 10
	// longestName is how many bytes of a name are compared with others.
	longestName = 1000
)

func (e *NameError) Error() string {
	if e.Ambiguous {
		return fmt.Sprintf("%q is the name of several: %s", e.Name, strings.Join(e.Candidates, ", "))
	}
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("there is no template or interface %q, and none with a name like it", e.Name)
	}
	return fmt.Sprintf("there is no template or interface %q; there are %s", e.Name, strings.Join(e.Candidates, ", "))
}

// Find returns the subjects of one template or interface: itself and its choices. name is package:Module:Entity, in
// which the package may have a # before it or be an id, or in short package:Entity, Module:Entity or Entity. The error
// is a *NameError.
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
	case rest != qualified && rest != s.Entity:
		return false
	case strings.TrimPrefix(pkg, "#") == s.Package:
		return true
	}
	return slices.ContainsFunc(s.definitions, func(d definition) bool { return d.id == pkg })
}

// likeness says how much an owner's name is like one that was asked for.
type likeness struct {
	begins bool // with what the name begins with, which may be a package
	first  int  // the letters with which both the entity and the name's last word begin
	shared int  // the most letters in a row that a word of the name and the entity share; 0: too few
}

func (l likeness) compare(other likeness) int {
	switch {
	case l.begins != other.begins && l.begins:
		return 1
	case l.begins != other.begins:
		return -1
	}
	return cmp.Or(cmp.Compare(l.first, other.first), cmp.Compare(l.shared, other.shared))
}

// alike returns owners with names like one, the most alike first, or all if there are few.
func alike(subjects []*Subject, name string) []string {
	name = strings.ToLower(strings.TrimPrefix(name[:min(len(name), longestName)], "#"))
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(":.#", r) })
	known := map[string]likeness{}
	for _, s := range subjects {
		if _, done := known[s.Owner()]; done || len(words) == 0 {
			known[s.Owner()] = known[s.Owner()]
			continue
		}
		entity := strings.ToLower(s.Entity)
		l := likeness{begins: len(words[0]) > 2 && strings.HasPrefix(strings.ToLower(s.Owner()), words[0])}
		for _, word := range words {
			// A half is shared by names of which one letter in the middle is wrong.
			if n := run(word, entity); n > 2 && 2*n >= min(len(word), len(entity)) {
				l.shared = max(l.shared, n)
			}
		}
		last := words[len(words)-1]
		for l.first < min(len(last), len(entity)) && last[l.first] == entity[l.first] {
			l.first++
		}
		known[s.Owner()] = l
	}
	list := slices.Sorted(maps.Keys(known))
	which := func(is func(likeness) bool) []string {
		return slices.DeleteFunc(slices.Clone(list), func(owner string) bool { return !is(known[owner]) })
	}
	likely := which(func(l likeness) bool { return l.shared > 0 })
	if len(likely) == 0 {
		likely = which(func(l likeness) bool { return l.begins })
	}
	if len(likely) > 0 || len(list) > mostCandidates {
		list = likely
	}
	slices.SortStableFunc(list, func(a, b string) int { return known[b].compare(known[a]) })
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
