package damllf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits on a type that a Resolver puts together from the packages that it refers to.
const (
	// maxDepth limits the depth of nested types.
	maxDepth = 200
	// maxParts limits the parts of a type: many more than a table can have columns.
	maxParts = 100_000
)

// ErrNoPackage is returned by Resolver.Package for a package that it does not have.
var ErrNoPackage = errors.New("the package is not there")

// MissingError names the packages that a type needs and that are missing.
type MissingError struct {
	Packages []string // ids, sorted
}

// Error lists the packages.
func (e *MissingError) Error() string {
	return "packages that its types are of are not there: " + strings.Join(e.Packages, ", ")
}

// Resolver follows the references of types through packages.
type Resolver struct {
	// Package returns a package by its id, or ErrNoPackage. Any other error ends the resolution.
	Package func(id string) (*Package, error)
}

// Resolve returns a type with everything that it refers to. A type within itself is Recursive.
//
// The error is a *MissingError if packages are missing: these may in turn need others. Any other error is permanent:
// the type is invalid or too large.
func (r Resolver) Resolve(t *TypeExpr) (*Type, error) {
	n := resolution{lookup: r.Package, packages: map[string]*Package{}}
	resolved, err := n.resolve(t, place{})
	if err != nil {
		return nil, err
	}
	if len(n.missing) > 0 {
		slices.Sort(n.missing)
		return nil, &MissingError{Packages: n.missing}
	}
	return resolved, nil
}

// resolution is the work on one type.
type resolution struct {
	lookup   func(id string) (*Package, error)
	packages map[string]*Package // those looked up; nil: missing
	missing  []string
	parts    int
}

// place is the context of a type expression.
type place struct {
	depth  int
	params *binding // the arguments of the type parameters
	within *visit   // the types whose definitions enclose it
}

// binding has the arguments of a definition's parameters, with the context in which they are resolved.
type binding struct {
	params []string
	args   []*TypeExpr
	at     place
}

// visit is a type that is being resolved, within others.
type visit struct {
	ref Ref
	up  *visit
}

func (v *visit) has(r Ref) bool {
	for ; v != nil; v = v.up {
		if v.ref == r {
			return true
		}
	}
	return false
}

func (n *resolution) resolve(t *TypeExpr, at place) (*Type, error) {
	n.parts++
	at.depth++
	if n.parts > maxParts {
		return nil, fmt.Errorf("the type has more than %d parts", maxParts)
	}
	if at.depth > maxDepth {
		return nil, fmt.Errorf("the type's parts stand more than %d deep within each other", maxDepth)
	}
	switch t.Form {
	case Variable:
		arg, there, err := at.argument(t)
		if err != nil {
			return nil, err
		}
		return n.resolve(arg, there)
	case Constructor:
		return n.data(t, at)
	case Primitive:
		return n.builtin(t, at)
	case Synonym:
		return n.expand(t, at)
	case Number:
		return nil, errors.New("a number stands where a type must be")
	default:
		return nil, fmt.Errorf("%s is no type of data", t.Var)
	}
}

// argument returns the argument of a type parameter, and its context, with the depth of the parameter.
func (p place) argument(t *TypeExpr) (*TypeExpr, place, error) {
	if len(t.Args) > 0 {
		return nil, p, fmt.Errorf("type parameter %s is applied to arguments, which no type of data is", t.Var)
	}
	if p.params != nil {
		if i := slices.Index(p.params.params, t.Var); i >= 0 {
			there := p.params.at
			there.depth = p.depth
			return p.params.args[i], there, nil
		}
	}
	return nil, p, fmt.Errorf("type parameter %s has no definition", t.Var)
}

func (p place) bind(params []string, t *TypeExpr) (place, error) {
	if len(params) != len(t.Args) {
		return p, fmt.Errorf("%s has %d type parameters and is given %d", t.Ref, len(params), len(t.Args))
	}
	inner := p
	inner.params = &binding{params: params, args: t.Args, at: p}
	return inner, nil
}

