package pgcopy

import (
	"encoding/binary"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

// column is a column of a COPY, and the field of the rows that has its values.
type column struct {
	kind   kind
	typ    uint32 // its number in pg_type
	field  reflect.Type
	offset uintptr // in a row
}

// kind is how values are encoded.
type kind uint8

const (
	kindOther kind = iota // by pgx
	kindText
	kindNullableText
	kindInt64
	kindNullableInt64
	kindInt32
	kindNullableInt32
	kindBool
	kindNullableBool
	kindBytea
	kindJSONB
	kindTextArray
	kindTimestamp
	kindDecimal
	kindNullableDecimal
	kindUUID
)

// typePair is a type of Go's, and one of PostgreSQL's.
type typePair struct {
	field reflect.Type
	typ   uint32
}

// kinds are the kinds of values that are not left to pgx.
var kinds = map[typePair]kind{
	{reflect.TypeFor[string](), pgtype.TextOID}:                    kindText,
	{reflect.TypeFor[*string](), pgtype.TextOID}:                   kindNullableText,
	{reflect.TypeFor[int64](), pgtype.Int8OID}:                     kindInt64,
	{reflect.TypeFor[*int64](), pgtype.Int8OID}:                    kindNullableInt64,
	{reflect.TypeFor[int32](), pgtype.Int4OID}:                     kindInt32,
	{reflect.TypeFor[*int32](), pgtype.Int4OID}:                    kindNullableInt32,
	{reflect.TypeFor[bool](), pgtype.BoolOID}:                      kindBool,
	{reflect.TypeFor[*bool](), pgtype.BoolOID}:                     kindNullableBool,
	{reflect.TypeFor[[]byte](), pgtype.ByteaOID}:                   kindBytea,
	{reflect.TypeFor[[]byte](), pgtype.JSONBOID}:                   kindJSONB,
	{reflect.TypeFor[[]string](), pgtype.TextArrayOID}:             kindTextArray,
	{reflect.TypeFor[pgtype.Timestamptz](), pgtype.TimestamptzOID}: kindTimestamp,
	{reflect.TypeFor[ledger.Decimal](), pgtype.NumericOID}:         kindDecimal,
	{reflect.TypeFor[*ledger.Decimal](), pgtype.NumericOID}:        kindNullableDecimal,
	{reflect.TypeFor[pgtype.UUID](), pgtype.UUIDOID}:               kindUUID,
}

// columnsOf are the columns of rows of a type, which have these types in the database.
func columnsOf(row reflect.Type, types []uint32) []column {
	columns := make([]column, len(types))
	for i, typ := range types {
		field := row.Field(i)
		columns[i] = column{kinds[typePair{field.Type, typ}], typ, field.Type, field.Offset}
	}
	return columns
}

// null is the length of no value.
const null = -1

func appendLength(to []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(to, uint32(length))
}

func appendNullable[T any](to []byte, value *T, appendValue func([]byte, T) []byte) []byte {
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

// appendTextArray appends a value that is an array of texts.
func appendTextArray(to []byte, texts []string) []byte {
	if texts == nil {
		return appendLength(to, null)
	}
	at := len(to)
	to = appendTexts(appendLength(to, 0), texts) // its length is not known yet
	binary.BigEndian.PutUint32(to[at:], uint32(len(to)-at-4))
	return to
}
