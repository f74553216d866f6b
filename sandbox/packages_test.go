package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf"
)

// decodedPackages are all packages as a reader decodes them.
func decodedPackages(t *testing.T) damllf.Resolver {
	t.Helper()
	all := map[string]*damllf.Package{}
	for id, payload := range payloads {
		p, err := damllf.Decode(id, payload)
		require.NoError(t, err)
		all[id] = p
	}
	return damllf.Resolver{Package: func(id string) (*damllf.Package, error) {
		if p := all[id]; p != nil {
			return p, nil
		}
		return nil, damllf.ErrNoPackage
	}}
}

// TestEverythingFitsItsType reads a ledger as the server serves it.
func TestEverythingFitsItsType(t *testing.T) {
	t.Parallel()
	r := decodedPackages(t)
	met, kinds := map[string]int{}, map[damllf.Kind]int{}
	resolved := map[string]*damllf.Type{}
	find := func(id string) (*damllf.Package, damllf.Name) {
		parts := strings.SplitN(id, ":", 3)
		p, err := r.Package(parts[0])
		require.NoError(t, err)
		return p, damllf.Name{Module: parts[1], Entity: parts[2]}
	}
	check := func(what, id string, expr *damllf.TypeExpr, value any) {
		typ := resolved[what+id]
		if typ == nil {
			var err error
			typ, err = r.Resolve(expr)
			require.NoError(t, err, "%s %s", what, id)
			resolved[what+id] = typ
		}
		require.NoError(t, fits(typ, value, kinds), "%s %s", what, id)
		met[what]++
	}
	l := grown(t, Options{Seed: 3}, 2500)
	c := serve(t, l, ServerOptions{ListLimit: 100_000})
	scope := Scope{Shape: LedgerEffects, Interfaces: InterfaceNames()}
	var updates []any
	require.NoError(t, json.Unmarshal(c.do("POST", "/v2/updates", fmt.Sprintf(`{"beginExclusive":0,"endInclusive":%d,"updateFormat":%s}`,
		l.End(), scope.UpdateFormat())).body, &updates))
	forms := map[int]bool{}
	visit(updates, func(kind string, o map[string]any) {
		switch kind {
		case "CreatedEvent":
			id := o["representativePackageId"].(string) + o["templateId"].(string)[64:]
			p, name := find(id)
			check("payload", id, p.Templates[name].Payload, o["createArgument"])
			if o["contractKey"] != nil {
				check("key", id, p.Templates[name].Key, o["contractKey"])
			}
			for _, v := range o["interfaceViews"].([]any) {
				v := v.(map[string]any)
				if v["viewValue"] != nil {
					p, name := find(v["interfaceId"].(string))
					check("view", name.String(), p.Interfaces[name].View, v["viewValue"])
				}
			}
		case "ExercisedEvent":
			id, _ := o["interfaceId"].(string)
			choices := func(p *damllf.Package, n damllf.Name) map[string]damllf.Choice { return p.Interfaces[n].Choices }
			if id == "" {
				id = o["templateId"].(string)
				choices = func(p *damllf.Package, n damllf.Name) map[string]damllf.Choice { return p.Templates[n].Choices }
			}
			p, name := find(id)
			ch, ok := choices(p, name)[o["choice"].(string)]
			require.True(t, ok, "%s %s", id, o["choice"])
			check("argument", id+o["choice"].(string), ch.Argument, o["choiceArgument"])
			check("result", id+o["choice"].(string), ch.Result, o["exerciseResult"])
			forms[resultForm(o["choice"].(string))] = true
		}
	})
	for _, what := range []string{"payload", "key", "view", "argument", "result"} {
		require.Greater(t, met[what], 100, what)
	}
	require.Len(t, forms, resultForms)
	for kind := damllf.Unit; kind < damllf.Recursive; kind++ {
		require.Positive(t, kinds[kind], "no value of type %s is served", kind)
	}
}

// visit calls f for the events in a JSON value.
func visit(v any, f func(kind string, o map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			visit(e, f)
		}
	case map[string]any:
		for key, e := range v {
			if o, ok := e.(map[string]any); ok && strings.HasSuffix(key, "Event") {
				f(key, o)
			}
			visit(e, f)
		}
	}
}

var (
	int64Form = regexp.MustCompile(`^-?[0-9]{1,19}$`)
	// As java.math.BigDecimal writes it, or with a dot.
	numericForm = regexp.MustCompile(`^-?[0-9]{1,38}(\.[0-9]*|(\.[0-9]+)?E-[0-9]+)$`)
)

