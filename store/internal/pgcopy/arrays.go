package pgcopy

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// RegisterArrays makes a connection send lists of texts and numbers (the columns of many rows, for a statement) in
// binary form, from memory that is allocated once. pgx would send texts in text form, and encode value by value into
// memory that has to grow again and again.
func RegisterArrays(plans *pgtype.Map) {
	register(plans, "_text", pgtype.TextArrayOID, pgtype.TextOID, appendTexts)
	register(plans, "_int8", pgtype.Int8ArrayOID, pgtype.Int8OID, func(to []byte, list []int64) []byte {
		return appendArray(to, pgtype.Int8OID, list, 8*len(list), appendInt64)
	})
	register(plans, "_int4", pgtype.Int4ArrayOID, pgtype.Int4OID, func(to []byte, list []int32) []byte {
		return appendArray(to, pgtype.Int4OID, list, 4*len(list), appendInt32)
	})
}

func register[T any](plans *pgtype.Map, name string, typ, element uint32, appendList func([]byte, []T) []byte) {
	of, _ := plans.TypeForOID(element)
	codec := arrayCodec[T]{&pgtype.ArrayCodec{ElementType: of}, appendList}
	plans.RegisterType(&pgtype.Type{Name: name, OID: typ, Codec: codec})
}

// arrayCodec is pgx's, except for what it does to a list of one Go type.
type arrayCodec[T any] struct {
	*pgtype.ArrayCodec
	appendList func([]byte, []T) []byte // the elements, with what comes before them
}

// PreferredFormat has arrays sent in binary form.
func (arrayCodec[T]) PreferredFormat() int16 { return pgtype.BinaryFormatCode }

// PlanEncode returns how a value is encoded.
func (c arrayCodec[T]) PlanEncode(plans *pgtype.Map, typ uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.([]T); ok && format == pgtype.BinaryFormatCode {
		return c
	}
	return c.ArrayCodec.PlanEncode(plans, typ, format, value)
}

// Encode appends a list, or nothing for nil, which is NULL.
func (c arrayCodec[T]) Encode(value any, to []byte) ([]byte, error) {
	list := value.([]T)
	if list == nil {
		return nil, nil
	}
	return c.appendList(to, list), nil
}

func appendTexts(to []byte, texts []string) []byte {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	return appendArray(to, pgtype.TextOID, texts, size, appendText)
}

// appendArray appends an array whose elements have this type, and the given number of bytes in all. Before them come
// the number of its dimensions, whether it holds nulls, the elements' type, and the dimension's length and first index.
func appendArray[T any](to []byte, typ uint32, list []T, bytes int, appendElement func([]byte, T) []byte) []byte {
	const head = 20
	to = grown(to, head+4*len(list)+bytes)
	for _, n := range [...]uint32{1, 0, typ, uint32(len(list)), 1} {
		to = binary.BigEndian.AppendUint32(to, n)
	}
	for _, element := range list {
		to = appendElement(to, element)
	}
	return to
}

// grown has room for more bytes, and hardly any beyond: of several arrays the last one is mostly the largest.
func grown(to []byte, more int) []byte {
	if cap(to)-len(to) >= more {
		return to
	}
	return append(make([]byte, 0, len(to)+more), to...)
}
