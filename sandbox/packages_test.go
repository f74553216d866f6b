package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf"
	"ledgerindexer/internal/tools/openapi"
	"ledgerindexer/internal/tools/recorded"
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

func TestPackagesAreServed(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		c := serve(t, grown(t, Options{Seed: 1}, 10), ServerOptions{Version: version})
		api := openapi.Ledger(t, version)
		listed := c.do(http.MethodGet, "/v2/packages", "")
		require.Equal(t, 200, listed.status)
		require.NoError(t, api.CheckResponse("GET", "/v2/packages", 200, listed.body))
		ids := listed.object()["packageIds"].([]any)
		require.Len(t, ids, len(knownPackages.uploaded))
		for _, id := range ids {
			a := c.do(http.MethodGet, "/v2/packages/"+id.(string), "")
			require.Equal(t, 200, a.status)
			require.Equal(t, "application/octet-stream", a.kind)
			p, err := damllf.Decode(id.(string), a.body)
			require.NoError(t, err)
			require.Equal(t, knownPackages.uploaded[p.ID].Name, p.Name)
			require.Equal(t, knownPackages.uploaded[p.ID].Version, p.Version)
		}
		for path, status := range map[string]int{
			strings.Repeat("0", 64): 404, packageID("foreign-1"): 404, strings.Repeat("0", 65): 400, "a/b": 404, "": 400,
		} {
			require.Equal(t, status, c.do(http.MethodGet, "/v2/packages/"+path, "").status, path)
		}
		require.Equal(t, 404, c.do(http.MethodPost, "/v2/packages/"+packageID("bank-1"), "").status)
	}
	strict := serve(t, grown(t, Options{Seed: 1}, 1), ServerOptions{StrictInterface: true})
	require.Equal(t, 404, strict.do(http.MethodGet, "/v2/packages", "").status)
	require.Equal(t, 404, strict.do(http.MethodGet, "/v2/packages/"+packageID("bank-1"), "").status)
}

// The packages have the templates, interfaces and choices of a participant, and no others.
func TestPackagesDescribeTheCatalogue(t *testing.T) {
	t.Parallel()
	r := decodedPackages(t)
	described := map[string]int{}
	for _, d := range interfaces {
		p, err := r.Package(d.packageID)
		require.NoError(t, err)
		require.Equal(t, d.packageName, p.Name)
		require.Contains(t, p.Interfaces, damllf.Name{Module: d.module, Entity: d.entity})
		described[d.packageID]++
	}
	for k := range kind(kindCount) {
		if !k.exists() || k/2 >= templateCount { // the participant has none of the packages of parties hosted elsewhere
			continue
		}
		d := k.template()
		p, err := r.Package(k.packageID())
		require.NoError(t, err)
		require.Equal(t, d.packageName, p.Name)
		described[k.packageID()]++
		template := p.Templates[damllf.Name{Module: d.module, Entity: d.entity}]
		require.NotNil(t, template, d.entity)
		require.Equal(t, d.keyed, template.Key != nil, d.entity)
		var own, implemented, refs []string
		for _, ch := range d.choices {
			if ch.through < 0 {
				own = append(own, ch.name)
				require.Equal(t, ch.consuming, template.Choices[ch.name].Consuming, ch.name)
				continue
			}
			through := interfaces[ch.through]
			api, err := r.Package(through.packageID)
			require.NoError(t, err)
			c, ok := api.Interfaces[damllf.Name{Module: through.module, Entity: through.entity}].Choices[ch.name]
			require.True(t, ok, ch.name)
			require.Equal(t, ch.consuming, c.Consuming)
		}
		require.ElementsMatch(t, own, slices.Collect(maps.Keys(template.Choices)), d.entity)
		for _, i := range d.interfaces {
			implemented = append(implemented, interfaces[i].id())
		}
		for _, ref := range template.Implements {
			refs = append(refs, ref.String())
		}
		require.ElementsMatch(t, implemented, refs, d.entity)
	}
	for id := range described {
		p, err := r.Package(id)
		require.NoError(t, err)
		require.Equal(t, described[id], len(p.Templates)+len(p.Interfaces), p.Name)
	}
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

// What a real participant served is of its type, too, as these tests understand types.
func TestRecordedValuesFitTheirTypes(t *testing.T) {
	t.Parallel()
	packages := map[string]*damllf.Package{}
	for id, payload := range recorded.Packages(t) {
		p, err := damllf.Decode(id, payload)
		require.NoError(t, err)
		packages[id] = p
	}
	r := damllf.Resolver{Package: func(id string) (*damllf.Package, error) {
		if p := packages[id]; p != nil {
			return p, nil
		}
		return nil, damllf.ErrNoPackage
	}}
	types, kinds, n := map[string]*damllf.Type{}, map[damllf.Kind]int{}, 0
	for i, e := range recorded.Exchanges(t) {
		var answer any
		_ = json.Unmarshal([]byte(e.Answer), &answer) // some are text
		visit(answer, func(kind string, o map[string]any) {
			id, _ := o["representativePackageId"].(string)
			p := packages[id]
			if kind != "CreatedEvent" && kind != "createdEvent" || p == nil || o["createArgument"] == nil {
				return
			}
			parts := strings.SplitN(o["templateId"].(string), ":", 3)
			template := p.Templates[damllf.Name{Module: parts[1], Entity: parts[2]}]
			if key := id + parts[1] + parts[2]; types[key] == nil {
				typ, err := r.Resolve(template.Payload)
				require.NoError(t, err)
				types[key] = typ
			}
			require.NoError(t, fits(types[id+parts[1]+parts[2]], o["createArgument"], kinds), "exchange %d", i)
			n++
		})
	}
	require.Greater(t, n, 1000)
	require.Positive(t, kinds[damllf.GenMap])
}

// A later version is what the rules of upgrades allow, unless it is said to break them.
func TestVersionsAreUpgrades(t *testing.T) {
	t.Parallel()
	r := decodedPackages(t)
	compare := func(older, newer string) (different error) {
		a, err := r.Package(packageID(older))
		require.NoError(t, err)
		b, err := r.Package(packageID(newer))
		require.NoError(t, err)
		for name, template := range a.Templates {
			if b.Templates[name] == nil {
				continue
			}
			was, err := r.Resolve(template.Payload)
			require.NoError(t, err)
			is, err := r.Resolve(b.Templates[name].Payload)
			require.NoError(t, err)
			if err := damllf.Compatible(was, is); err != nil {
				different = err
			}
		}
		return different
	}
	require.NoError(t, compare("bank-1", "bank-2"))
	require.NoError(t, compare("trade-1", "trade-2"))
	require.NoError(t, compare("trade-2", "trade-2-fork"))
	require.NoError(t, compare("splice-amulet-1", "splice-amulet-2"))
	require.Error(t, compare("bank-2", "bank-3"))
}
