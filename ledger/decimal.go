package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Decimal is a decimal number as the server wrote it: an optional minus sign, digits, and optionally a point and digits.
// It has at most 300 digits before the point and 300 after it. All methods want one that [ParseDecimal] or the decoding made.
type Decimal string

// Real numbers have at most 38 digits. PostgreSQL's numeric holds thousands more, but not the sum of two of its longest, no
// index takes them, and each costs seconds to write: one record could hold up all.
const (
	maxWholeDigits    = 300 // before the point, without leading zeros
	maxFractionDigits = 300 // after it
)

// ParseDecimal reads a decimal number. Exponents, a plus sign, and a point without digits on both sides are refused;
// leading zeros and the minus sign of a zero are kept.
func ParseDecimal(text string) (Decimal, error) {
	if err := checkDecimal([]byte(text)); err != nil {
		return "", err
	}
	return Decimal(text), nil
}

func checkDecimal(text []byte) error {
	whole, fraction, hasPoint := bytes.Cut(bytes.TrimPrefix(text, []byte("-")), []byte("."))
	if !allDigits(whole) || hasPoint && !allDigits(fraction) {
		if len(text) == 0 {
			return errors.New("is an empty text where a decimal number is expected")
		}
		return fmt.Errorf("is not a decimal number of the form -12.50, without an exponent: %q", shorten(text))
	}
	if len(fraction) > maxFractionDigits || len(whole) > maxWholeDigits && len(bytes.TrimLeft(whole, "0")) > maxWholeDigits {
		return fmt.Errorf("has more digits than are taken, which are %d before the point and %d after it: %s",
			maxWholeDigits, maxFractionDigits, shorten(text))
	}
	return nil
}

func allDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

// parts are the digits before the point without leading zeros, and those after it.
func (d Decimal) parts() (negative bool, whole, fraction string) {
	text, negative := strings.CutPrefix(string(d), "-")
	whole, fraction, _ = strings.Cut(text, ".")
	return negative, strings.TrimLeft(whole, "0"), fraction
}

// Unscaled is the number without its point, and how many of its digits stand behind the point: the number is
// unscaled / 10^scale.
func (d Decimal) Unscaled() (unscaled *big.Int, scale int32) {
	negative, whole, fraction := d.parts()
	const fitInt64 = 18
	if len(whole)+len(fraction) <= fitInt64 { // nearly all do, and this is much faster
		n := int64(0)
		for _, digits := range []string{whole, fraction} {
			for i := range len(digits) {
				n = n*10 + int64(digits[i]-'0')
			}
		}
		unscaled = big.NewInt(n)
	} else {
		unscaled, _ = new(big.Int).SetString(whole+fraction, 10)
	}
	if negative {
		unscaled.Neg(unscaled)
	}
	return unscaled, int32(len(fraction))
}

// Canonical tells whether PostgreSQL's numeric prints the number as the server wrote it: it does, but for leading zeros
// and the minus sign of a zero.
func (d Decimal) Canonical() bool {
	negative, whole, fraction := d.parts()
	if negative && whole == "" && strings.Trim(fraction, "0") == "" {
		return false
	}
	text := strings.TrimPrefix(string(d), "-")
	return text[0] != '0' || whole == "" && (len(text) == 1 || text[1] == '.')
}

// appendNumber appends the number in the one form in which equal numbers are written: 1.50 and 01.5 are 1.5.
func (d Decimal) appendNumber(to []byte) []byte {
	negative, whole, fraction := d.parts()
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
