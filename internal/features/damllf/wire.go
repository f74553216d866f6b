package damllf

import (
	"errors"
	"io"
	"iter"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is a field of a message. Its value is parsed only when it is used.
type field struct {
	num   protowire.Number
	typ   protowire.Type
	value []byte // of type bytes
	n     uint64 // of type varint
	at    int    // position of the value, with its length prefix, in the message
}

// fields iterates over the fields of a message. It ends at the first error, including the caller's.
func (d *decoder) fields(message []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for rest := message; len(rest) > 0 && d.err == nil; {
			num, typ, n := protowire.ConsumeTag(rest)
			f := field{num: num, typ: typ}
			if n > 0 {
				rest = rest[n:]
				f.at = len(message) - len(rest)
				switch typ {
				case protowire.VarintType:
					f.n, n = protowire.ConsumeVarint(rest)
				case protowire.BytesType:
					f.value, n = protowire.ConsumeBytes(rest)
				case protowire.StartGroupType, protowire.EndGroupType: // of another version of the format
					d.fail("field %d is a group", num)
					return
				default:
					n = protowire.ConsumeFieldValue(num, typ, rest)
				}
			}
			if n < 0 {
				d.fail("byte %d of %d: %s", len(message)-len(rest), len(message), wireError(n))
				return
			}
			rest = rest[n:]
			if !yield(f) {
				return
			}
		}
	}
}

// each iterates over the values of a field of messages or texts.
func (d *decoder) each(message []byte, num protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for f := range d.fields(message) {
			if f.num == num && (!d.is(f, protowire.BytesType) || !yield(f.value)) {
				return
			}
		}
	}
}

// last returns the last value of a field of messages or texts; nil if there is none.
func (d *decoder) last(message []byte, num protowire.Number) []byte {
	var last []byte
	for value := range d.each(message, num) {
		last = value
	}
	return last
}

// oneOf returns the last field of a oneof that is set. Its number is 0 if there is none.
func (d *decoder) oneOf(message []byte, nums ...protowire.Number) field {
	var last field
	for f := range d.fields(message) {
		if slices.Contains(nums, f.num) {
			last = f
		}
	}
	return last
}

// number returns the value of a field of an index, a bool or an enumeration; 0 if it is absent.
func (d *decoder) number(message []byte, num protowire.Number) int {
	if f := d.oneOf(message, num); f.num != 0 {
		return d.index(f)
	}
	return 0
}

// numbers iterates over the values of a repeated index, packed into one field or not.
func (d *decoder) numbers(message []byte, num protowire.Number) iter.Seq[int] {
	return func(yield func(int) bool) {
		for f := range d.fields(message) {
			if f.num != num {
				continue
			}
			if f.typ != protowire.BytesType {
				if !yield(d.index(f)) {
					return
				}
				continue
			}
			for rest := f.value; len(rest) > 0 && d.err == nil; {
				n, size := protowire.ConsumeVarint(rest)
				if size < 0 {
					d.fail("field %d: %s", num, wireError(size))
					return
				}
				if rest = rest[size:]; !yield(d.index(field{num: num, typ: protowire.VarintType, n: n})) {
					return
				}
			}
		}
	}
}

func (d *decoder) index(f field) int {
	if d.is(f, protowire.VarintType) && f.n > math.MaxInt32 {
		d.fail("field %d is %d", f.num, int64(f.n))
	}
	if d.err != nil {
		return 0
	}
	return int(f.n)
}

// is refuses a field of another wire type.
func (d *decoder) is(f field, typ protowire.Type) bool {
	if f.typ != typ {
		d.fail("field %d has wire type %d, not %d", f.num, f.typ, typ)
	}
	return d.err == nil
}

// wireError describes an error of protowire, whose own text differs from build to build.
func wireError(n int) string {
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		return "it is cut off"
	}
	return "no field of a message is there"
}
