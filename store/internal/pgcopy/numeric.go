package pgcopy

import (
	"encoding/binary"

	"ledgerindexer/ledger"
)

// appendDecimal appends a number in the binary format of numeric, with its length before it, as the server would send
// it. It comes straight from the text: pgx makes big numbers of it, which takes ten times as long.
func appendDecimal(to []byte, d ledger.Decimal) []byte {
	if d == commonDecimal {
		return append(to, "\x00\x00\x00\x08"+"\x00\x00\x00\x00\x00\x00\x00\x0a"...)
	}
	negative, whole, fraction := d.Digits()
	scale := len(fraction)
	at := len(to)
	// its length, and what comes before the digits
	to = append(to, "\x00\x00\x00\x00"+"\x00\x00\x00\x00\x00\x00\x00\x00"...)
	digits := len(to)
	weight := (len(whole)+numericDigit-1)/numericDigit - 1 // the first digit counts 10000 to this power
	for len(whole) > 0 {
		n := (len(whole)-1)%numericDigit + 1
		to = binary.BigEndian.AppendUint16(to, numericDigitOf(whole[:n]))
		whole = whole[n:]
	}
	for len(fraction) > 0 {
		n := min(numericDigit, len(fraction))
		digit := numericDigitOf(fraction[:n])
		for range numericDigit - n {
			digit *= 10
		}
		fraction = fraction[n:]
		if digit == 0 && len(to) == digits {
			weight--
			continue
		}
		to = binary.BigEndian.AppendUint16(to, digit)
	}
	for len(to) > digits && to[len(to)-1] == 0 && to[len(to)-2] == 0 {
		to = to[:len(to)-2]
	}
	sign := uint16(0)
	switch {
	case len(to) == digits:
		weight = 0
	case negative:
		sign = 0x4000
	}
	binary.BigEndian.PutUint32(to[at:], uint32(len(to)-at-4))
	for i, field := range [...]uint16{uint16((len(to) - digits) / 2), uint16(weight), sign, uint16(scale)} {
		binary.BigEndian.PutUint16(to[at+4+2*i:], field)
	}
	return to
}

// PostgreSQL's numeric has digits of base 10000, on both sides of the point: each stands for four of a decimal's.
const numericDigit = 4

// commonDecimal is what most fees and rewards are.
const commonDecimal = "0.0000000000"

// numericDigitOf returns the number that at most four decimal digits stand for.
func numericDigitOf(digits string) (n uint16) {
	for i := range len(digits) {
		n = 10*n + uint16(digits[i]-'0')
	}
	return n
}
