package typed

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"ledgerindexer/internal/features/damllf"
	"ledgerindexer/ledger"
)

// Packages reads packages for the types that they define. It caches them, and is not safe for concurrent use.
type Packages struct {
	// Content returns the content of a package, or an error that wraps ledger.ErrNotFound if there is none.
	Content func(id string) ([]byte, error)

	read   map[string]*damllf.Package
	failed map[string]error // of those that are missing, damaged or can't be read
}

// mostFields limits the listed fields of one value: more than a table can have columns.
const mostFields = 5000

// Forget empties the cache.
func (p *Packages) Forget() { p.read, p.failed = nil, nil }

// Decode returns a package. The error is damllf.ErrNoPackage if it is missing or damaged.
func (p *Packages) Decode(id string) (*damllf.Package, error) {
	if known := p.read[id]; known != nil {
		return known, nil
	}
	if err := p.failed[id]; err != nil {
		return nil, err
	}
	content, err := p.Content(id)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		err = damllf.ErrNoPackage
	case err != nil:
		return nil, &contentError{err}
	default:
		var decoded *damllf.Package
		if decoded, err = p.decode(id, content); err == nil {
			return decoded, nil
		}
		if errors.Is(err, damllf.ErrHash) {
			err = damllf.ErrNoPackage
		}
	}
	if p.failed == nil {
		p.failed = map[string]error{}
	}
	p.failed[id] = err
	return nil, err
}

// decode decodes a package, which may have been missing before.
func (p *Packages) decode(id string, content []byte) (*damllf.Package, error) {
	decoded, err := damllf.Decode(id, content)
	if err != nil {
		return nil, err
	}
	if p.read == nil {
		p.read = map[string]*damllf.Package{}
	}
	p.read[id] = decoded
	delete(p.failed, id)
	return decoded, nil
}

// contentError is an error of Packages.Content, which says nothing about a type.
type contentError struct{ error }

func (e *contentError) Unwrap() error { return e.error }

// Resolver returns a resolver that looks packages up here.
func (p *Packages) Resolver() damllf.Resolver { return damllf.Resolver{Package: p.Decode} }

// Read returns a package with its types. A package or type that can't be read is no error: the result says why. Errors
// are those of Content, and damllf.ErrHash if the content is not the package's.
func (p *Packages) Read(id string, content []byte) (ledger.Package, error) {
	result := ledger.Package{ID: id, Content: content}
	decoded, err := p.decode(id, content)
	switch {
	case errors.Is(err, damllf.ErrHash):
		return ledger.Package{}, err
	case err != nil:
		result.Failure = err.Error()
		return result, nil
	}
	result.Name, result.Version, result.Language, result.Upgrades = decoded.Name, decoded.Version, decoded.Language,
		decoded.Upgrades
	r := reading{packages: p, resolver: p.Resolver(), needs: map[string]bool{}}
	for name, t := range decoded.Templates {
		d := r.definition(name, t.Implements, t.Choices)
		d.Key = t.Key != nil
		r.fields(&d, ledger.PartPayload, "", t.Payload)
		if t.Key != nil {
			r.fields(&d, ledger.PartKey, "", t.Key)
		}
		result.Definitions = append(result.Definitions, d)
	}
	for name, i := range decoded.Interfaces {
		d := r.definition(name, i.Requires, i.Choices)
		d.Interface = true
		r.fields(&d, ledger.PartView, "", i.View)
		result.Definitions = append(result.Definitions, d)
	}
	slices.SortFunc(result.Definitions, func(a, b ledger.Definition) int {
		return cmp.Or(strings.Compare(a.Module, b.Module), strings.Compare(a.Entity, b.Entity))
	})
	result.Needs = slices.Sorted(maps.Keys(r.needs))
	slices.Sort(r.failures)
	if len(r.failures) > 0 {
		result.Failure = r.failures[0]
	}
	return result, r.err
}

// reading computes the types of a package.
type reading struct {
	packages *Packages
	resolver damllf.Resolver
	needs    map[string]bool
	failures []string
	err      error // of Content
}

func (r *reading) definition(name damllf.Name, interfaces []damllf.Ref,
	choices map[string]damllf.Choice) ledger.Definition {
	d := ledger.Definition{Module: name.Module, Entity: name.Entity}
	for _, i := range interfaces {
		d.Interfaces = append(d.Interfaces, i.String())
		if _, err := r.packages.Decode(i.Package); err != nil {
			r.note(err, i.String(), i.Package)
		}
	}
	slices.Sort(d.Interfaces)
	for _, c := range slices.Sorted(maps.Keys(choices)) {
		d.Choices = append(d.Choices, ledger.Choice{
			Name: c, Consuming: choices[c].Consuming,
			Argument: r.fields(&d, ledger.PartArgument, c, choices[c].Argument), Result: r.fields(&d, ledger.PartResult, c,
				choices[c].Result),
		})
	}
	return d
}

// note records why a part of a package is not known.
func (r *reading) note(err error, what string, missing ...string) {
	var content *contentError
	var absent *damllf.MissingError
	switch {
	case errors.As(err, &content):
		r.err = err
	case errors.As(err, &absent):
		missing = absent.Packages
		fallthrough
	case errors.Is(err, damllf.ErrNoPackage):
		for _, id := range missing {
			r.needs[id] = true
		}
	default:
		r.failures = append(r.failures, what+": "+err.Error())
	}
}

// fields appends the fields of a type, and returns the type's description; empty if it is not known.
func (r *reading) fields(d *ledger.Definition, part, choice string, expr *damllf.TypeExpr) string {
	t, err := r.resolver.Resolve(expr)
	if err != nil {
		what := d.Module + ":" + d.Entity + ", " + part
		if choice != "" {
			what += " of " + choice
		}
		r.note(err, what)
		return ""
	}
	l := lister{part: part, choice: choice}
	if t.Kind != damllf.Record {
		l.add("", t)
	}
	l.within("", t)
	d.Fields = append(d.Fields, l.fields...)
	return t.String()
}

// lister lists the fields of a value.
type lister struct {
	part, choice string
	fields       []ledger.Field
}

func (l *lister) add(path string, t *damllf.Type) {
	if len(l.fields) < mostFields {
		l.fields = append(l.fields, ledger.Field{Part: l.part, Choice: l.choice, Path: path, Type: t.String()})
	}
}

func (l *lister) within(path string, t *damllf.Type) {
	if len(l.fields) >= mostFields {
		return
	}
	switch t.Kind {
	case damllf.Optional:
		l.within(path, t.Args[0])
	case damllf.List, damllf.TextMap:
		l.within(path+"[]", t.Args[0])
	case damllf.GenMap:
		l.within(path+"[key]", t.Args[0])
		l.within(path+"[]", t.Args[1])
	case damllf.Record, damllf.Variant:
		for _, f := range t.Fields {
			at := f.Name
			if path != "" {
				at = path + "." + f.Name
			}
			l.add(at, f.Type)
			l.within(at, f.Type)
		}
	}
}
