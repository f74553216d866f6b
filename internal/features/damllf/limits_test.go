package damllf

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf/build"
	"ledgerindexer/internal/tools/brief"
)

// expressions are encoded values of about so many bytes, of which nothing is read.
func expressions(bytes int) [][]byte {
	var values [][]byte
	for i := 0; bytes > 0; i++ {
		expression := message{}.number(2, int64(i))
		for range 12 {
			expression = message{}.sub(15, message{}.sub(1, expression).number(3, 17).bytes(2, strings.Repeat("x", 20)))
		}
		value := message{}.sub(2, message{}.number(1, int64(i))).sub(3, expression)
		values, bytes = append(values, value), bytes-len(value)
	}
	return values
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestDecodeTakesLittleMemory is not parallel: it counts what is allocated.
func TestDecodeTakesLittleMemory(t *testing.T) {
	p := types(build.Record("R", member("x", build.Text)))
	size := 20 << 20
	if brief.Run() {
		size = 2 << 20
	}
	p.Modules[0].Values = expressions(size)
	_, payload := p.Encode()
	require.Less(t, allocated(func() {
		decoded, err := decode(id(1), payload)
		require.NoError(t, err)
		require.Len(t, decoded.DataTypes, 1)
	}), uint64(100_000), "expressions cost nothing")

	for says, body := range map[string]string{
		"field 2 has more than 4194304 entries": strings.Repeat("\x12\x00", maxEntries+1),
		"field 3 has more than 4194304 entries": strings.Repeat("\x1a\x00", maxEntries+1),
		"field 5 has more than 4194304 entries": strings.Repeat("\x2a\x00", maxEntries+1),
		"field 1 has more than 4194304 entries": string(message{}.sub(9, message(strings.Repeat("\x0a\x00", maxEntries+1)))),
	} {
		payload := message{}.bytes(3, "1").bytes(4, body)
		require.Less(t, allocated(func() {
			_, err := decode(id(1), payload)
			require.ErrorContains(t, err, says)
		}), uint64(100<<20), says)
	}
}

func TestDecodeLimitsWhatIsKept(t *testing.T) {
	t.Parallel()
	// Few bytes of the body refer to long names.
	body := message{}.sub(4, message{}.number(1, 1).number(2, 2))
	texts, names := message{}.bytes(2, strings.Repeat("n", 990)).bytes(2, "p").bytes(2, "1"), message{}.sub(3, message{}.bytes(1, "\x00"))
	var definitions message
	for i := range 60_000 {
		texts = texts.bytes(2, fmt.Sprintf("x%d", i))
		names = names.sub(3, message{}.number(1, 0).number(1, int64(i+3)))
		definitions = definitions.sub(4, message{}.number(2, int64(i+1)).number(4, 1).sub(5, nil))
	}
	body = append(append(body, texts...), names...).sub(1, definitions)
	require.Less(t, len(body), 3<<20)
	_, err := decode(id(1), message{}.bytes(3, "1").sub(4, body))
	require.ErrorContains(t, err, "more than 64 MiB of memory")

	// Types of very many arguments are applied to one more, very often.
	p := types(build.Record("R", member("x", build.Local("M:R", slices.Repeat([]build.Type{build.Unit}, 50_000)...))))
	_, err = decode(id(1), appended(p, 1000, func(int) message { return application(1, 0) }))
	require.ErrorContains(t, err, "more than 64 MiB of memory")
}

func TestDecodeLimitsNesting(t *testing.T) {
	t.Parallel()
	deep := build.Text
	for range 200 {
		deep = build.Optional(deep)
	}
	p := types(build.Record("R", member("x", deep)))
	for _, style := range []build.Style{{}, {Inline: true}, {Applications: true}, {Inline: true, Applications: true}} {
		p.Style = style
		_, payload := p.Encode()
		_, err := decode(id(1), payload)
		require.ErrorContains(t, err, "more than 100 deep", "%+v", style)
	}

	// Each entry is read with the one before it known, so that none of them is deep.
	p = types(build.Record("R", member("x", build.Text)))
	optional := func(i int) message {
		return message{}.sub(3, message{}.number(1, 9).sub(2, message{}.number(8, int64(i-1))))
	}
	known, err := decode(id(1), appended(p, 1000, optional))
	require.NoError(t, err)
	last := known.DataTypes[Name{Module: "M", Entity: "M"}].Fields
	_, err = resolver(known).Resolve(last[len(last)-1].Type)
	require.ErrorContains(t, err, "more than 200 deep")

	// Entries that use the one before them twice are as large as they are many; what they mean is not.
	twice := func(i int) message {
		before := message{}.number(8, int64(i-1))
		return message{}.sub(3, message{}.number(1, 11).sub(2, before).sub(2, before))
	}
	known, err = decode(id(1), appended(p, 60, twice))
	require.NoError(t, err)
	last = known.DataTypes[Name{Module: "M", Entity: "M"}].Fields
	_, err = resolver(known).Resolve(last[len(last)-1].Type)
	require.ErrorContains(t, err, "more than 100000 parts")
}

// application is the type of an entry of the table that is applied to another one.
func application(left, right int64) message {
	return message{}.sub(9, message{}.sub(1, message{}.number(8, left)).sub(2, message{}.number(8, right)))
}

// appended is the payload of a package of a module M, with so many more types in its table, and a record M:M that has a
// field of each.
func appended(p build.Package, n int, typ func(i int) message) message {
	_, payload := p.Encode()
	var d decoder
	body := message(d.last(payload, 4))
	first := 0
	for range d.each(body, 5) {
		first++
	}
	var fields, names message
	texts := int64(0)
	for range d.each(body, 2) {
		texts++
	}
	for i := range n {
		body = body.sub(5, typ(first+i))
		names = names.bytes(2, fmt.Sprintf("f%d", i))
		fields = fields.sub(1, message{}.sub(2, message{}.number(8, int64(first+i))).number(3, texts+int64(i)))
	}
	definition := message{}.number(2, 0).number(4, 1).sub(5, fields)
	return message{}.bytes(3, "1").sub(4, append(body, names...).sub(1, message{}.sub(4, definition)))
}
