package store

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Statements take the rows of a step as arrays, one for each column. pgx would encode them one value at a time, into room that has to
// grow again and again: they are encoded here, each in room of its size.

// execArrays executes a statement with arrays. The largest should be the last one: they are put behind one another, in room that grows.
func execArrays(ctx context.Context, tx pgx.Tx, statement string, arrays ...[]byte) error {
	_, err := tx.Conn().PgConn().ExecParams(ctx, statement, arrays, nil, []int16{pgx.BinaryFormatCode}, nil).Close()
	return err
}

// arrayConn is a connection whose Query sends an array of texts, the only argument, in room of its size.
type arrayConn struct{ *pgxpool.Conn }

// Query asks for rows. A connection that keeps no statements leaves it to pgx.
func (c arrayConn) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	conn := c.Conn.Conn()
	texts, ok := args[0].([]string)
	if !ok || len(args) > 1 || conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return conn.Query(ctx, statement, args...)
	}
	prepared, err := conn.Prepare(ctx, statement, statement)
	if err != nil {
		return nil, err
	}
	array := [][]byte{arrayOfText(texts, func(text *string) string { return *text })}
	return pgx.RowsFromResultReader(conn.TypeMap(), conn.PgConn().ExecPrepared(ctx, prepared.Name, array, []int16{pgx.BinaryFormatCode}, nil)), nil
}

// arrayHead is how long the head of an array is.
const arrayHead = 20

// appendArrayHead appends what comes before an array's elements: the number of its dimensions, whether it holds nulls, the type of
// its elements, and the dimension's length and first index.
func appendArrayHead(to []byte, typ uint32, length int) []byte {
	for _, n := range [...]uint32{1, 0, typ, uint32(length), 1} {
		to = binary.BigEndian.AppendUint32(to, n)
	}
	return to
}

// arrayOfText is a column of rows as an array of type text.
func arrayOfText[T any](rows []T, column func(*T) string) []byte {
	size := arrayHead
	for i := range rows {
		size += 4 + len(column(&rows[i]))
	}
	to := appendArrayHead(make([]byte, 0, size), pgtype.TextOID, len(rows))
	for i := range rows {
		to = appendText(to, column(&rows[i]))
	}
	return to
}

// arrayOfInt64 is a column of rows as an array of type bigint.
func arrayOfInt64[T any](rows []T, column func(*T) int64) []byte {
	to := appendArrayHead(make([]byte, 0, arrayHead+12*len(rows)), pgtype.Int8OID, len(rows))
	for i := range rows {
		to = appendInt64(to, column(&rows[i]))
	}
	return to
}

// arrayOfInt32 is a column of rows as an array of type integer.
func arrayOfInt32[T any](rows []T, column func(*T) int32) []byte {
	to := appendArrayHead(make([]byte, 0, arrayHead+8*len(rows)), pgtype.Int4OID, len(rows))
	for i := range rows {
		to = appendInt32(to, column(&rows[i]))
	}
	return to
}
