package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Decimal is a decimal number as the server wrote it, which may be each form that Java's BigDecimal has: an optional
// minus sign, digits, optionally a point and digits or none behind it, and optionally an exponent, as in 5.000E-7 and
// 0E-10. Without its exponent it has at most 300 digits before the point and 300 after it. Its methods work only on
// values from [ParseDecimal] or decoding.
type Decimal string

// Numbers of a ledger (Daml's Numeric) have at most 38 digits; more are taken, and all that are taken are kept.
// PostgreSQL's numeric holds thousands, but sums overflow, indexes refuse
// them, and each takes seconds to write: one record could block the stream.
const (
	maxWholeDigits    = 300 // before the point, without leading zeros
	maxFractionDigits = 300 // after it
	maxExponentDigits = 9   // without leading zeros
)

// ParseDecimal parses a decimal number. It refuses a plus sign and a point without digits before it. It keeps the text.
// The database's function decimal_of reads the same.
func ParseDecimal(text string) (Decimal, error) {
	if err := checkDecimal([]byte(text)); err != nil {
		return "", err
	}
	return Decimal(text), nil
}

func checkDecimal(text []byte) error {
	mantissa, exponent, ok := cutExponent(bytes.TrimPrefix(text, []byte("-")))
	whole, fraction, hasPoint := bytes.Cut(mantissa, []byte("."))
	if !ok || !allDigits(whole) || hasPoint && len(fraction) > 0 && !allDigits(fraction) {
		if len(text) == 0 {
			return errors.New("is an empty text where a decimal number is expected")
		}
		return fmt.Errorf("is not a decimal number of the form -12.50 or 5.0E-7: %q", shorten(text))
	}
	if len(fraction)-exponent > maxFractionDigits || len(whole)+exponent > maxWholeDigits &&
		wholeDigits(whole, fraction, exponent) > maxWholeDigits {
		return fmt.Errorf("has more digits than are taken, which are %d before the point and %d after it: %s",
			maxWholeDigits, maxFractionDigits, shorten(text))
	}
	return nil
}

// cutExponent returns what stands before the exponent, and the exponent, which is 0 where there is none.
func cutExponent[T string | []byte](text T) (mantissa T, exponent int, ok bool) {
	for i := range len(text) {
		if text[i] == 'E' || text[i] == 'e' {
			exponent, ok = parseExponent(string(text[i+1:]))
			return text[:i], exponent, ok
		}
	}
	return text, 0, true
}

func parseExponent(text string) (exponent int, ok bool) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(text, "+")
	}
	if !allDigits([]byte(digits)) || len(strings.TrimLeft(digits, "0")) > maxExponentDigits {
		return 0, false
	}
	for i := range len(digits) {
		exponent = exponent*10 + int(digits[i]-'0')
	}
	if negative {
		exponent = -exponent
	}
	return exponent, true
}

// wholeDigits returns how many digits stand before the point once the exponent is applied, without leading zeros.
func wholeDigits(whole, fraction []byte, exponent int) int {
	if whole = bytes.TrimLeft(whole, "0"); len(whole) > 0 {
		return len(whole) + exponent
	}
	if rest := bytes.TrimLeft(fraction, "0"); len(rest) > 0 {
		return len(rest) - len(fraction) + exponent
	}
	return 0
}

func allDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

// Digits returns the digits before the point without leading zeros, and those after it, as PostgreSQL's numeric has
// them: an exponent moves the point. A zero can be negative.
func (d Decimal) Digits() (negative bool, whole, fraction string) {
	text, negative := strings.CutPrefix(string(d), "-")
	mantissa, exponent, _ := cutExponent(text)
	whole, fraction, _ = strings.Cut(mantissa, ".")
	switch whole = strings.TrimLeft(whole, "0"); {
	case exponent > 0 && whole == "" && strings.Trim(fraction, "0") == "": // with an exponent of any size
		fraction = fraction[min(exponent, len(fraction)):]
	case exponent > 0:
		fraction += strings.Repeat("0", max(0, exponent-len(fraction)))
		whole, fraction = strings.TrimLeft(whole+fraction[:exponent], "0"), fraction[exponent:]
	case exponent < 0:
		whole = strings.Repeat("0", max(0, -exponent-len(whole))) + whole
		whole, fraction = whole[:len(whole)+exponent], whole[len(whole)+exponent:]+fraction
	}
	return negative, whole, fraction
}

