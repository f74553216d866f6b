package store

import (
	"bytes"
	"context"
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

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
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
			r := copyReader{plans: plans}
			held := reflect.New(reflect.TypeOf(value))
			held.Elem().Set(reflect.ValueOf(value))
			columns, err := columnsOf(reflect.StructOf([]reflect.StructField{{Name: "V", Type: held.Type().Elem()}}), []uint32{typ})
			require.NoError(t, err)
			got, err := r.appendValue([]byte("before"), &columns[0], held.UnsafePointer())
			require.NoError(t, err)
			require.True(t, "before"+string(want) == string(got), "%T as type %d: %.40v", value, typ, value)
		}
	}
}

type copied struct {
	N    int32
	Text string
}

func TestCopyReaderInPiecesOfAnySize(t *testing.T) {
	types := []uint32{pgtype.Int4OID, pgtype.TextOID}
	rows := func() *copyReader {
		return newCopyReader(rowsOf([]copied{{1, "a"}, {2, strings.Repeat("b", 5000)}}), types, pgtype.NewMap())
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
	for want, rows := range map[string]rowAt{
		"a row has 2 values, and the table 1 columns": rowsOf([]copied{{1, "a"}}),
		"column 1: ": rowsOf([]struct{ N int64 }{{math.MaxInt64}}),
	} {
		_, err := io.ReadAll(newCopyReader(rows, types, pgtype.NewMap()))
		require.ErrorContains(t, err, want)
	}
}

// The values of rows that sqlc generates a COPY for stand in the order of its columns.
func TestRowsHaveTheOrderOfTheirColumns(t *testing.T) {
	queries := reflect.ValueOf(dbsqlc.New())
	generated := 0
	for i := range queries.NumMethod() {
		name, method := queries.Type().Method(i).Name, queries.Method(i)
		if !strings.HasSuffix(name, "Copy") {
			continue
		}
		generated++
		rows := reflect.MakeSlice(method.Type().In(2), 1, 1)
		if rows.Index(0).Kind() != reflect.Struct {
			continue // it has one column
		}
		for column := range rows.Index(0).NumField() {
			// All but one are zero, so that no two can be taken for each other.
			rows.Index(0).SetZero()
			sample(rows.Index(0).Field(column))
			seen := &boxes{}
			method.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(seen), rows})
			require.Len(t, seen.values, rows.Index(0).NumField(), name)
			for i, value := range seen.values {
				require.Equal(t, value, rows.Index(0).Field(i).Interface(), "%s, column %d", name, i)
				require.Equal(t, i == column, !reflect.ValueOf(value).IsZero(), "%s, column %d", name, i)
			}
		}
	}
	require.Greater(t, generated, 10)
}

// sample sets a value that is not zero.
func sample(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct: // of pgtype
		v.FieldByName("Valid").SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
}

// boxes is a DBTX that keeps the first row that is to be copied, as sqlc boxes it.
type boxes struct {
	dbsqlc.DBTX // nothing but CopyFrom is called
	values      []any
}

func (b *boxes) CopyFrom(_ context.Context, _ pgx.Identifier, _ []string, source pgx.CopyFromSource) (int64, error) {
	source.Next()
	values, err := source.Values()
	b.values = values
	return 1, err
}

// A server takes what is sent for the same rows as those that pgx sends, in each mode that a connection can have; and of
// rows that can't be encoded it takes none.
func TestCopyIntoTable(t *testing.T) {
	d := newDatabase(t)
	type row struct {
		N       int64
		Texts   []string
		Payload []byte
		Blob    []byte
	}
	rows := make([]row, 3000)
	boxed := make([][]any, len(rows))
	for i := range rows {
		rows[i] = row{int64(i), []string{"a", "b"}, []byte(`{"n": 1.0}`), bytes.Repeat([]byte{1}, 100)}
		boxed[i] = []any{rows[i].N, rows[i].Texts, rows[i].Payload, rows[i].Blob}
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
		n, err := tx.CopyFrom(t.Context(), pgx.Identifier{"by_pgx"}, columns, pgx.CopyFromRows(boxed))
		require.NoError(t, err)
		require.EqualValues(t, 3000, n)
		for range 2 {
			n, err = copying(copyTx{Tx: tx}, rows).CopyFrom(t.Context(), pgx.Identifier{"by_us"}, columns, nil)
			require.NoError(t, err)
			require.EqualValues(t, 3000, n)
		}
		var differ int
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM (SELECT * FROM by_us EXCEPT ALL
			(SELECT * FROM by_pgx UNION ALL SELECT * FROM by_pgx)) AS differ`).Scan(&differ))
		require.Zero(t, differ)
		n, err = copying(copyTx{Tx: tx}, []int64{7, 8}).CopyFrom(t.Context(), pgx.Identifier{"by_us"}, columns[:1], nil)
		require.NoError(t, err)
		require.EqualValues(t, 2, n, "of a single column")
		bad := append(slices.Clone(rows), row{Payload: []byte("no JSON")})
		_, err = copying(copyTx{Tx: tx}, bad).CopyFrom(t.Context(), pgx.Identifier{"by_us"}, columns, nil)
		require.ErrorContains(t, err, "invalid input syntax for type json")
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, conn.Close(t.Context()))
	}
}
