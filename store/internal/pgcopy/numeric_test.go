package pgcopy

import (
	"math/big"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
)

var decimals = rapid.Custom(func(t *rapid.T) ledger.Decimal {
	return ledger.Decimal(rapid.StringMatching(`-?(0{0,9}|[0-9]{1,40})[0-9](\.(0{0,9}|[0-9]{1,40})[0-9]0{0,9})?`).Draw(t, "decimal"))
})

// What pgx sends means the same to the server, whatever zeros it sends.
func TestDecimalsAreSentAsPgxSendsThem(t *testing.T) {
	t.Parallel()
	plans := pgtype.NewMap()
	rapid.Check(t, func(t *rapid.T) {
		d := decimals.Draw(t, "decimal")
		var sent, read pgtype.Numeric
		require.NoError(t, sent.Scan(string(d)))
		byPgx, err := plans.Encode(pgtype.NumericOID, pgtype.BinaryFormatCode, sent, nil)
		require.NoError(t, err)
		require.NoError(t, plans.Scan(pgtype.NumericOID, pgtype.BinaryFormatCode, byPgx, &sent))
		require.NoError(t, plans.Scan(pgtype.NumericOID, pgtype.BinaryFormatCode, appendDecimal(nil, d)[4:], &read))
		want, err := sent.Value()
		require.NoError(t, err)
		have, err := read.Value()
		require.NoError(t, err)
		wantRat, _ := new(big.Rat).SetString(want.(string))
		haveRat, _ := new(big.Rat).SetString(have.(string))
		require.Zero(t, wantRat.Cmp(haveRat), "%v was sent as %v", want, have)
	})
}

// Byte by byte it is what the server makes of the text, and would send itself.
func TestDecimalsAreSentAsTheServerHasThem(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), throwaway.Database(t))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	nines, zeros := strings.Repeat("9", 301), strings.Repeat("0", 299)
	texts := []string{
		"0", "-0", "0.0", commonDecimal, "-0.0000000000", "00", "007", "1", "-1", "9999", "10000", "10001", "-10000", "100000000", "1.50", "0.0001", "-0.00010",
		"0.00001", "0.00000000", "0.000000001", "12345.67890", "10000.0001", "10000.0000", "123456789012345678.1234567890", nines, "-" + nines + "." + nines,
		"0." + zeros + "1", "1" + zeros, "-" + zeros + "1." + zeros + "0",
	}
	for seed := range 2_000 {
		texts = append(texts, string(decimals.Example(seed)))
	}
	rows, err := conn.Query(t.Context(), "SELECT x, numeric_send(x::numeric) FROM unnest($1::text[]) x", texts)
	require.NoError(t, err)
	compared := 0
	for rows.Next() {
		var text string
		var sent []byte
		require.NoError(t, rows.Scan(&text, &sent))
		require.Equal(t, append([]byte("before"), appendBytes(nil, sent)...), appendDecimal([]byte("before"), ledger.Decimal(text)), text)
		compared++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, len(texts), compared)
}
