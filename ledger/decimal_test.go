package ledger

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", maxWholeDigits)
	fraction := strings.Repeat("0", maxFractionDigits)
	for _, text := range []string{"0", "-0", "1.50", "-12.0000000000", "007", "00.1", nines + "." + fraction, "-000" + nines,
		"5.000E-7", "0E-10", "-0e10", "1E+3", "9999.", "0.", "1.e2", "0E-300", "0E999999999", "1E299", "1E-300", "0." + fraction + "1E9", "-1E0000000000002"} {
		d, err := ParseDecimal(text)
		require.NoError(t, err)
		require.Equal(t, Decimal(text), d, "the text stays")
	}
	for _, text := range []string{"1e", "1E+-3", "0E9999999999", ".5", "+1", "NaN", "-Infinity", "1.5E", "--1", "-", "1.2.3", "1,5", " 1", "0x1F", "1_000", "١٢"} {
		d, err := ParseDecimal(text)
		require.EqualError(t, err, `is not a decimal number of the form -12.50 or 5.0E-7: "`+text+`"`)
		require.Empty(t, d)
	}
	for text, want := range map[string]string{
		"":                    `is an empty text where a decimal number is expected`,
		"1E300":               `has more digits than are taken, which are 300 before the point and 300 after it: 1E300`,
		"1E999999999":         `has more digits than are taken, which are 300 before the point and 300 after it: 1E999999999`,
		"0E-301":              `has more digits than are taken, which are 300 before the point and 300 after it: 0E-301`,
		"9" + nines:           `has more digits than are taken, which are 300 before the point and 300 after it: ` + nines[:60] + `…`,
		"0." + fraction + "0": `has more digits than are taken, which are 300 before the point and 300 after it: 0.` + fraction[:58] + `…`,
	} {
		d, err := ParseDecimal(text)
		require.EqualError(t, err, want)
		require.Empty(t, d)
	}
}

func TestPlusIsWhatNumericAdds(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", 300)
	for _, sum := range [][3]Decimal{
		{"0", "0", "0"}, {"0", "1.50", "1.50"}, {"-0", "-0.00", "0.00"}, {"1.50", "-1.50", "0.00"}, {"007", "1", "8"}, {"0.05", "-0.10", "-0.05"},
		{"999999999999999999", "999999999999999999", "1999999999999999998"}, {"-99999999.9999999999", "-0.0000000001", "-100000000.0000000000"},
		{"1", "0.0000000001", "1.0000000001"}, {"-12345678901.0000000001", "12345678901", "-0.0000000001"},
		{Decimal(nines), "1." + Decimal(nines), "1" + Decimal(strings.Repeat("0", 300)) + "." + Decimal(nines)},
	} {
		require.Equal(t, sum[2], sum[0].Plus(sum[1]))
		require.Equal(t, sum[2], sum[1].Plus(sum[0]))
	}
	decimals := rapid.Custom(func(t *rapid.T) Decimal {
		return Decimal(rapid.StringMatching(`-?[0-9]{1,20}(\.[0-9]{1,12})?`).Draw(t, "decimal"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := decimals.Draw(t, "a"), decimals.Draw(t, "b")
		ratA, _ := new(big.Rat).SetString(string(a))
		ratB, _ := new(big.Rat).SetString(string(b))
		_, _, fractionA := a.Digits()
		_, _, fractionB := b.Digits()
		sum := a.Plus(b)
		require.Equal(t, ratA.Add(ratA, ratB).FloatString(max(len(fractionA), len(fractionB))), string(sum))
		require.True(t, sum.Canonical())
	})
}

func TestCanonicalIsWhatNumericPrints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0": true, "1": true, "-1": true, "10": true, "0.0": true, "0.0000000000": true, "-0.10": true, "123.4500": true, "-9": true,
		"1E3": false, "0e-10": false, "1.": false, "-0": false, "-0.00": false, "00": false, "01": false, "-01.5": false, "00.5": false, "0010": false, "000": false,
	} {
		require.Equal(t, want, Decimal(text).Canonical(), text)
	}
}

func TestPlainIsWhatNumericPrints(t *testing.T) {
	t.Parallel()
	for text, want := range map[Decimal]Decimal{
		"5.000E-7": "0.0000005000", "0E-10": "0.0000000000", "-0E-2": "0.00", "0.": "0", "-9999.": "-9999", "1E+3": "1000", "1.50e1": "15.0",
		"-1.5E1": "-15", "007": "7", "0.00E1": "0.0", "0.001E5": "100", "0E999999999": "0", "12.5": "12.5", "-12E-1": "-1.2", "0.50E0": "0.50",
	} {
		require.Equal(t, want, text.Plain(), text)
		require.True(t, text.Plain().Canonical())
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, text := range []string{"", "0", "-0", "1.50", "-00.00", "007", "1e5", "+1", "1.", ".5", "NaN", "-", "1.2.3", strings.Repeat("9", 60), "0.0000000000",
		"5.000E-7", "0E-10", "-1E+3", "1.e-2", "0E999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDecimal(text)
		if err != nil {
			require.Empty(t, d)
			return
		}
		of := strings.TrimSuffix(text, ".")
		if value := d.appendNumber(nil); string(value) == "0" { // a Rat would compute the power
			of = "0"
		}
		want, ok := new(big.Rat).SetString(of)
		require.True(t, ok)
		_, _, fraction := d.Digits()
		scale := len(fraction)
		unscaled := d.unscaled(scale)
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		require.Zero(t, want.Cmp(new(big.Rat).SetFrac(unscaled, power)))

		// As numeric prints it: a digit before the point at least, and as many after it as its scale.
		printed := new(big.Int).Abs(unscaled).String()
		printed = strings.Repeat("0", max(0, scale+1-len(printed))) + printed
		if scale > 0 {
			printed = printed[:len(printed)-scale] + "." + printed[len(printed)-scale:]
		}
		if unscaled.Sign() < 0 {
			printed = "-" + printed
		}
		require.Equal(t, printed == text, d.Canonical(), "numeric prints %s", printed)
		require.Equal(t, Decimal(printed), d.Plain())

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
