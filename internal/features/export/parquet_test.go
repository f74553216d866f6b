package export

import (
	"bytes"
	"encoding/binary"
	"math"
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
