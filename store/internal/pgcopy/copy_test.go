package pgcopy

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
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
		pgtype.TextOID:      {text, "", long, &text, (*string)(nil)},
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
		pgtype.NumericOID: {pgtype.Numeric{Int: big.NewInt(-1250), Exp: -2, Valid: true}, pgtype.Numeric{}, (*ledger.Decimal)(nil)},
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
			e := encoder{plans: plans}
			held := reflect.New(reflect.TypeOf(value))
			held.Elem().Set(reflect.ValueOf(value))
			columns := columnsOf(reflect.StructOf([]reflect.StructField{{Name: "V", Type: held.Type().Elem()}}), []uint32{typ})
			got, err := e.appendValue([]byte("before"), &columns[0], held.UnsafePointer())
			require.NoError(t, err)
			require.True(t, "before"+string(want) == string(got), "%T as type %d: %.40v", value, typ, value)
		}
	}
}

type copied struct {
	N    int32  `db:"n"`
	Text string `db:"text"`
}

func TestEncoderInPiecesOfAnySize(t *testing.T) {
	types := []uint32{pgtype.Int4OID, pgtype.TextOID}
	rows := func() *encoder {
		return newEncoder(Of([]copied{{1, "a"}, {2, strings.Repeat("b", 5000)}}), types, pgtype.NewMap())
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

func TestRowsThatCanNotBeEncodedAreRefused(t *testing.T) {
	type tooLarge struct {
		N int64 `db:"n"`
	}
	_, err := io.ReadAll(newEncoder(Of([]tooLarge{{math.MaxInt64}}), []uint32{pgtype.Int4OID}, pgtype.NewMap()))
	require.ErrorContains(t, err, "column 1: ")
}

// Who looks at rows sees what would be sent.
func TestRowsCanBeLookedAt(t *testing.T) {
	list := []copied{{1, "a"}, {2, "b"}}
	rows := Of(list)
	require.Equal(t, 2, rows.Count())
	require.Equal(t, []string{"n", "text"}, rows.Columns())
	require.Equal(t, [][]any{{int32(1), "a"}, {int32(2), "b"}}, slices.Collect(rows.Values()))
	require.Empty(t, slices.Collect(Of([]copied(nil)).Values()))

	type placed struct {
		Text  string `db:"text"`
		Place int64  `db:"place"`
	}
	places := Of([]placed{{"a", 7}, {"b", 8}})
	require.Equal(t, []int64{7, 8}, slices.Collect(places.Numbers("place")))
	require.Panics(t, func() { places.Numbers("text")(nil) })
}

// A server takes what is sent for the same rows as those that pgx sends, in each mode that a connection can have; and
// of rows that can't be encoded it takes none.
func TestCopyIntoTable(t *testing.T) {
	url := throwaway.Database(t)
	type row struct {
		N       int64    `db:"n"`
		Texts   []string `db:"Texts"`
		Payload []byte   `db:"payload"`
		Blob    []byte   `db:"blob"`
	}
	rows := make([]row, 3000)
	boxed := make([][]any, len(rows))
	for i := range rows {
		rows[i] = row{int64(i), []string{"a", "b"}, []byte(`{"n": 1.0}`), bytes.Repeat([]byte{1}, 100)}
		boxed[i] = []any{rows[i].N, rows[i].Texts, rows[i].Payload, rows[i].Blob}
	}
	columns := []string{"n", "Texts", "payload", "blob"}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe} {
		config, err := pgx.ParseConfig(url)
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
		taken, err := tx.CopyFrom(t.Context(), pgx.Identifier{"by_pgx"}, columns, pgx.CopyFromRows(boxed))
		require.NoError(t, err)
		require.EqualValues(t, 3000, taken)
		for range 2 {
			require.NoError(t, Copy(t.Context(), tx, pgx.Identifier{"by_us"}, Of(rows)))
		}
		var differ int
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM (SELECT * FROM by_us EXCEPT ALL
			(SELECT * FROM by_pgx UNION ALL SELECT * FROM by_pgx)) AS differ`).Scan(&differ))
		require.Zero(t, differ)
		require.NoError(t, Copy(t.Context(), tx, pgx.Identifier{"no such table"}, Of(rows[:0])), "of no rows")
		bad := append(slices.Clone(rows), row{Payload: []byte("no JSON")})
		err = Copy(t.Context(), tx, pgx.Identifier{"pg_temp", "by_us"}, Of(bad))
		require.ErrorContains(t, err, "copy 3001 rows into by_us: ERROR: invalid input syntax for type json")
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, conn.Close(t.Context()))
	}
}
