package ledger

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// scanned tells whether a scanner reads a text as a whole.
func scanned(text []byte) bool {
	s := jsonScanner{text: text}
	end := s.value(s.space(0))
	return end >= 0 && s.space(end) == len(text)
}

// decodes tells whether the library reads a text as a whole.
func decodes(text []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(utf8.Valid(text)))
	if dec.SkipValue() != nil {
		return false
	}
	_, err := dec.ReadToken()
	return errors.Is(err, io.EOF)
}

func TestScannerReads(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`1`, `-0`, `0.5`, `10`, `1e5`, `1E+5`, `-12.50e-07`, `""`, `"a"`, `"é𝄞"`, `"\"\\\/\b\f\n\r\t\u00e9"`, `"\ud800"`, `"\uDfFf\ud83d\ude00"`,
		`null`, `true`, `false`, `[]`, `{}`, " [ 1 ,\t2\r\n] ", ` { "a" : 1 , "b" : { "a" : [ ] } } `, `[{"a":1},{"a":1}]`, `{"a":{"a":{"a":1}},"b":{"a":1}}`,
		`{"":1}`, `["` + strings.Repeat("x", 100) + `"]`, strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
		`{"a":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`, `{"\u0061":1,"b":1}`, manyNames(fewNames), manyNames(fewNames + 2),
		`{"a":` + manyNames(fewNames+2) + `,"b":` + manyNames(fewNames+2) + `}`, `{"\ud800":1,"\ud83d\ude00":1}`,
	} {
		require.True(t, scanned([]byte(text)), text)
		require.True(t, decodes([]byte(text)), text)
	}
}

func TestScannerRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `x`, `nul`, `nullx`, `truefalse`, `01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `0x1`, `1 2`, `[1 2]`, `[1,]`, `[,1]`, `[1,,2]`, `[1`, `[`, `]`, `[1}`,
		`{`, `}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,"a":1}`, `{"a":1 "b":2}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1]`, `{"a":1}}`, `{null:1}`, `{"a":,}`, `{[]:1}`,
		`{"a"::1}`, `[:1]`, `:1`, `,1`, `"`, `"a`, `"\`, `"\"`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"a\x00b\"", "\"" + strings.Repeat("x", 20) + "\x1f\"",
		`{"a":1,"a":2}`, `{"b":[{"a":1,"c":2,"a":2}]}`, `{"a":{"a":1},"a":2}`, "\xef\xbb\xbf[]", "[1]\x00", `'a'`, `[1]//`,
		`{"a":1,"\u0061":2}`, `{"\ud800":1,"\udfff":2}`, `{"\ufffd":1,"\udfff":2}`, strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
		swap(manyNames(fewNames+2), `{"":`, `{"`+strings.Repeat("x", fewNames+1)+`":`), swap(manyNames(fewNames+1), `{"":`, `{"`+strings.Repeat("x", fewNames)+`":`),
	} {
		require.False(t, scanned([]byte(text)), text)
		require.False(t, decodes([]byte(text)), text)
	}
}

// manyNames is an object of so many members, of which one has an object in it.
func manyNames(n int) string {
	names := strings.Builder{}
	for i := range n {
		names.WriteString(`,"` + strings.Repeat("x", i) + `":{"x":1}`)
	}
	return "{" + names.String()[1:] + "}"
}

// Whatever stands before it, what is special in a text is found.
func TestPlain(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for before := range 20 {
			text := bytes.Repeat([]byte{'x', 0x80, 0xff, ' ', '!', '#', '['}, 4)[:before]
			text = append(append(text, byte(c)), "xxxxxxxxxx"...)
			special := c < ' ' || c == '"' || c == '\\'
			n := plain(text, 0)
			require.Equal(t, n, plain(append([]byte{'"', '\\'}, text...), 2)-2)
			if special {
				require.LessOrEqual(t, n, before)
				require.Greater(t, n, before-8)
			} else {
				require.Greater(t, n, len(text)-8)
			}
		}
	}
}

// FuzzScanner looks for a text that a scanner reads and the library does not, or the other way round.
func FuzzScanner(f *testing.F) {
	page := `{"lowestPageOffsetExclusive":0,"updates":` + string(everyUpdate()) + `,"highestPageOffsetInclusive":99,"nextPageToken":null}`
	addSeeds(f, everyUpdate(), everyEntry(), []byte(page), list(transaction(5, created(5, 0), archived(5, 1), exercised(5, 2))))
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return
		}
		require.Equal(t, decodes(body), scanned(body), "%q", body)
	})
}
