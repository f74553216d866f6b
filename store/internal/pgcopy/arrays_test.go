package pgcopy

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
)

// Lists are encoded as pgx encodes them, without memory that is left over; others, and texts forms, are left to pgx.
func TestArraysAreEncodedAsPgxDoes(t *testing.T) {
	t.Parallel()
	pgx, ours := pgtype.NewMap(), pgtype.NewMap()
	RegisterArrays(ours)
	for _, texts := range [][]string{{"a", "", "ä 😀", strings.Repeat("x", 100_000)}, {"a"}, {}, nil} {
		var numbers []int64
		var small []int32
		if texts != nil {
			numbers, small = []int64{}, []int32{}
		}
		for i := range texts {
			numbers, small = append(numbers, int64(i)<<40-1), append(small, int32(i)<<20-1)
		}
		for typ, list := range map[uint32]any{pgtype.TextArrayOID: texts, pgtype.Int8ArrayOID: numbers, pgtype.Int4ArrayOID: small} {
			want, err := pgx.Encode(typ, pgtype.BinaryFormatCode, list, nil)
			require.NoError(t, err)
			got, err := ours.Encode(typ, pgtype.BinaryFormatCode, list, nil)
			require.NoError(t, err)
			require.True(t, string(want) == string(got), "%d elements of %T", len(texts), list)
			require.Equal(t, want == nil, got == nil)
			require.Equal(t, len(got), cap(got))

			want, err = pgx.Encode(typ, pgtype.TextFormatCode, list, nil)
			require.NoError(t, err)
			got, err = ours.Encode(typ, pgtype.TextFormatCode, list, nil)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}
		behind, err := ours.Encode(pgtype.TextArrayOID, pgtype.BinaryFormatCode, texts, []byte("before"))
		require.NoError(t, err)
		require.True(t, texts == nil && behind == nil || strings.HasPrefix(string(behind), "before"))
	}
	one := "one"
	want, err := pgx.Encode(pgtype.TextArrayOID, pgtype.BinaryFormatCode, []*string{&one, nil}, nil)
	require.NoError(t, err)
	got, err := ours.Encode(pgtype.TextArrayOID, pgtype.BinaryFormatCode, []*string{&one, nil}, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A query with lists finds the same rows in each mode that a connection can have, reads lists as before, and can be
// asked again.
func TestQueryWithArrays(t *testing.T) {
	t.Parallel()
	url := throwaway.Database(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe} {
		config, err := pgx.ParseConfig(url)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), config)
		require.NoError(t, err)
		RegisterArrays(conn.TypeMap())
		for _, texts := range [][]string{{"b", "", "ä 😀"}, {}, {"a"}} {
			var got []string
			var lengths []int32
			err := conn.QueryRow(t.Context(), "SELECT $1::text[], ARRAY (SELECT octet_length(x) FROM unnest($1::text[]) x)", texts).Scan(&got, &lengths)
			require.NoError(t, err)
			require.Equal(t, texts, got)
			require.Len(t, lengths, len(texts))
		}
		_, err = conn.Exec(t.Context(), "SELECT unnest($1::text[])::integer", []string{"1", "x"})
		require.ErrorContains(t, err, "invalid input syntax")
		require.NoError(t, conn.Close(t.Context()))
	}
}
