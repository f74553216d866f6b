package store

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Columns are encoded as pgx encodes them, without room that is left over.
func TestArraysAreEncodedAsPgxDoes(t *testing.T) {
	t.Parallel()
	plans := pgtype.NewMap()
	for _, texts := range [][]string{{"a", "", "ä 😀", strings.Repeat("x", 100_000)}, {"a"}, {}} {
		numbers, small := make([]int64, len(texts)), make([]int32, len(texts))
		for i := range texts {
			numbers[i], small[i] = int64(i)<<40-1, int32(i)<<20-1
		}
		for _, column := range []struct {
			typ     uint32
			want    any
			encoded []byte
		}{
			{pgtype.TextArrayOID, texts, arrayOfText(texts, func(s *string) string { return *s })},
			{pgtype.Int8ArrayOID, numbers, arrayOfInt64(numbers, func(n *int64) int64 { return *n })},
			{pgtype.Int4ArrayOID, small, arrayOfInt32(small, func(n *int32) int32 { return *n })},
		} {
			want, err := plans.Encode(column.typ, pgtype.BinaryFormatCode, column.want, nil)
			require.NoError(t, err)
			require.True(t, string(want) == string(column.encoded), "%d elements of %T", len(texts), column.want)
			require.Equal(t, len(column.encoded), cap(column.encoded))
		}
	}
}

// A query with an array of texts finds the same rows in each mode that a connection can have, and can be asked again.
func TestQueryWithAnArray(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe} {
		config, err := pgxpool.ParseConfig(d.url)
		require.NoError(t, err)
		config.ConnConfig.DefaultQueryExecMode = mode
		config.MaxConns = 1
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		require.NoError(t, err)
		defer pool.Close()
		for _, texts := range [][]string{{"b", "", "ä 😀"}, {}, {"a"}} {
			require.NoError(t, pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
				rows, err := arrayConn{conn}.Query(t.Context(), "SELECT unnest($1::text[])", texts)
				require.NoError(t, err)
				got, err := pgx.CollectRows(rows, pgx.RowTo[string])
				require.Equal(t, texts, got)
				return err
			}))
		}
		require.ErrorContains(t, pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
			rows, err := arrayConn{conn}.Query(t.Context(), "SELECT unnest($1::text[])::integer", []string{"1", "x"})
			if err == nil {
				_, err = pgx.CollectRows(rows, pgx.RowTo[int32])
			}
			return err
		}), "invalid input syntax")
	}
}
