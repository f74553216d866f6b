// Package pgcopy sends rows, and arrays, in PostgreSQL's binary format. The bytes are those that pgx would send, for a
// fraction of the client's time: pgx looks a plan up for each value, hands the rows from one goroutine to another, and
// takes each value in a box of its own.
//
// It knows no table. A row is a struct whose fields name their columns in a tag db, as sqlc makes them of the tables.
// No other package of the store uses unsafe to read memory.
package pgcopy

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Copy COPYs rows into a table, if there are any. It is an error if the server counts another number of rows.
func Copy(ctx context.Context, tx pgx.Tx, table pgx.Identifier, rows Rows) error {
	if rows.count == 0 {
		return nil
	}
	taken, err := copyFrom(ctx, tx.Conn(), table, rows)
	if err != nil {
		return fmt.Errorf("copy %d rows into %s: %w", rows.count, table[len(table)-1], err)
	}
	if taken != int64(rows.count) {
		return fmt.Errorf("copy into %s: sent %d rows, the server took %d", table[len(table)-1], rows.count, taken)
	}
	return nil
}

func copyFrom(ctx context.Context, conn *pgx.Conn, table pgx.Identifier, rows Rows) (int64, error) {
	columns := rows.Columns()
	quoted := make([]string, len(columns))
	for i, name := range columns {
		quoted[i] = pgx.Identifier{name}.Sanitize()
	}
	list := strings.Join(quoted, ", ")
	described := "SELECT " + list + " FROM " + table.Sanitize()
	name := ""
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		name = described // then the server is asked once in each connection
	}
	statement, err := conn.Prepare(ctx, name, described)
	if err != nil {
		return 0, fmt.Errorf("ask for the types of the columns: %w", err)
	}
	types := make([]uint32, len(columns))
	for i := range statement.Fields {
		types[i] = statement.Fields[i].DataTypeOID
	}
	encoder := newEncoder(rows, types, conn.TypeMap())
	tag, err := conn.PgConn().CopyFrom(ctx, encoder, "COPY "+table.Sanitize()+" ("+list+") FROM STDIN (FORMAT binary)")
	if err == nil { // after an error it may be read still
		encoder.release()
	}
	return tag.RowsAffected(), err
}

// copyHeader begins a COPY in PostgreSQL's binary format: its signature, no flags, and no extension. Two bytes that say
// that a row has -1 columns end it.
const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// encoder is a reader of rows in the binary format of COPY: they are encoded as they are read.
type encoder struct {
	rows    Rows
	at      int // the next one
	columns []column
	plans   *pgtype.Map
	buffer  *[bufferSize]byte
	encoded []byte // in the buffer, as long as that is large enough
	read    int    // how much of it was read
	err     error  // io.EOF after the last row
}

// bufferSize is enough for encoded rows: a message to the server, and some of the row after it.
const bufferSize = 72 << 10

// bufferPool are the buffers that no COPY uses.
var bufferPool sync.Pool

// newEncoder encodes rows whose columns have these types, by their numbers in pg_type.
func newEncoder(rows Rows, types []uint32, plans *pgtype.Map) *encoder {
	buffer, ok := bufferPool.Get().(*[bufferSize]byte)
	if !ok {
		buffer = new([bufferSize]byte)
	}
	return &encoder{rows: rows, columns: columnsOf(rows.row, types), plans: plans, buffer: buffer,
		encoded: append(buffer[:0], copyHeader...)}
}

// release keeps the buffer for another COPY. Nothing may be read any more.
func (e *encoder) release() { bufferPool.Put(e.buffer) }

// Read fills p, unless the rows end: each read becomes a message to the server.
func (e *encoder) Read(p []byte) (int, error) {
	if len(e.encoded)-e.read < len(p) && e.err == nil {
		e.encoded, e.read = e.encoded[:copy(e.encoded, e.encoded[e.read:])], 0 // less than p, however large the rows are
	}
	for len(e.encoded)-e.read < len(p) && e.err == nil {
		e.err = e.next()
	}
	n := copy(p, e.encoded[e.read:])
	if e.read += n; e.read < len(e.encoded) {
		return n, nil
	}
	return n, e.err
}

func (e *encoder) next() (err error) {
	if e.at == e.rows.count {
		e.encoded = append(e.encoded, "\xff\xff"...)
		return io.EOF
	}
	row := e.rows.pointer(e.at)
	e.at++
	e.encoded = binary.BigEndian.AppendUint16(e.encoded, uint16(len(e.columns)))
	for i := range e.columns {
		c := &e.columns[i]
		if e.encoded, err = e.appendValue(e.encoded, c, unsafe.Add(row, c.offset)); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// appendValue appends a column's value with its length before it. The types that facts consist of are read where they
// lie in the row, without an allocation; pgx encodes the others.
func (e *encoder) appendValue(to []byte, c *column, value unsafe.Pointer) ([]byte, error) {
	if c.encode != nil {
		return c.encode(to, value), nil
	}
	return e.appendOther(to, c.typ, reflect.NewAt(c.field, value).Elem().Interface())
}

// appendOther appends a value as pgx encodes it.
func (e *encoder) appendOther(to []byte, typ uint32, value any) ([]byte, error) {
	at := len(to)
	to = appendLength(to, null)
	encoded, err := e.plans.Encode(typ, pgtype.BinaryFormatCode, value, to)
	if err != nil {
		return nil, err
	}
	if encoded == nil {
		return to, nil
	}
	binary.BigEndian.PutUint32(encoded[at:], uint32(len(encoded)-at-4))
	return encoded, nil
}
