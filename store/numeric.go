package store

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// PostgreSQL's numeric has digits of base 10000, on both sides of the point.
	numericBase       = 10_000
	numericBaseDigits = 4
	// Of a number with more digits behind the point the fraction may not fit 64 bits once it is filled up.
	mostShortScale = 16
)

var powersOf10 = func() (powers [mostShortScale + 1]uint64) {
	powers[0] = 1
	for i := 1; i < len(powers); i++ {
		powers[i] = 10 * powers[i-1]
	}
	return powers
}()

// appendShortNumeric appends a number in the binary format of numeric, with its length before it; ok is false where it
// has too many digits for that. Nearly all amounts are short: pgx works with numbers of any length, which takes ten times
// as long.
func appendShortNumeric(to []byte, n pgtype.Numeric) (encoded []byte, ok bool) {
	if !n.Valid {
		return appendLength(to, null), true
	}
	if n.NaN || n.InfinityModifier != pgtype.Finite || n.Int == nil || !n.Int.IsInt64() || n.Exp > 0 || n.Exp < -mostShortScale {
		return to, false
	}
	scale := int(-n.Exp)
	unscaled, sign := n.Int.Int64(), uint16(0)
	magnitude := uint64(unscaled)
	if unscaled < 0 {
		magnitude, sign = -magnitude, 0x4000
	}
	whole, fraction := magnitude/powersOf10[scale], magnitude%powersOf10[scale]
	// At most 5 digits before the point and 4 behind it.
	var room [9]uint16
	digits, fractionDigits := room[:], (scale+numericBaseDigits-1)/numericBaseDigits
	fraction *= powersOf10[fractionDigits*numericBaseDigits-scale]
	const point = 5 // the index of the first digit behind it
	for i := point + fractionDigits - 1; i >= point; i-- {
		digits[i], fraction = uint16(fraction%numericBase), fraction/numericBase
	}
	first := point
	for ; whole > 0; whole /= numericBase {
		first--
		digits[first] = uint16(whole % numericBase)
	}
	end := point + fractionDigits
	for first < end && digits[first] == 0 {
		first++
	}
	for end > first && digits[end-1] == 0 {
		end--
	}
	weight := point - 1 - first // the first digit counts numericBase to this power
	if first == end {
		weight, sign = 0, 0
	}
	to = appendLength(to, 8+2*(end-first))
	for _, field := range [...]uint16{uint16(end - first), uint16(weight), sign, uint16(scale)} {
		to = binary.BigEndian.AppendUint16(to, field)
	}
	for _, digit := range digits[first:end] {
		to = binary.BigEndian.AppendUint16(to, digit)
	}
	return to, true
}
