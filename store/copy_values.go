package store

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

// copyColumn is a column of a COPY, and the field of the rows that has its values.
type copyColumn struct {
	kind   valueKind
	typ    uint32 // its number in pg_type
	field  reflect.Type
	offset uintptr // in a row
}

// valueKind is how values are encoded.
type valueKind uint8

const (
	aPlannedValue valueKind = iota // by pgx
	aText
	anOptionalText
	anInt64
	anOptionalInt64
	anInt32
	anOptionalInt32
	aBool
	anOptionalBool
	aBytea
	aJSONB
	aTextArray
	aTimestamp
	aDecimal
	anOptionalDecimal
)

// typePair is a type of Go's, and one of PostgreSQL's.
type typePair struct {
	field reflect.Type
	typ   uint32
}

// valueKinds are the kinds of values that are not left to pgx.
var valueKinds = map[typePair]valueKind{
	{reflect.TypeFor[string](), pgtype.TextOID}:                    aText,
	{reflect.TypeFor[*string](), pgtype.TextOID}:                   anOptionalText,
	{reflect.TypeFor[int64](), pgtype.Int8OID}:                     anInt64,
	{reflect.TypeFor[*int64](), pgtype.Int8OID}:                    anOptionalInt64,
	{reflect.TypeFor[int32](), pgtype.Int4OID}:                     anInt32,
	{reflect.TypeFor[*int32](), pgtype.Int4OID}:                    anOptionalInt32,
	{reflect.TypeFor[bool](), pgtype.BoolOID}:                      aBool,
	{reflect.TypeFor[*bool](), pgtype.BoolOID}:                     anOptionalBool,
	{reflect.TypeFor[[]byte](), pgtype.ByteaOID}:                   aBytea,
	{reflect.TypeFor[[]byte](), pgtype.JSONBOID}:                   aJSONB,
	{reflect.TypeFor[[]string](), pgtype.TextArrayOID}:             aTextArray,
	{reflect.TypeFor[pgtype.Timestamptz](), pgtype.TimestamptzOID}: aTimestamp,
	{reflect.TypeFor[ledger.Decimal](), pgtype.NumericOID}:         aDecimal,
	{reflect.TypeFor[*ledger.Decimal](), pgtype.NumericOID}:        anOptionalDecimal,
}

// columnsOf are the columns of these types, for rows of a type: a struct of their values, or where there is one, its value.
func columnsOf(row reflect.Type, types []uint32) ([]copyColumn, error) {
	values, several := 1, row.Kind() == reflect.Struct
	if several {
		values = row.NumField()
	}
	if values != len(types) {
		return nil, fmt.Errorf("a row has %d values, and the table %d columns", values, len(types))
	}
	columns := make([]copyColumn, values)
	for i, typ := range types {
		field := reflect.StructField{Type: row}
		if several {
			field = row.Field(i)
		}
		columns[i] = copyColumn{valueKinds[typePair{field.Type, typ}], typ, field.Type, field.Offset}
	}
	return columns, nil
}

// null is the length of no value.
const null = -1

func appendLength(to []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(to, uint32(length))
}

func appendOptional[T any](to []byte, value *T, appendValue func([]byte, T) []byte) []byte {
	if value == nil {
		return appendLength(to, null)
	}
	return appendValue(to, *value)
}

func appendText(to []byte, text string) []byte { return append(appendLength(to, len(text)), text...) }

func appendInt64(to []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(appendLength(to, 8), uint64(n))
}

func appendInt32(to []byte, n int32) []byte {
	return binary.BigEndian.AppendUint32(appendLength(to, 4), uint32(n))
}

func appendBool(to []byte, truth bool) []byte {
	to = append(appendLength(to, 1), 0)
	if truth {
		to[len(to)-1] = 1
	}
	return to
}

// appendBytes appends bytes behind others that go before them; nil is no value.
func appendBytes(to, value []byte, before ...byte) []byte {
	if value == nil {
		return appendLength(to, null)
	}
	to = append(appendLength(to, len(before)+len(value)), before...)
	return append(to, value...)
}

// appendTexts appends an array of texts.
func appendTexts(to []byte, texts []string) []byte {
	if texts == nil {
		return appendLength(to, null)
	}
	at := len(to)
	to = appendLength(to, 0) // not known yet
	to = appendArrayHead(to, pgtype.TextOID, len(texts))
	for _, text := range texts {
		to = appendText(to, text)
	}
	binary.BigEndian.PutUint32(to[at:], uint32(len(to)-at-4))
	return to
}
