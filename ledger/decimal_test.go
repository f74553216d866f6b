package ledger

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", maxWholeDigits)
	fraction := strings.Repeat("0", maxFractionDigits)
	for _, text := range []string{"0", "-0", "1.50", "-12.0000000000", "007", "00.1", nines + "." + fraction, "-000" + nines} {
		d, err := ParseDecimal(text)
		require.NoError(t, err)
		require.Equal(t, Decimal(text), d, "the text stays")
	}
	for text, want := range map[string]string{
		"":                    `is an empty text where a decimal number is expected`,
		"1e5":                 `is not a decimal number of the form -12.50, without an exponent: "1e5"`,
		"9" + nines:           `has more digits than are taken, which are 300 before the point and 300 after it: ` + nines[:60] + `…`,
		"0." + fraction + "0": `has more digits than are taken, which are 300 before the point and 300 after it: 0.` + fraction[:58] + `…`,
	} {
		d, err := ParseDecimal(text)
		require.EqualError(t, err, want)
		require.Empty(t, d)
	}
}

func TestUnscaledIsExact(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("1234567890", 6)
	for text, want := range map[string]struct {
		unscaled string
		scale    int32
	}{
		"0": {"0", 0}, "-0.00": {"0", 2}, "1.50": {"150", 2}, "-0.0000000001": {"-1", 10}, "007": {"7", 0}, "100": {"100", 0},
		"999999999999999999": {"999999999999999999", 0}, "-9999999999.9999999999": {"-99999999999999999999", 10},
		"0.0000000000000000000000": {"0", 22}, "-" + digits + "." + digits: {"-" + digits + digits, 60},
	} {
		unscaled, scale := Decimal(text).Unscaled()
		require.Equal(t, want.unscaled, unscaled.String(), text)
		require.Equal(t, want.scale, scale, text)
	}
}

func TestCanonicalIsWhatNumericPrints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0": true, "1": true, "-1": true, "10": true, "0.0": true, "0.0000000000": true, "-0.10": true, "123.4500": true, "-9": true,
		"-0": false, "-0.00": false, "00": false, "01": false, "-01.5": false, "00.5": false, "0010": false, "000": false,
	} {
		require.Equal(t, want, Decimal(text).Canonical(), text)
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, text := range []string{"", "0", "-0", "1.50", "-00.00", "007", "1e5", "+1", "1.", ".5", "NaN", "-", "1.2.3", strings.Repeat("9", 60), "0.0000000000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDecimal(text)
		if err != nil {
			require.Empty(t, d)
			return
		}
		want, ok := new(big.Rat).SetString(text)
		require.True(t, ok)
		unscaled, scale := d.Unscaled()
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		require.Zero(t, want.Cmp(new(big.Rat).SetFrac(unscaled, power)))

		// As numeric prints it: a digit before the point at least, and as many after it as its scale.
		printed := new(big.Int).Abs(unscaled).String()
		printed = strings.Repeat("0", max(0, int(scale)+1-len(printed))) + printed
		if scale > 0 {
			printed = printed[:len(printed)-int(scale)] + "." + printed[len(printed)-int(scale):]
		}
		if unscaled.Sign() < 0 {
			printed = "-" + printed
		}
		require.Equal(t, printed == text, d.Canonical(), "numeric prints %s", printed)

		number := d.appendNumber(nil)
		again, err := ParseDecimal(string(number))
		require.NoError(t, err)
		require.Equal(t, number, again.appendNumber(nil))
		same, _ := new(big.Rat).SetString(string(number))
		require.Zero(t, want.Cmp(same))
		longer := strings.Replace("-"+strings.TrimPrefix(text, "-"), "-", "-0", 1)
		if !strings.HasPrefix(text, "-") {
			longer = longer[1:]
		}
		require.Equal(t, string(number), string(Decimal(longer).appendNumber(nil)), "the same number in another form")
	})
}