// fits returns an error where a value is not of a type, and counts the types that it has values of.
func fits(t *damllf.Type, v any, kinds map[damllf.Kind]int) error {
	kinds[t.Kind]++
	text, isText := v.(string)
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	ok := false
	each := func(values []any, of *damllf.Type) error {
		for _, v := range values {
			if err := fits(of, v, kinds); err != nil {
				return err
			}
		}
		return nil
	}
	switch t.Kind {
	case damllf.Unit:
		ok = isObject && len(object) == 0
	case damllf.Bool:
		_, ok = v.(bool)
	case damllf.Int64:
		ok = isText && int64Form.MatchString(text)
	case damllf.Numeric:
		mantissa, exponent, _ := strings.Cut(text, "E-")
		_, fraction, _ := strings.Cut(mantissa, ".")
		moved, _ := strconv.Atoi(exponent)
		ok = isText && numericForm.MatchString(text) && len(fraction)+moved == t.Scale
	case damllf.Date:
		_, err := time.Parse(time.DateOnly, text)
		ok = isText && err == nil
	case damllf.Timestamp:
		_, err := time.Parse(time.RFC3339Nano, text)
		ok = isText && err == nil
	case damllf.Party, damllf.Text, damllf.ContractID:
		ok = isText
	case damllf.Enum:
		ok = isText && slices.Contains(t.Constructors, text)
	case damllf.Optional:
		if t.Args[0].Kind == damllf.Optional {
			return fitsNested(t, v, kinds)
		}
		if v == nil {
			return nil
		}
		return fits(t.Args[0], v, kinds)
	case damllf.List:
		if ok = isList; ok {
			return each(list, t.Args[0])
		}
	case damllf.TextMap:
		if ok = isObject; ok {
			return each(slices.Collect(maps.Values(object)), t.Args[0])
		}
	case damllf.GenMap:
		for _, e := range list {
			pair, _ := e.([]any)
			if len(pair) != 2 {
				return fmt.Errorf("%v is no pair", e)
			}
			if err := fits(t.Args[0], pair[0], kinds); err != nil {
				return err
			}
			if err := fits(t.Args[1], pair[1], kinds); err != nil {
				return err
			}
		}
		ok = isList && slices.IsSortedFunc(list, func(a, b any) int { return compareKeys(a.([]any)[0], b.([]any)[0]) })
	case damllf.Recursive:
		ok = true // a type within itself: it was looked at where it stands first
	case damllf.Variant:
		for _, f := range t.Fields {
			if len(object) == 2 && f.Name == object["tag"] {
				return fits(f.Type, object["value"], kinds)
			}
		}
	case damllf.Record:
		left := len(object)
		for _, f := range t.Fields {
			if left == 0 && isBareOptional(f.Type) {
				continue // at its end
			}
			v, present := object[f.Name]
			if !present {
				return fmt.Errorf("field %s of %s is missing in %v", f.Name, t, object)
			}
			if left--; left == 0 && v == nil {
				return fmt.Errorf("field %s at the end of %v is null", f.Name, object)
			}
			if err := fits(f.Type, v, kinds); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		ok = isObject && left == 0
	}
	if !ok {
		return fmt.Errorf("%v is no %s", v, t)
	}
	return nil
}

// isBareOptional reports whether a type has null for no value.
func isBareOptional(t *damllf.Type) bool {
	return t.Kind == damllf.Optional && t.Args[0].Kind != damllf.Optional
}

// fitsNested is fits of an Optional in or of another: a list, of none or one, at every level.
func fitsNested(t *damllf.Type, v any, kinds map[damllf.Kind]int) error {
	if t.Kind != damllf.Optional {
		return fits(t, v, kinds)
	}
	list, ok := v.([]any)
	if !ok || len(list) > 1 {
		return fmt.Errorf("%v is no %s", v, t)
	}
	if len(list) == 0 {
		return nil
	}
	return fitsNested(t.Args[0], list[0], kinds)
}

// compareKeys compares keys of a GenMap: of numbers, or of anything by its text.
func compareKeys(a, b any) int {
	m, err := strconv.ParseInt(fmt.Sprint(a), 10, 64)
	n, err2 := strconv.ParseInt(fmt.Sprint(b), 10, 64)
	if err == nil && err2 == nil {
		return cmp.Compare(m, n)
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}
