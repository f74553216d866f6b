package store

import (
	"math"
	"math/big"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What pgx sends means the same to the server, whatever zeros either sends.
func requireSameNumeric(t require.TestingT, n pgtype.Numeric) {
	encoded, ok := appendShortNumeric(nil, n)
	require.True(t, ok, n)
	var read pgtype.Numeric
	plans := pgtype.NewMap()
	if !n.Valid {
		require.Equal(t, []byte{0xff, 0xff, 0xff, 0xff}, encoded)
		return
	}
	require.NoError(t, plans.Scan(pgtype.NumericOID, pgtype.BinaryFormatCode, encoded[4:], &read))
	want, err := n.Value()
	require.NoError(t, err)
	have, err := read.Value()
	require.NoError(t, err)
	wantRat, _ := new(big.Rat).SetString(want.(string))
	haveRat, _ := new(big.Rat).SetString(have.(string))
	require.Zero(t, wantRat.Cmp(haveRat), "%v was sent as %v", want, have)
	require.EqualValues(t, -n.Exp, encoded[4+7], "digits behind the point")
}

func TestShortNumericsAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, unscaled := range []int64{0, 1, -1, 9, 10, 9999, 10000, 10001, -10000, 1e16, 123456789012345678, math.MaxInt64, math.MinInt64} {
		for scale := range mostShortScale + 1 {
			requireSameNumeric(t, pgtype.Numeric{Int: big.NewInt(unscaled), Exp: int32(-scale), Valid: true})
		}
	}
	requireSameNumeric(t, pgtype.Numeric{})
	rapid.Check(t, func(t *rapid.T) {
		requireSameNumeric(t, pgtype.Numeric{
			Int: big.NewInt(rapid.Int64().Draw(t, "unscaled")), Exp: int32(-rapid.IntRange(0, mostShortScale).Draw(t, "scale")), Valid: true,
		})
	})
	long, _ := new(big.Int).SetString("9223372036854775808", 10)
	for _, n := range []pgtype.Numeric{
		{Int: long, Valid: true},
		{Int: big.NewInt(1), Exp: -mostShortScale - 1, Valid: true},
		{Int: big.NewInt(1), Exp: 1, Valid: true},
		{NaN: true, Valid: true},
		{InfinityModifier: pgtype.Infinity, Valid: true},
	} {
		_, ok := appendShortNumeric(nil, n)
		require.False(t, ok)
	}
}
