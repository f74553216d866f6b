package typed

import (
	"fmt"
	"slices"
	"strings"
)

// FieldError means that a path leads to no column, or to one that can't be indexed.
type FieldError struct {
	Path, Of   string
	Problem    string   // what is wrong with it
	Candidates []string // similar paths that can be indexed, at most mostCandidates
}

func (e *FieldError) Error() string {
	text := fmt.Sprintf("%q of %s: %s", e.Path, e.Of, e.Problem)
	if len(e.Candidates) > 0 {
		text += "; there are " + strings.Join(e.Candidates, ", ")
	}
	return text
}

// Field returns the column of a field that can be indexed. path has dots (wallet.holder), or is the column's name in a
// view (wallet_holder). That of a variant means its constructor. The error is a *FieldError.
func (shape Shape) Field(s *Subject, path string) (Column, error) {
	wrong := &FieldError{Path: path, Of: s.String(), Problem: "there is no such field"}
	var within []string
	for _, p := range shape.parts {
		name := pathName(p.path)
		if column := columnName(p.path); name != path && column != path && shadowed[s.Kind]+column != path {
			if strings.HasPrefix(name, path+".") && p.sql != "jsonb" {
				within = append(within, name)
			}
			continue
		}
		if p.sql != "jsonb" {
			return Column{Name: columnName(p.path), Path: p.path, Type: p.sql}, nil
		}
		wrong.Problem = "it is no single value but " + p.daml
	}
	if len(within) > 0 {
		wrong.Problem = "it is a record of several fields"
	} else {
		for _, p := range shape.parts {
			if p.sql != "jsonb" {
				within = append(within, pathName(p.path))
			}
		}
		if likely := slices.DeleteFunc(slices.Clone(within), func(name string) bool { return !similar(name, path) }); len(
			likely) > 0 {
			within = likely
		}
	}
	wrong.Candidates = within[:min(len(within), mostCandidates)]
	return Column{}, wrong
}

// PublishedField returns the column of a field among those that a view has published, if it can be indexed. path is as
// Shape.Field takes it.
func PublishedField(columns []Column, path string) (Column, bool) {
	for _, c := range columns {
		own := len(c.Path) > 0 && !strings.HasPrefix(c.Path[0], "@") // not of the value beside
		if own && c.Type != "jsonb" && (c.PathName() == path || c.Name == path) {
			return c, true
		}
	}
	return Column{}, false
}

// similar reports whether the last step of one path is part of the other's, ignoring case.
func similar(a, b string) bool {
	a, b = strings.ToLower(a[strings.LastIndex(a, ".")+1:]), strings.ToLower(b[strings.LastIndex(b, ".")+1:])
	return b != "" && (strings.Contains(a, b) || strings.Contains(b, a))
}

// pathName returns a path as people write it: fields and constructors with dots between them.
func pathName(path []string) string {
	var names []string
	for _, step := range path {
		if step != "#tag" {
			names = append(names, strings.TrimLeft(step, "=@"))
		}
	}
	return strings.Join(names, ".")
}

// PathName returns the column's path as Field takes it.
func (c Column) PathName() string { return pathName(c.Path) }