// Plain returns the number as PostgreSQL's numeric prints it: without an exponent, leading zeros, and the sign of a
// zero.
func (d Decimal) Plain() Decimal {
	if d.Canonical() {
		return d
	}
	negative, whole, fraction := d.Digits()
	digits := []byte(whole + fraction)
	return withPoint(negative && len(bytes.Trim(digits, "0")) > 0, digits, len(fraction))
}

// Plus returns the sum as PostgreSQL's numeric does, with as many digits after the point as the longer of the two
// numbers.
func (d Decimal) Plus(other Decimal) Decimal {
	a, aScale, aFits := d.unscaledInt64()
	b, bScale, bFits := other.unscaledInt64()
	if aFits && bFits && aScale == bScale { // nearly always, and much faster
		var room [fitInt64 + 2]byte
		return withPoint(a+b < 0, strconv.AppendUint(room[:0], uint64(max(a+b, -a-b)), 10), aScale)
	}
	scale := max(aScale, bScale)
	sum := d.unscaled(scale)
	sum.Add(sum, other.unscaled(scale))
	return withPoint(sum.Sign() < 0, new(big.Int).Abs(sum).Append(nil, 10), scale)
}

// fitInt64 is how many digits a number may have so that the sum of two fits an int64.
const fitInt64 = 18

// unscaledInt64 returns the number without its point, and how many digits are after the point, if it has at most
// fitInt64 digits.
func (d Decimal) unscaledInt64() (unscaled int64, scale int, ok bool) {
	negative, whole, fraction := d.Digits()
	if len(whole)+len(fraction) > fitInt64 {
		return 0, len(fraction), false
	}
	for _, digits := range [...]string{whole, fraction} {
		for i := range len(digits) {
			unscaled = unscaled*10 + int64(digits[i]-'0')
		}
	}
	if negative {
		unscaled = -unscaled
	}
	return unscaled, len(fraction), true
}

// unscaled returns the number without its point, padded to a number of digits after it that is not less than it has.
func (d Decimal) unscaled(scale int) *big.Int {
	negative, whole, fraction := d.Digits()
	unscaled, _ := new(big.Int).SetString("0"+whole+fraction+strings.Repeat("0", scale-len(fraction)), 10)
	if negative {
		unscaled.Neg(unscaled)
	}
	return unscaled
}

// withPoint inserts a point before the last digits, as many as scale.
func withPoint(negative bool, digits []byte, scale int) Decimal {
	var room [64]byte
	text := room[:0]
	if negative {
		text = append(text, '-')
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = append(bytes.Repeat([]byte("0"), missing), digits...)
	}
	text = append(text, digits[:len(digits)-scale]...)
	if scale > 0 {
		text = append(append(text, '.'), digits[len(digits)-scale:]...)
	}
	return Decimal(text)
}

// Canonical reports whether PostgreSQL's numeric prints the number as the server wrote it: it does unless there is an
// exponent, a point that nothing follows, or a leading zero, or a zero has a minus sign.
func (d Decimal) Canonical() bool {
	text, negative := strings.CutPrefix(string(d), "-")
	if strings.ContainsAny(text, "eE") || text[len(text)-1] == '.' || negative && strings.Trim(text, "0.") == "" {
		return false
	}
	return text[0] != '0' || len(text) == 1 || text[1] == '.'
}

// appendNumber appends the number in a normal form, which is the same for equal numbers: 1.50 and 01.5 are 1.5.
func (d Decimal) appendNumber(to []byte) []byte {
	negative, whole, fraction := d.Digits()
	fraction = strings.TrimRight(fraction, "0")
	if negative && whole+fraction != "" {
		to = append(to, '-')
	}
	if whole == "" {
		whole = "0"
	}
	to = append(to, whole...)
	if fraction != "" {
		to = append(append(to, '.'), fraction...)
	}
	return to
}
