package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"ledgerindexer/store"
)

// parquetWriter writes the rows of a relation as a Parquet file.
type parquetWriter struct {
	file     *parquet.GenericWriter[any]
	columns  []store.ExportColumn
	rows     int64
	buffered int64 // bytes of the rows that are in no row group yet
	values   []parquet.Value
}

// A row group is written when it holds this much before compression. It is in memory until then, and engines read whole
// groups.
const rowGroupBytes = 64 << 20

// A column of which more than this would go into the dictionary gets none, in this row group.
const dictionaryBytes = 1 << 20

// filtered are the columns that queries search for one value among very many.
var filtered = []string{"contract_id", "update_id"}

func newParquetWriter(w io.Writer, relation store.ExportRelation) *parquetWriter {
	group := orderedGroup{parquet.Group{}, nil}
	options := []parquet.WriterOption{
		parquet.Compression(&parquet.Zstd), parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending(relation.Place))),
	}
	var filters []parquet.BloomFilterColumn
	for n, column := range relation.Columns {
		group.Group[column.Name] = parquet.FieldID(parquet.Optional(nodeOf(column, n+1)), n+1)
		group.order = append(group.order, column.Name)
		if slices.Contains(filtered, column.Name) {
			filters = append(filters, parquet.SplitBlockFilter(10, column.Name))
		}
	}
	options = append(options, parquet.BloomFilters(filters...), parquet.NewSchema(relation.Name, group))
	return &parquetWriter{file: parquet.NewGenericWriter[any](w, options...), columns: relation.Columns}
}

// orderedGroup has its columns in the relation's order.
type orderedGroup struct {
	parquet.Group
	order []string
}

// Fields returns the columns.
func (g orderedGroup) Fields() []parquet.Field {
	byName := map[string]parquet.Field{}
	for _, field := range g.Group.Fields() {
		byName[field.Name()] = field
	}
	fields := make([]parquet.Field, len(g.order))
	for i, name := range g.order {
		fields[i] = byName[name]
	}
	return fields
}

// nodeOf is the node of a column. Its id, and that of a list's elements, are those of the schema of the table.
func nodeOf(column store.ExportColumn, id int) parquet.Node {
	words := parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	switch column.Type {
	case store.ExportBigint:
		return parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)
	case store.ExportInteger:
		return parquet.Encoded(parquet.Int(32), &parquet.DeltaBinaryPacked)
	case store.ExportTime:
		return parquet.Encoded(parquet.Timestamp(parquet.Microsecond), &parquet.DeltaBinaryPacked)
	case store.ExportBoolean:
		return parquet.Leaf(parquet.BooleanType)
	case store.ExportDate:
		return parquet.Encoded(parquet.Date(), &parquet.DeltaBinaryPacked)
	case store.ExportDecimal:
		return parquet.Decimal(column.Scale, decimalDigits, parquet.FixedLenByteArrayType(decimalBytes))
	case store.ExportBytes:
		return parquet.Leaf(parquet.ByteArrayType)
	case store.ExportTexts:
		return parquet.List(parquet.FieldID(parquet.Optional(words), elementIDs+id))
	case store.ExportJSON:
		return parquet.String()
	default:
		if slices.Contains(filtered, column.Name) {
			return parquet.String()
		}
		return words
	}
}

// write adds a row.
func (p *parquetWriter) write(row [][]byte) error {
	writers := p.file.ColumnWriters()
	for i, raw := range row {
		var err error
		if p.values, err = appendValues(p.values[:0], p.columns[i], raw, i); err != nil {
			return fmt.Errorf("column %s: %w", p.columns[i].Name, err)
		}
		if _, err = writers[i].WriteRowValues(p.values); err != nil {
			return fmt.Errorf("column %s: %w", p.columns[i].Name, err)
		}
		p.buffered += int64(len(raw))
	}
	p.rows++
	if p.buffered < rowGroupBytes {
		return nil
	}
	p.buffered = 0
	return p.file.Flush()
}

