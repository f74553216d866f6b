package export

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/store"
)

// A value that has no form in a file ends the export, with its column.
func TestValuesThatNoFileHolds(t *testing.T) {
	t.Parallel()
	words := func(list ...uint32) (raw []byte) {
		for _, word := range list {
			raw = binary.BigEndian.AppendUint32(raw, word)
		}
		return raw
	}
	at := func(microseconds int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(microseconds)) }
	for _, c := range []struct {
		as      store.ExportType
		raw     []byte
		refused string // empty: it is not
	}{
		{store.ExportTime, at(0), ""},
		{store.ExportTime, at(math.MaxInt64), "column it: the time is infinite"},
		{store.ExportTime, at(math.MinInt64), "column it: the time is infinite"},
		{store.ExportTime, at(math.MaxInt64 - since2000 + 1), "too late"},
		{store.ExportDate, words(0), ""},
		{store.ExportDate, words(math.MaxInt32), "column it: the date is infinite"},
		{store.ExportDate, words(1 << 31), "column it: the date is infinite"},
		{store.ExportDecimal, []byte("-12345678901234567890123456789012345678"), ""},
		{store.ExportDecimal, []byte("1.5"), "column it: 1.5 is no number with 38 digits, 0 of them behind the point"},
		{store.ExportDecimal, []byte("NaN"), "column it: NaN is no number"},
		{store.ExportTexts, words(0, 0, 25), ""},
		{store.ExportTexts, words(2, 0, 25, 1, 1, 1, 1, 0), "column it: the array has 2 dimensions"},
	} {
		var file bytes.Buffer
		w := newParquetWriter(&file, store.ExportRelation{Name: "things", Place: "it", Columns: []store.ExportColumn{{Name: "it", Type: c.as}}})
		err := w.write([][]byte{c.raw})
		if c.refused == "" {
			require.NoError(t, err)
			require.NoError(t, w.close())
			continue
		}
		require.ErrorContains(t, err, c.refused)
	}
}

// However long lists and texts are of which none repeats, not much of them is remembered.
func TestWhatIsRememberedOfColumnsHasABound(t *testing.T) {
	t.Parallel()
	relation := store.ExportRelation{Name: "things", Place: offset, Columns: []store.ExportColumn{
		{Name: offset, Type: store.ExportBigint}, {Name: "word", Type: store.ExportText}, {Name: "parties", Type: store.ExportTexts},
	}}
	const rows, parties = 300, 50
	party := func(row, n int) string { return fmt.Sprintf("%0100d::%d", row, n) }
	var content bytes.Buffer
	w := newParquetWriter(&content, relation)
	for row := range rows {
		list := binary.BigEndian.AppendUint32(nil, 1)
		for _, word := range []uint32{0, 25, parties, 1} {
			list = binary.BigEndian.AppendUint32(list, word)
		}
		for n := range parties {
			list = append(binary.BigEndian.AppendUint32(list, uint32(len(party(row, n)))), party(row, n)...)
		}
		require.NoError(t, w.write([][]byte{binary.BigEndian.AppendUint64(nil, uint64(row)), []byte(strings.Repeat(fmt.Sprintf("%05d", row), 2_000)), list}))
	}
	require.NoError(t, w.close())
	file := File{Name: "things", Bytes: int64(content.Len())}
	r, err := openRows(&Manifest{}, inMemory{bytes.NewReader(content.Bytes())}, file, []string{"word", "parties"}, 9)
	require.NoError(t, err)
	defer r.close()
	for row := 10; row < rows; row++ {
		require.True(t, r.has)
		require.EqualValues(t, row, r.at)
		require.Equal(t, strings.Repeat(fmt.Sprintf("%05d", row), 2_000), r.text("word"))
		require.Len(t, r.list("parties"), parties)
		require.Equal(t, party(row, parties-1), r.list("parties")[parties-1])
		words, lists := 0, 0
		for word := range r.named["word"].words {
			words += len(word)
		}
		for list := range r.named["parties"].lists {
			lists += len(list)
		}
		require.LessOrEqual(t, max(words, lists), rememberedBytes)
		require.Positive(t, min(words, lists))
		require.NoError(t, r.next())
	}
	require.False(t, r.has)
}
