package sandbox

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// decoded is a text as encoding/json decodes it, with numbers as they are written.
func decoded(t require.TestingT, text string) (v any) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), text)
	return v
}

func TestDecodeAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`null`, `true`, `false`, `0`, `-1.50`, `1e400`, `12345678901234567890.0000000000`, `""`, `"\""`, `"\\"`, `"\\\""`, `"a\u00e4\ud83d\ude00\n"`, `"ä😀,]}:"`,
		`[]`, `{}`, `[ 1 , [ ] , { } , "]" ]`, "{ \"a\" : { \"b\" : [ null ] } ,\n\t\"c\\\"\":1 }", `{"a":1,"a":2}`,
	} {
		d := rowDecoder{rest: []byte(text)}
		got, err := d.value()
		require.NoError(t, err, text)
		require.Zero(t, d.next(), text)
		require.Equal(t, decoded(t, text), got, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Float64(), func(f float64) any { return f }))
		value := rapid.OneOf(scalar, rapid.Map(rapid.SliceOf(scalar), func(l []any) any { return l }), rapid.Map(rapid.MapOf(rapid.String(), scalar), func(m map[string]any) any { return m }))
		text := mustJSON(rapid.MapOf(rapid.String(), value).Draw(t, "object"))
		d := rowDecoder{rest: []byte(text)}
		got, err := d.value()
		require.NoError(t, err, text)
		want := decoded(t, text)
		require.Equal(t, want, got)
		require.True(t, same(want, got))
	})
}

func TestDecodeRefusesWhatIsNoRow(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"": "is no JSON", "nul": "is no JSON", "1x": "is no JSON", "01": "is no JSON", "[1": "is missing", "[1 2]": "is missing", "[,]": "is no JSON", `"a`: "is missing", `"a\"`: "is missing",
		`"\x"`: "invalid character", `{"a"}`: "is missing", `{"a":1`: "is missing", `{a:1}`: "is missing", `{"a":}`: "is no JSON", `1`: "it is no object", `{}{}`: "more than one value",
	} {
		_, err := DecodeRow("taps", []byte(text))
		require.ErrorContains(t, err, "decode a row of taps: ", text)
		require.ErrorContains(t, err, says, text)
	}
}

// Values that differ anywhere are told apart.
func TestSame(t *testing.T) {
	t.Parallel()
	values := []any{nil, true, false, "", "a", json.Number("1"), json.Number("1.0"), "1", []any{}, []any{nil}, []any{"a"}, []any{"a", "b"}, map[string]any{}, map[string]any{"a": nil},
		map[string]any{"a": "b"}, map[string]any{"b": nil}, []any{map[string]any{"a": []any{json.Number("1")}}}, []any{map[string]any{"a": []any{json.Number("2")}}}}
	for i, a := range values {
		for j, b := range values {
			require.Equal(t, i == j, same(a, b), "%v and %v", a, b)
		}
	}
}
