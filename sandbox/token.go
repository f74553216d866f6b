package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// pointer is a position in a snapshot: after the active contract of that number or,
// where an offset is given, after the incomplete reassignment of that number.
type pointer struct {
	number     int64
	incomplete bool
	offset     int64
}

// checksum binds a token to what it was made for.
func checksum(parts ...any) [4]byte {
	b, err := json.Marshal(parts) // maps are written in the order of their keys
	if err != nil {
		panic(err) // of plain values: can not happen
	}
	sum := sha256.Sum256(b)
	return [4]byte(sum[:4])
}

// encode writes the protobuf message {1: {1: number, 2: offset?}, 2: checksum}.
func (p pointer) encode(sum [4]byte) []byte {
	var inner []byte
	if p.number != 0 { // as protobuf leaves zeros out
		inner = append(inner, 1<<3)
		inner = binary.AppendUvarint(inner, uint64(p.number))
	}
	if p.incomplete {
		inner = append(inner, 2<<3)
		inner = binary.AppendUvarint(inner, uint64(p.offset))
	}
	out := append([]byte{1<<3 | 2, byte(len(inner))}, inner...)
	return append(append(out, 2<<3|2, 4), sum[:]...)
}

var errNotToken = errors.New("not a token")

// decodePointer reads what encode wrote; any other bytes are an error.
func decodePointer(b []byte) (p pointer, sum [4]byte, err error) {
	if len(b) < 8 || b[0] != 1<<3|2 || int(b[1])+8 != len(b) || b[len(b)-6] != 2<<3|2 || b[len(b)-5] != 4 {
		return p, sum, errNotToken
	}
	copy(sum[:], b[len(b)-4:])
	for inner := b[2 : len(b)-6]; len(inner) > 0; {
		n, size := binary.Uvarint(inner[1:])
		if size <= 0 {
			return p, sum, errNotToken
		}
		switch inner[0] {
		case 1 << 3:
			p.number = int64(n)
		case 2 << 3:
			p.incomplete, p.offset = true, int64(n)
		default:
			return p, sum, fmt.Errorf("%w: field %d", errNotToken, inner[0]>>3)
		}
		inner = inner[1+size:]
	}
	return p, sum, nil
}

// resume reads a token that must have been made for what sum stands for.
func resume(token []byte, sum [4]byte, field, code string) (pointer, *cantonError) {
	p, got, err := decodePointer(token)
	switch {
	case err != nil:
		return p, invalidField(field, "the bytes are not a token")
	case got != sum:
		return p, refuse(8, code, "The token does not match the request: it must be for the same participant, version, "+
			"offsets and format.")
	}
	return p, nil
}