// data resolves a record, a variant or an enum.
func (n *resolution) data(t *TypeExpr, at place) (*Type, error) {
	if at.within.has(t.Ref) {
		return &Type{Kind: Recursive, Ref: t.Ref}, nil
	}
	p, err := n.get(t.Ref.Package)
	if p == nil {
		return &Type{}, err
	}
	def := p.DataTypes[t.Ref.Name]
	if def == nil {
		return nil, fmt.Errorf("package %s (%s %s) has no type of data %s", p.ID, p.Name, p.Version, t.Ref.Name)
	}
	inner, err := at.bind(def.Params, t)
	if err != nil {
		return nil, err
	}
	inner.within = &visit{ref: t.Ref, up: at.within}
	resolved := &Type{Kind: def.Kind, Ref: t.Ref, Constructors: def.Constructors}
	if n.parts += len(def.Constructors); n.parts > maxParts {
		return nil, fmt.Errorf("%s: the type has more than %d parts", t.Ref, maxParts)
	}
	for _, f := range def.Fields {
		part, err := n.resolve(f.Type, inner)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Ref.Name, f.Name, err)
		}
		resolved.Fields = append(resolved.Fields, Field{Name: f.Name, Type: part})
	}
	return resolved, nil
}

// expand resolves a synonym.
func (n *resolution) expand(t *TypeExpr, at place) (*Type, error) {
	p, err := n.get(t.Ref.Package)
	if p == nil {
		return &Type{}, err
	}
	s := p.synonyms[t.Ref.Name]
	if s == nil {
		return nil, fmt.Errorf("package %s (%s %s) has no synonym %s", p.ID, p.Name, p.Version, t.Ref.Name)
	}
	inner, err := at.bind(s.params, t)
	if err != nil {
		return nil, err
	}
	return n.resolve(s.body, inner)
}

// get returns a package; nil if it is missing or can't be looked up.
func (n *resolution) get(id string) (*Package, error) {
	if p, ok := n.packages[id]; ok {
		return p, nil
	}
	p, err := n.lookup(id)
	if errors.Is(err, ErrNoPackage) {
		n.missing = append(n.missing, id)
		p, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up package %s: %w", id, err)
	}
	n.packages[id] = p
	return p, nil
}

// builtins are the types of the language that stored values can have, by their numbers.
var builtins = map[Builtin]struct {
	kind Kind
	args int
}{
	0: {Unit, 0}, 1: {Bool, 0}, 2: {Int64, 0}, 3: {Date, 0}, 4: {Timestamp, 0}, 5: {Numeric, 1}, 6: {Party, 0},
	7: {Text, 0},
	8: {ContractID, 1}, 9: {Optional, 1}, 10: {List, 1}, 11: {GenMap, 2}, 19: {TextMap, 1},
}

func (n *resolution) builtin(t *TypeExpr, at place) (*Type, error) {
	b, ok := builtins[t.Builtin]
	if !ok {
		return nil, fmt.Errorf("type %d of the language is no type of data", int(t.Builtin))
	}
	if len(t.Args) != b.args {
		return nil, fmt.Errorf("%s has %d type parameters and is given %d", b.kind, b.args, len(t.Args))
	}
	resolved := &Type{Kind: b.kind}
	if b.kind == Numeric || b.kind == ContractID {
		return resolved, describe(resolved, t.Args[0], at)
	}
	for _, a := range t.Args {
		arg, err := n.resolve(a, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.kind, err)
		}
		resolved.Args = append(resolved.Args, arg)
	}
	return resolved, nil
}

// describe sets the scale of a Numeric, or the template or interface of a ContractID, unresolved, because it is no part
// of the value.
func describe(resolved *Type, arg *TypeExpr, at place) error {
	for arg.Form == Variable {
		var err error
		if arg, at, err = at.argument(arg); err != nil {
			return err
		}
	}
	if resolved.Kind == ContractID {
		if arg.Form == Constructor {
			resolved.Ref = arg.Ref
		}
		return nil
	}
	if arg.Form != Number {
		return errors.New("the scale of a Numeric is no number")
	}
	resolved.Scale = arg.Nat
	return nil
}
