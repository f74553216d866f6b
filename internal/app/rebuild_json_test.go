package app

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// members is a JSON object of the server in the making: its values are members, []members, or JSON.
type members map[string]any

// extra puts members back that have no column, and returns those that belong to another level, by their mark.
func (m members) extra(extra jsontext.Value) map[string]jsontext.Value {
	elsewhere := map[string]jsontext.Value{}
	for name, value := range object(extra) {
		if strings.HasPrefix(name, "$") {
			elsewhere[name] = value
			continue
		}
		m[name] = value
	}
	return elsewhere
}

// merge puts the members of a JSON object in, level by level.
func (m members) merge(more jsontext.Value) members {
	for name, value := range object(more) {
		if level, ok := m[name].(members); ok {
			level.merge(value)
			continue
		}
		m[name] = value
	}
	return m
}

// object reads the members of a JSON object; anything else has none. A value keeps its bytes.
func object(value jsontext.Value) map[string]jsontext.Value {
	all := map[string]jsontext.Value{}
	if value.Kind() != '{' {
		return all
	}
	dec := reading(value)
	for dec.PeekKind() != '}' {
		name := must(dec.ReadToken()).String()
		all[name] = must(dec.ReadValue()).Clone()
	}
	return all
}

func list(value jsontext.Value) []jsontext.Value {
	var all []jsontext.Value
	dec := reading(value)
	for dec.PeekKind() != ']' {
		all = append(all, must(dec.ReadValue()).Clone())
	}
	return all
}

// reading has read the bracket with which the value begins.
func reading(value jsontext.Value) *jsontext.Decoder {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowInvalidUTF8(true))
	must(dec.ReadToken())
	return dec
}

// must is for JSON that a decoder has passed before.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func names(text string) []string { return strings.Fields(text) }

// comparable makes maps, lists and texts of an element, out of which the exceptions have gone. An update's events that
// do not tell their offset have the update's.
func comparable(name string, value any, update string) any {
	raw, isJSON := value.(jsontext.Value)
	switch {
	case isJSON && raw.Kind() == '{' && (name == "" || isLevel(name)):
		m := members{}
		for name, value := range object(raw) {
			m[name] = value
		}
		return comparable(name, m, update)
	case isJSON && raw.Kind() == '[' && slices.Contains(lists, name):
		var items []any
		for _, item := range list(raw) {
			items = append(items, comparable("", item, update))
		}
		return ordered(name, items)
	case isJSON && raw.Kind() == '[' && slices.Contains(sets, name):
		return setOf(raw)
	case isJSON && raw.Kind() == '"' && slices.Contains(times, name):
		text := string(must(jsontext.AppendUnquote(nil, raw)))
		return must(time.Parse(time.RFC3339Nano, text)).UTC().Format(time.RFC3339Nano)
	case isJSON:
		return canonical(raw)
	}
	if items, ok := value.([]members); ok {
		var all []any
		for _, item := range items {
			all = append(all, comparable("", item, update))
		}
		return ordered(name, all)
	}
	out := map[string]any{}
	for member, value := range value.(members) {
		if raw, ok := value.(jsontext.Value); ok && (raw == nil || raw.Kind() == 'n') {
			continue
		}
		if member == "unassignId" {
			member = "reassignmentId"
		}
		value := comparable(member, value, update)
		if items, ok := value.([]any); ok && len(items) == 0 && member == "interfaceViews" {
			continue
		}
		out[member] = value
	}
	if out["nodeId"] != nil && update != "" && (out["offset"] == nil || out["offset"] == "0") {
		out["offset"] = update
	}
	return out
}

// ordered brings events into the order of their node ids, those of unknown kinds last, and interface views into that of
// their interfaces.
func ordered(name string, items []any) []any {
	switch name {
	case "events":
		slices.SortStableFunc(items, func(a, b any) int { return nodeOf(a) - nodeOf(b) })
	case "interfaceViews":
		slices.SortStableFunc(items, func(a, b any) int { return strings.Compare(interfaceOf(a), interfaceOf(b)) })
	}
	return items
}

func interfaceOf(view any) string { return fmt.Sprint(view.(map[string]any)["interfaceId"]) }

// setOf is what a list says as a set: each element once, in order.
func setOf(value jsontext.Value) (set []any) {
	var texts []string
	for _, item := range list(value) {
		texts = append(texts, canonical(item))
	}
	slices.Sort(texts)
	for _, text := range slices.Compact(texts) {
		set = append(set, text)
	}
	return set
}

func nodeOf(event any) int {
	for variant, value := range event.(map[string]any) {
		inner, known := value.(map[string]any)
		if !known || !isLevel(variant) {
			continue
		}
		for _, level := range []any{inner, inner["createdEvent"], inner["value"]} {
			if level, ok := level.(map[string]any); ok && level["nodeId"] != nil {
				return must(strconv.Atoi(level["nodeId"].(string)))
			}
		}
		return 0 // topology events have no node ids, and keep their order
	}
	return math.MaxInt32
}

var tooDeep = bytes.Repeat([]byte("["), 1001)

// canonical is one text for all ways of writing a value that jsonb takes for the same.
func canonical(value jsontext.Value) string {
	switch value.Kind() {
	case '{':
		var all []string
		for name, member := range object(value) {
			all = append(all, strconv.Quote(name)+":"+canonical(member))
		}
		sort.Strings(all)
		return "{" + strings.Join(all, ",") + "}"
	case '[':
		if bytes.HasPrefix(value, tooDeep) {
			return string(value) // jsonb refuses it: only the same bytes are the same
		}
		var all []string
		for _, item := range list(value) {
			all = append(all, canonical(item))
		}
		return "[" + strings.Join(all, ",") + "]"
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return string(value) // half of a surrogate pair: only the same bytes are the same
		}
		return strconv.Quote(string(text))
	case '0':
		if _, exponent, ok := bytes.Cut(bytes.ToLower(value), []byte("e")); ok && len(exponent) > 4 {
			return string(value) // out of numeric's range: only the same bytes are the same
		}
		number, _ := new(big.Rat).SetString(string(value))
		return number.RatString()
	default:
		return string(value)
	}
}

// differences lists where two results of comparable differ.
func differences(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			break
		}
		var all []string
		for name, value := range want {
			all = append(all, differences(path+"."+name, value, got[name])...)
		}
		for name, value := range got {
			if _, ok := want[name]; !ok {
				all = append(all, differences(path+"."+name, nil, value)...)
			}
		}
		sort.Strings(all)
		return all
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			break
		}
		var all []string
		for i := range want {
			all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), want[i], got[i])...)
		}
		return all
	default:
		if want == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: served %.300v, rebuilt %.300v", path, want, got)}
}
