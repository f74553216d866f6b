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

// scanned reads a text as a whole with a scanner, and piece by piece: both or neither of it must succeed.
func scanned(t *testing.T, text []byte) bool {
	t.Helper()
	whole := reads(&scanner{text: text}, source.SkipValue)
	require.Equal(t, whole, reads(&scanner{text: text}, walk), "%.200q", text)
	return whole
}

// reads tells whether a value can be read, behind which nothing stands.
func reads(from source, read func(source) error) bool {
	if read(from) != nil {
		return false
	}
	_, err := from.ReadToken()
	return errors.Is(err, io.EOF)
}

// walk reads the next value, whatever stands in it.
func walk(from source) error {
	switch kind := from.PeekKind(); kind {
	case '{', '[':
		if _, err := from.ReadToken(); err != nil {
			return err
		}
		for end := kind + 2; from.PeekKind() != end; { // the code of } is that of { and 2, and so it is with brackets
			if kind == '{' {
				if _, err := from.ReadValue(); err != nil {
					return err
				}
			}
			if err := walk(from); err != nil {
				return err
			}
		}
		_, err := from.ReadToken()
		return err
	default:
		return from.SkipValue()
	}
}

// decodes tells whether the decoder reads a text as a whole.
func decodes(text []byte) bool { return reads(newDecoding(text).library, source.SkipValue) }

func TestScannerReads(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`1`, `-0`, `0.5`, `10`, `1e5`, `1E+5`, `-12.50e-07`, `""`, `"a"`, `"é𝄞"`, `"\"\\\/\b\f\n\r\t\u00e9"`, `"\ud800"`, `"\uDfFf\ud83d\ude00"`,
		`null`, `true`, `false`, `[]`, `{}`, " [ 1 ,\t2\r\n] ", ` { "a" : 1 , "b" : { "a" : [ ] } } `, `[{"a":1},{"a":1}]`, `{"a":{"a":{"a":1}},"b":{"a":1}}`,
		`{"":1}`, `["` + strings.Repeat("x", 100) + `"]`, strings.Repeat("[", scanDepth) + strings.Repeat("]", scanDepth),
		`{"a":` + strings.Repeat("[", scanDepth-1) + strings.Repeat("]", scanDepth-1) + `}`,
	} {
		require.True(t, scanned(t, []byte(text)), text)
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
	} {
		require.False(t, scanned(t, []byte(text)), text)
		require.False(t, decodes([]byte(text)), text)
	}
	names := strings.Builder{}
	for i := range scanNames + 1 {
		names.WriteString(`,"` + strings.Repeat("x", i) + `":1`)
	}
	for _, rare := range []string{`{"\u0061":1}`, strings.Repeat("[", scanDepth+1) + strings.Repeat("]", scanDepth+1), "{" + names.String()[1:] + "}"} {
		require.False(t, scanned(t, []byte(rare)), "the decoder is asked")
		require.True(t, decodes([]byte(rare)))
	}
}

// Whatever stands before it, what is special in a text is found.
func TestPlain(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for before := range 20 {
			text := bytes.Repeat([]byte{'x', 0x80, 0xff, ' ', '!', '#', '['}, 4)[:before]
			text = append(append(text, byte(c)), "xxxxxxxxxx"...)
			special := c < ' ' || c == '"' || c == '\\'
			n := plain(text)
			if special {
				require.LessOrEqual(t, n, before)
				require.Greater(t, n, before-8)
			} else {
				require.Greater(t, n, len(text)-8)
			}
		}
	}
}

// FuzzScanner looks for a text that a scanner reads and the decoder does not, or reads as something else.
func FuzzScanner(f *testing.F) {
	page := `{"lowestPageOffsetExclusive":0,"updates":` + string(everyUpdate()) + `,"highestPageOffsetInclusive":99,"nextPageToken":null}`
	addSeeds(f, "updates", everyUpdate(), everyEntry(), []byte(page), list(transaction(5, created(5, 0), archived(5, 1), exercised(5, 2))))
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return
		}
		if scanned(t, body) {
			require.True(t, decodes(body), "%q", body)
		}
		same(t, body, func(d *decoding) (UpdateList, error) { return d.updates(order{}, 1) })
		same(t, body, func(d *decoding) (UpdateList, error) { return d.updates(order{last: 1 << 62, falls: true}, 1) })
		same(t, body, func(d *decoding) (UpdatePage, error) { return d.updatePage(0) })
		same(t, body, func(d *decoding) ([]ContractEntry, error) { return d.entries(1) })
		same(t, body, (*decoding).contractPage)
	})
}

// same decodes with a scanner, and what it reads also with the decoder.
func same[T any](t *testing.T, body []byte, decode func(*decoding) (T, error)) {
	t.Helper()
	got, err := decode(newScanning(body))
	if err != nil {
		return
	}
	want, err := decode(newDecoding(body))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// The samples, recorded ones among them, are plain: if they were not, all would be read twice.
func TestSamplesArePlain(t *testing.T) {
	t.Parallel()
	for _, body := range [][]byte{everyUpdate(), everyEntry(), realisticPage(3)} {
		require.True(t, scanned(t, body))
	}
	_, err := newScanning(everyUpdate()).updates(order{}, 1)
	require.NoError(t, err)
	_, err = newScanning(everyEntry()).entries(1)
	require.NoError(t, err)
}

func BenchmarkScanner(b *testing.B) {
	page := realisticPage(200)
	for name, from := range map[string]func() source{
		"scanner": func() source { return &scanner{text: page} },
		"decoder": func() source { return jsontext.NewDecoder(bytes.NewBuffer(page)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				if err := from().SkipValue(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
