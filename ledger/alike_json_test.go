package ledger

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestAlikeJSON(t *testing.T) {
	t.Parallel()
	for pair, alike := range map[string]bool{
		`{"a":1,"b":2} | {"b":2,"a":1}`:        true,
		`{"a":1} | {"a":1,"new":null}`:         true,
		`{"a":{"x":null}} | {"a":{}}`:          true,
		`{"a":"5.000E-7"} | {"a":"0.0000005"}`: true,
		`"0E-10" | "0.0000000000"`:             true,
		`"0E-10" | "-0.0"`:                     true,
		`"5." | "5"`:                           true,
		`1e2 | 100.0`:                          true,
		`"1E+400" | "1E+401"`:                  false, // more digits than a number may have
		`"\u0061" | "a"`:                       true,
		`[1, 2] | [1,2]`:                       true,
		`"007" | "7"`:                          false,
		`"1.5" | 1.5`:                          false,
		`{"1":1} | {"1.0":1}`:                  false,
		`{"1":1,"1.0":2} | {"1":2,"1.0":1}`:    false,
		`[1,2] | [2,1]`:                        false,
		`[null] | []`:                          false,
		`{"a":""} | {}`:                        false,
		`{"a":[]} | {}`:                        false,
		`{"a":{}} | {}`:                        false,
		`{"a":"1.50"} | {"a":"1.51"}`:          false,
		`{"a":"-1"} | {"a":"1"}`:               false,
		`true | false`:                         false,
		`"a" | "A"`:                            false,
		`"\ud83d" | "\ud83e"`:                  false,
		`"12345678901234567890123" | "12345678901234567890124"`: false,
	} {
		a, b, _ := strings.Cut(pair, " | ")
		require.Equal(t, alike, AlikeJSON(JSON(a), JSON(b)), pair)
		require.Equal(t, alike, AlikeJSON(JSON(b), JSON(a)), pair)
	}
	require.False(t, AlikeJSON(JSON(`{"a":1}`), JSON(`{"a":1}`+"\x00")))
	require.False(t, AlikeJSON(nil, JSON(`{}`)))
	require.False(t, AlikeJSON(nil, JSON(`null`)))
	require.True(t, AlikeExtra(nil, JSON(`{"new": null}`)))
	require.False(t, AlikeExtra(nil, JSON(`{"new": 0}`)))
}

// value is JSON as a server means it, which it renders in many ways.
type value struct {
	members  map[string]*value
	elements []*value
	text     string // quoted
	number   *big.Rat
	inText   bool
	kind     byte // {, [, ", 0, t or n
}

func anyValue(t *rapid.T, depth int) *value {
	v := &value{kind: rapid.SampledFrom([]byte(`{["00tn`)).Draw(t, "kind")}
	if depth == 0 && (v.kind == '{' || v.kind == '[') {
		v.kind = '0'
	}
	switch v.kind {
	case '{':
		v.members = map[string]*value{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			v.members[rapid.StringMatching(`[a-c]|1|1\.0|é"`).Draw(t, "name")] = anyValue(t, depth-1)
		}
	case '[':
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			v.elements = append(v.elements, anyValue(t, depth-1))
		}
	case '"':
		v.text = rapid.StringMatching(`[a-z]{0,3}|alice::1220|00[0-9]{2}|ä\n"`).Draw(t, "text")
	case '0':
		number := rapid.Int64().Draw(t, "number")
		v.number, v.inText = big.NewRat(number, int64(rapid.SampledFrom([]int{1, 10, 1e10}).Draw(t, "scale"))), rapid.Bool().Draw(t, "as text")
	}
	return v
}

// render writes a value in a way that follows from random numbers.
func (v *value) render(r *rand.Rand) string {
	space := strings.Repeat(" ", r.IntN(2))
	switch v.kind {
	case '{':
		var members []string
		for name, member := range v.members { // in any order
			if member.kind == 'n' && r.IntN(2) == 0 {
				continue
			}
			members = append(members, quote(name, r)+space+":"+space+member.render(r))
		}
		if r.IntN(3) == 0 {
			members = append(members, `"unheard of":null`)
		}
		return "{" + strings.Join(members, ","+space) + "}"
	case '[':
		var elements []string
		for _, element := range v.elements {
			elements = append(elements, element.render(r))
		}
		return "[" + strings.Join(elements, space+",") + "]"
	case '"':
		return quote(v.text, r)
	case '0':
		if text := renderNumber(v.number, r); v.inText {
			return `"` + text + `"`
		} else {
			return strings.TrimSuffix(text, ".")
		}
	case 't':
		return "true"
	}
	return "null"
}

func quote(text string, r *rand.Rand) string {
	if r.IntN(2) == 0 {
		quoted, _ := jsontext.AppendQuote(nil, text)
		return string(quoted)
	}
	var escaped strings.Builder
	for _, c := range text {
		fmt.Fprintf(&escaped, `\u%04x`, c)
	}
	return `"` + escaped.String() + `"`
}

// renderNumber writes a number of at most ten digits behind the point as Java may.
func renderNumber(number *big.Rat, r *rand.Rand) string {
	text := number.FloatString(10 + r.IntN(3))
	if r.IntN(2) == 0 {
		text = strings.TrimRight(text, "0")
	}
	if r.IntN(2) == 0 {
		shifted := new(big.Rat).Mul(number, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(7), nil)))
		text = strings.TrimRight(shifted.FloatString(10), "0")
		if strings.HasSuffix(text, ".") {
			text += "0"
		}
		text += "E-7"
	}
	return text
}

// change makes another value of one, at a random place.
func (v *value) change(t *rapid.T) *value {
	changed := *v
	switch v.kind {
	case '{':
		changed.members = map[string]*value{}
		for name, member := range v.members {
			changed.members[name] = member
		}
		if names := sortedNames(v.members); len(names) > 0 && rapid.Bool().Draw(t, "within") {
			name := rapid.SampledFrom(names).Draw(t, "changed")
			changed.members[name] = v.members[name].change(t)
		} else {
			changed.members["added"] = &value{kind: 't'}
		}
	case '[':
		changed.elements = append([]*value{}, v.elements...)
		if n := len(v.elements); n > 0 && rapid.Bool().Draw(t, "within") {
			i := rapid.IntRange(0, n-1).Draw(t, "changed")
			changed.elements[i] = v.elements[i].change(t)
		} else {
			changed.elements = append(changed.elements, &value{kind: 'n'})
		}
	case '"':
		changed.text += "x"
	case '0':
		changed.number = new(big.Rat).Add(v.number, big.NewRat(1, 1e10))
	case 't':
		changed = value{kind: '"', text: "true"}
	default:
		changed = value{kind: '[', elements: nil}
	}
	return &changed
}

func sortedNames(members map[string]*value) (names []string) {
	for _, name := range []string{"a", "b", "c", "1", "1.0", `é"`} {
		if members[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// However a server renders a value it is the same; whatever it changes in it makes another one.
func TestRenderingsAreAlikeAndChangesAreNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		v := anyValue(t, 4)
		changed := v.change(t)
		a, b, c := v.render(r), v.render(r), changed.render(r)
		require.True(t, AlikeJSON(JSON(a), JSON(b)), "%s\n%s", a, b)
		require.False(t, AlikeJSON(JSON(a), JSON(c)), "%s\n%s", a, c)
	})
}
