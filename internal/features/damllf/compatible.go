package damllf

import (
	"fmt"
	"slices"
)

// Compatible returns an error unless newer is a valid upgrade of older: records may get more fields at the end, all
// Optional, variants and enums more constructors at the end, also within the type; nothing else may change. Definitions
// are compared by name, not by the version of their package. The error has the path of the first difference, such as
// "config.fees[].rate".
func Compatible(older, newer *Type) error {
	return compatible(older, newer, "")
}

func compatible(older, newer *Type, path string) error {
	if older.Kind != newer.Kind || older.Scale != newer.Scale || older.Ref.Name != newer.Ref.Name {
		return incompatible(path, "%s became %s", older, newer)
	}
	for i, a := range older.Args {
		if err := compatible(a, newer.Args[i], path+argumentPath(older.Kind, i)); err != nil {
			return err
		}
	}
	if err := extended("constructor", older.Constructors, newer.Constructors, path); err != nil {
		return err
	}
	what := "field"
	if older.Kind == Variant {
		what = "constructor"
	}
	if err := extended(what, fieldNames(older), fieldNames(newer), path); err != nil {
		return err
	}
	for i, f := range newer.Fields {
		at := join(path, f.Name)
		if i < len(older.Fields) {
			if err := compatible(older.Fields[i].Type, f.Type, at); err != nil {
				return err
			}
		} else if newer.Kind == Record && f.Type.Kind != Optional {
			return incompatible(at, "the field was added and is not Optional, but %s", f.Type)
		}
	}
	return nil
}

// extended returns an error unless newer begins with the older names, in their order.
func extended(what string, older, newer []string, path string) error {
	for i, name := range older {
		if i < len(newer) && newer[i] == name {
			continue
		}
		if j := slices.Index(newer, name); j >= 0 {
			return incompatible(join(path, name), "the %s was number %d and became number %d", what, i+1, j+1)
		}
		return incompatible(join(path, name), "the %s is gone", what)
	}
	return nil
}

func fieldNames(t *Type) []string {
	var names []string
	for _, f := range t.Fields {
		names = append(names, f.Name)
	}
	return names
}

// argumentPath returns the step of a path into a type's argument.
func argumentPath(kind Kind, i int) string {
	switch {
	case kind == Optional:
		return ""
	case kind == GenMap && i == 0:
		return "[key]"
	}
	return "[]"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func incompatible(path, format string, args ...any) error {
	if path == "" {
		path = "the type itself"
	}
	return fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
}
