package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
)

// Every value is encoded as pgx encodes it, whoever does it.
func TestCopyEncodesAsPgxDoes(t *testing.T) {
	text, long, n64, n32, yes := "a 'text' é", strings.Repeat("x", 100_000), int64(math.MinInt64), int32(-1), true
	at := func(text string) pgtype.Timestamptz {
		parsed, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return pgtype.Timestamptz{Time: parsed, Valid: true}
	}
	values := map[uint32][]any{
		pgtype.TextOID:      {text, "", long, &text, (*string)(nil), nil},
		pgtype.Int8OID:      {n64, int64(math.MaxInt64), &n64, (*int64)(nil), int32(7), 7},
		pgtype.Int4OID:      {n32, int32(math.MaxInt32), &n32, (*int32)(nil), int64(7)},
		pgtype.BoolOID:      {true, false, &yes, (*bool)(nil)},
		pgtype.ByteaOID:     {[]byte{0, 1, 255}, []byte{}, []byte(nil)},
		pgtype.JSONBOID:     {[]byte(`{"a": [1, "é"]}`), []byte("null"), []byte(nil)},
		pgtype.JSONOID:      {[]byte(`{"a": 1}`), []byte(nil)},
		pgtype.TextArrayOID: {[]string{"a", "", long}, []string{}, []string(nil)},
		pgtype.Int8ArrayOID: {[]int64{1, 2}, []int64(nil)},
		pgtype.TimestamptzOID: {
			at("2025-10-14T11:29:20.015513Z"), at("1999-12-31T23:59:59.999999999Z"), at("0001-01-01T00:00:00.000001Z"),
			at("9999-12-31T23:59:59.999999+01:00"), pgtype.Timestamptz{}, pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true},
		},
		pgtype.NumericOID: {pgtype.Numeric{Int: big.NewInt(-1250), Exp: -2, Valid: true}, pgtype.Numeric{}},
	}
	plans := pgtype.NewMap()
	for typ, list := range values {
		for _, value := range list {
			want := binary.BigEndian.AppendUint32(nil, math.MaxUint32)
			encoded, err := plans.Encode(typ, pgtype.BinaryFormatCode, value, []byte{})
			require.NoError(t, err)
			if encoded != nil {
				want = append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
			}
			r := copyReader{plans: plans}
			got, err := r.appendValue([]byte("before"), typ, value)
			require.NoError(t, err)
			require.True(t, "before"+string(want) == string(got), "%T as type %d: %.40v", value, typ, value)
		}
	}
}

// copyRowsOf is a source of rows, which ends with an error where there is one.
type copyRowsOf struct {
	rows [][]any
	err  error
}

func (s *copyRowsOf) Next() bool             { return len(s.rows) > 0 }
func (s *copyRowsOf) Values() ([]any, error) { row := s.rows[0]; s.rows = s.rows[1:]; return row, nil }
func (s *copyRowsOf) Err() error             { return s.err }

func TestCopyReaderInPiecesOfAnySize(t *testing.T) {
	types := []uint32{pgtype.Int4OID, pgtype.TextOID}
	rows := func() *copyReader {
		return newCopyReader(&copyRowsOf{rows: [][]any{{int32(1), "a"}, {int32(2), strings.Repeat("b", 5000)}}}, types, pgtype.NewMap())
	}
	want := copyHeader +
		"\x00\x02" + "\x00\x00\x00\x04\x00\x00\x00\x01" + "\x00\x00\x00\x01a" +
		"\x00\x02" + "\x00\x00\x00\x04\x00\x00\x00\x02" + "\x00\x00\x13\x88" + strings.Repeat("b", 5000) +
		"\xff\xff"
	for _, r := range []io.Reader{rows(), iotest.OneByteReader(rows()), iotest.HalfReader(rows())} {
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.True(t, want == string(got))
	}
	full := make([]byte, 4000)
	n, err := rows().Read(full)
	require.NoError(t, err)
	require.Equal(t, len(full), n, "a message to the server is full, whatever the rows' size")
}

func TestCopyRefusesRows(t *testing.T) {
	types := []uint32{pgtype.Int4OID}
	broken := errors.New("broken")
	for _, c := range []struct {
		source *copyRowsOf
		want   string
	}{
		{&copyRowsOf{rows: [][]any{{int32(1)}}, err: broken}, "broken"},
		{&copyRowsOf{rows: [][]any{{int32(1), int32(2)}}}, "a row has 2 values, and the table 1 columns"},
		{&copyRowsOf{rows: [][]any{{int64(math.MaxInt64)}}}, "column 1: "},
	} {
		_, err := io.ReadAll(newCopyReader(c.source, types, pgtype.NewMap()))
		require.ErrorContains(t, err, c.want)
	}
}

// A server takes what is sent for the same rows as those that pgx sends, in each mode that a connection can have; and of
// rows that can't be encoded it takes none.
func TestCopyIntoTable(t *testing.T) {
	d := newDatabase(t)
	rows := func() *copyRowsOf {
		s := &copyRowsOf{}
		for i := range 3000 {
			s.rows = append(s.rows, []any{int64(i), []string{"a", "b"}, []byte(`{"n": 1.0}`), bytes.Repeat([]byte{1}, 100)})
		}
		return s
	}
	columns := []string{"n", "Texts", "payload", "blob"}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe} {
		config, err := pgx.ParseConfig(d.url)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), config)
		require.NoError(t, err)
		for _, table := range []string{"by_pgx", "by_us"} {
			_, err := conn.Exec(t.Context(), "CREATE TEMP TABLE "+table+` (n bigint, "Texts" text[], payload jsonb, blob bytea)`)
			require.NoError(t, err)
		}
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		n, err := tx.CopyFrom(t.Context(), pgx.Identifier{"by_pgx"}, columns, rows())
		require.NoError(t, err)
		require.EqualValues(t, 3000, n)
		for range 2 {
			n, err = copyTx{tx}.CopyFrom(t.Context(), pgx.Identifier{"by_us"}, columns, rows())
			require.NoError(t, err)
			require.EqualValues(t, 3000, n)
		}
		var differ int
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM (SELECT * FROM by_us EXCEPT ALL
			(SELECT * FROM by_pgx UNION ALL SELECT * FROM by_pgx)) AS differ`).Scan(&differ))
		require.Zero(t, differ)
		_, err = copyTx{tx}.CopyFrom(t.Context(), pgx.Identifier{"by_us"}, columns, &copyRowsOf{rows: rows().rows, err: errors.New("broken")})
		require.ErrorContains(t, err, "broken")
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, conn.Close(t.Context()))
	}
}
