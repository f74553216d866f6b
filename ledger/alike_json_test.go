package ledger

import (
	"fmt"
	"slices"
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

// rendered is a value as one server renders it and as another does, and another value in its place.
func rendered(t *rapid.T, depth int) (one, other, changed string) {
	switch rapid.IntRange(0, depth).Draw(t, "kind") {
	case 0:
		return "true", "true", "false"
	case 1:
		text := rapid.StringMatching(`[a-z]{0,3}|alice::1220|00[0-9]{2}|ä\n"`).Draw(t, "text")
		return quoted(text), escaped(text), quoted(text + "x")
	case 2:
		n := rapid.Int64().Filter(func(n int64) bool { return n != 0 }).Draw(t, "number") // 050E-2 is no number
		one, other, changed = fmt.Sprint(n, ".50"), fmt.Sprint(n, rapid.SampledFrom([]string{".5", ".5000", "50E-2", "500e-3"}).Draw(t, "form")), fmt.Sprint(n, ".51")
		if other == one || rapid.Bool().Draw(t, "as text") {
			return quoted(one), escaped(other), quoted(changed)
		}
		return one, other, changed
	case 3:
		var a, b, c []string
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			x, y, z := rendered(t, depth-1)
			a, b, c = append(a, x), append(b, y), append(c, z)
		}
		return "[" + strings.Join(a, ",") + "]", "[ " + strings.Join(b, " , ") + "]", "[" + strings.Join(replaced(t, a, c, "null"), ",") + "]"
	}
	var a, b, c []string
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]|1|1\.0|é"`), 0, 4, rapid.ID).Draw(t, "names") {
		x, y, z := rendered(t, depth-1)
		a, b, c = append(a, quoted(name)+":"+x), append([]string{escaped(name) + " : " + y}, b...), append(c, quoted(name)+":"+z)
	}
	return "{" + strings.Join(append(a, `"null here":null`), ",") + "}", "{" + strings.Join(append(b, `"unheard of":null`), ",") + "}",
		"{" + strings.Join(replaced(t, a, c, `"added":true`), ",") + "}"
}

// replaced has one part replaced by its other, or one more.
func replaced(t *rapid.T, parts, others []string, more string) []string {
	if len(parts) == 0 || rapid.Bool().Draw(t, "more") {
		return append(slices.Clone(parts), more)
	}
	i := rapid.IntRange(0, len(parts)-1).Draw(t, "changed")
	return slices.Concat(parts[:i], others[i:i+1], parts[i+1:])
}

func quoted(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return string(quoted)
}

func escaped(text string) string {
	all := `"`
	for _, c := range text {
		all += fmt.Sprintf(`\u%04x`, c)
	}
	return all + `"`
}

// However a server renders a value it is the same; whatever it changes in it makes another one.
func TestRenderingsAreAlikeAndChangesAreNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, other, changed := rendered(t, 4)
		require.True(t, AlikeJSON(JSON(one), JSON(other)), "%s\n%s", one, other)
		require.False(t, AlikeJSON(JSON(other), JSON(changed)), "%s\n%s", other, changed)
	})
}
