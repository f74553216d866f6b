package pgcopy

import (
	"encoding/binary"
	"math"
	"reflect"
	"unsafe"

	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

// column is a column of a COPY, and the field of the rows that has its values.
type column struct {
	encode encoding // nil: by pgx
	typ    uint32   // its number in pg_type
	field  reflect.Type
	offset uintptr // in a row
}

// encoding appends a value, where it lies in a row, with its length before it.
type encoding func(to []byte, value unsafe.Pointer) []byte

// of encodes values that are never NULL.
func of[T any](appendValue func([]byte, T) []byte) encoding {
	return func(to []byte, value unsafe.Pointer) []byte { return appendValue(to, *(*T)(value)) }
}

// orNull encodes pointers to values.
func orNull[T any](appendValue func([]byte, T) []byte) encoding {
	return func(to []byte, value unsafe.Pointer) []byte {
		if v := *(**T)(value); v != nil {
			return appendValue(to, *v)
		}
		return appendLength(to, null)
	}
}

// typePair is a type of Go's, and one of PostgreSQL's.
type typePair struct {
	field reflect.Type
	typ   uint32
}

// encodings are of the values that are not left to pgx: what facts consist of.
var encodings = map[typePair]encoding{
	{reflect.TypeFor[string](), pgtype.TextOID}:                    of(appendText),
	{reflect.TypeFor[*string](), pgtype.TextOID}:                   orNull(appendText),
	{reflect.TypeFor[int64](), pgtype.Int8OID}:                     of(appendInt64),
	{reflect.TypeFor[*int64](), pgtype.Int8OID}:                    orNull(appendInt64),
	{reflect.TypeFor[int32](), pgtype.Int4OID}:                     of(appendInt32),
	{reflect.TypeFor[*int32](), pgtype.Int4OID}:                    orNull(appendInt32),
	{reflect.TypeFor[bool](), pgtype.BoolOID}:                      of(appendBool),
	{reflect.TypeFor[*bool](), pgtype.BoolOID}:                     orNull(appendBool),
	{reflect.TypeFor[[]byte](), pgtype.ByteaOID}:                   of(appendBytea),
	{reflect.TypeFor[[]byte](), pgtype.JSONBOID}:                   of(appendJSONB),
	{reflect.TypeFor[[]string](), pgtype.TextArrayOID}:             of(appendTextArray),
	{reflect.TypeFor[pgtype.Timestamptz](), pgtype.TimestamptzOID}: of(appendTimestamp),
	{reflect.TypeFor[ledger.Decimal](), pgtype.NumericOID}:         of(appendDecimal),
	{reflect.TypeFor[*ledger.Decimal](), pgtype.NumericOID}:        orNull(appendDecimal),
	{reflect.TypeFor[pgtype.UUID](), pgtype.UUIDOID}:               of(appendUUID),
}

// columnsOf returns the columns of rows of a type, which have these types in the database.
func columnsOf(row reflect.Type, types []uint32) []column {
	columns, fields := make([]column, len(types)), fieldsOf(row)
	for i, typ := range types {
		field := fields[i]
		columns[i] = column{encodings[typePair{field.Type, typ}], typ, field.Type, field.Offset}
	}
	return columns
}

// null is the length of no value.
const null = -1

func appendLength(to []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(to, uint32(length))
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

// appendBytes appends a value of two parts; a value of nil is NULL, whatever is before it.
func appendBytes(to, value []byte, before ...byte) []byte {
	if value == nil {
		return appendLength(to, null)
	}
	to = append(appendLength(to, len(before)+len(value)), before...)
	return append(to, value...)
}

func appendBytea(to, value []byte) []byte { return appendBytes(to, value) }

func appendJSONB(to, value []byte) []byte {
	const version = 1
	return appendBytes(to, value, version)
}

func appendTimestamp(to []byte, v pgtype.Timestamptz) []byte {
	const year2000 = 946_684_800 * 1_000_000 // in microseconds of Unix time
	switch {
	case !v.Valid:
		return appendLength(to, null)
	case v.InfinityModifier == pgtype.Infinity:
		return appendInt64(to, math.MaxInt64)
	case v.InfinityModifier == pgtype.NegativeInfinity:
		return appendInt64(to, math.MinInt64)
	}
	return appendInt64(to, v.Time.UnixMicro()-year2000)
}

func appendUUID(to []byte, v pgtype.UUID) []byte {
	if !v.Valid {
		return appendLength(to, null)
	}
	return append(appendLength(to, len(v.Bytes)), v.Bytes[:]...)
}

func appendTextArray(to []byte, texts []string) []byte {
	if texts == nil {
		return appendLength(to, null)
	}
	at := len(to)
	to = appendTexts(appendLength(to, 0), texts) // its length is not known yet
	binary.BigEndian.PutUint32(to[at:], uint32(len(to)-at-4))
	return to
}