func (p *parquetWriter) close() error { return p.file.Close() }

const (
	// since2000 is the beginning of PostgreSQL's time, in microseconds of Unix, and days2000 in days.
	since2000 = 946_684_800_000_000
	days2000  = 10_957

	decimalDigits = 38
	decimalBytes  = 16
)

// appendValues appends the values of one row in a column: one, except for a list.
func appendValues(values []parquet.Value, as store.ExportColumn, raw []byte, column int) ([]parquet.Value, error) {
	if raw == nil {
		return append(values, parquet.NullValue().Level(0, 0, column)), nil
	}
	var value parquet.Value
	switch as.Type {
	case store.ExportTexts:
		return appendTexts(values, raw, column)
	case store.ExportText, store.ExportJSON, store.ExportBytes:
		value = parquet.ByteArrayValue(raw)
	case store.ExportBoolean:
		value = parquet.BooleanValue(raw[0] != 0)
	case store.ExportInteger:
		value = parquet.Int32Value(int32(binary.BigEndian.Uint32(raw)))
	case store.ExportBigint:
		value = parquet.Int64Value(int64(binary.BigEndian.Uint64(raw)))
	case store.ExportTime:
		at := int64(binary.BigEndian.Uint64(raw))
		if at > math.MaxInt64-since2000 || at == math.MinInt64 {
			return nil, errors.New("the time is infinite, or too late for microseconds since 1970")
		}
		value = parquet.Int64Value(at + since2000)
	case store.ExportDate:
		day := int32(binary.BigEndian.Uint32(raw))
		if day > math.MaxInt32-days2000 || day == math.MinInt32 {
			return nil, errors.New("the date is infinite")
		}
		value = parquet.Int32Value(day + days2000)
	case store.ExportDecimal:
		number, err := decimal(string(raw), as.Scale)
		if err != nil {
			return nil, err
		}
		value = parquet.FixedLenByteArrayValue(number)
	}
	return append(values, value.Level(0, 1, column)), nil
}

// decimal is a number without its point, in 16 bytes of which the highest come first, negative ones as two's
// complement.
func decimal(text string, scale int) ([]byte, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	number, ok := new(big.Int).SetString(whole+fraction+strings.Repeat("0", max(0, scale-len(fraction))), 10)
	if !ok || len(fraction) > scale || number.BitLen() > 8*decimalBytes-1 {
		return nil, fmt.Errorf("%s is no number with %d digits, %d of them behind the point", text, decimalDigits, scale)
	}
	if number.Sign() < 0 {
		number.Add(number, new(big.Int).Lsh(big.NewInt(1), 8*decimalBytes))
	}
	return number.FillBytes(make([]byte, decimalBytes)), nil
}

// appendTexts appends an array in PostgreSQL's binary format: how many dimensions, whether there are nulls, the
// elements' type; of each dimension the length and the lower bound; of each element the length, -1 for NULL, and the
// bytes.
func appendTexts(values []parquet.Value, raw []byte, column int) ([]parquet.Value, error) {
	next := func() int32 {
		n := int32(binary.BigEndian.Uint32(raw))
		raw = raw[4:]
		return n
	}
	dimensions, _, _ := next(), next(), next()
	if dimensions == 0 {
		return append(values, parquet.NullValue().Level(0, 1, column)), nil
	}
	if dimensions != 1 {
		return nil, fmt.Errorf("the array has %d dimensions", dimensions)
	}
	length, _ := next(), next()
	for i := range length {
		repeated := min(i, 1)
		size := next()
		if size < 0 {
			values = append(values, parquet.NullValue().Level(int(repeated), 2, column))
			continue
		}
		values = append(values, parquet.ByteArrayValue(raw[:size]).Level(int(repeated), 3, column))
		raw = raw[size:]
	}
	return values, nil
}
