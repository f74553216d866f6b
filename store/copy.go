package store

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

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// copyTx is a transaction whose CopyFrom sends the same bytes as pgx's own, for a fraction of the client's time: pgx looks a plan up
// for each value, hands the rows from one goroutine to another, and takes each value in a box of its own.
type copyTx struct {
	pgx.Tx
	rows rowAt // what CopyFrom sends
}

// rowAt is the row of a number, from 0 on: a pointer to a struct of its columns' values, in their order, or to the value where
// there is one column. It is nil behind the last one.
type rowAt func(i int) any

// copier is a DBTX that COPYs rows as they are, and not as sqlc boxes them.
type copier interface{ of(rows rowAt) dbsqlc.DBTX }

// copying has a DBTX COPY rows as they are, if it can.
func copying[T any](db dbsqlc.DBTX, rows []T) dbsqlc.DBTX {
	if c, ok := db.(copier); ok {
		return c.of(rowsOf(rows))
	}
	return db
}

func rowsOf[T any](rows []T) rowAt {
	return func(i int) any {
		if i == len(rows) {
			return nil
		}
		return &rows[i]
	}
}

func (c copyTx) of(rows rowAt) dbsqlc.DBTX { return copyTx{c.Tx, rows} }

// CopyFrom COPYs the transaction's rows into a table, and tells how many the server counted. The source has the same rows, in
// boxes.
func (c copyTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, _ pgx.CopyFromSource) (int64, error) {
	conn := c.Conn()
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
	rows := newCopyReader(c.rows, types, conn.TypeMap())
	tag, err := conn.PgConn().CopyFrom(ctx, rows, "COPY "+table.Sanitize()+" ("+list+") FROM STDIN (FORMAT binary)")
	if err == nil { // after an error it may be read still
		rows.release()
	}
	return tag.RowsAffected(), err
}

// copyHeader begins a COPY in PostgreSQL's binary format: its signature, no flags, and no extension. Two bytes that say
// that a row has -1 columns end it.
const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// copyReader writes rows in the binary format of COPY as they are read from it.
type copyReader struct {
	rows  rowAt
	at    int      // the next one
	types []uint32 // of the columns, by their numbers in pg_type
	plans *pgtype.Map
	cols  []copyColumn // known from the first row on
	room  *[copyRoom]byte
	buf   []byte // encoded; in the room, as long as that is enough
	read  int    // how much of it was read
	err   error  // io.EOF behind the last row
}

// copyRoom is the room for rows that are encoded: a message to the server, and some of the row after it.
const copyRoom = 72 << 10

// copyRooms are those that no COPY uses.
var copyRooms sync.Pool

func newCopyReader(rows rowAt, types []uint32, plans *pgtype.Map) *copyReader {
	room, ok := copyRooms.Get().(*[copyRoom]byte)
	if !ok {
		room = new([copyRoom]byte)
	}
	return &copyReader{rows: rows, types: types, plans: plans, room: room, buf: append(room[:0], copyHeader...)}
}

// release keeps the reader's room for another one. Nothing may be read any more.
func (r *copyReader) release() { copyRooms.Put(r.room) }

// Read fills p, unless the rows end: each read becomes a message to the server.
func (r *copyReader) Read(p []byte) (int, error) {
	if len(r.buf)-r.read < len(p) && r.err == nil {
		r.buf, r.read = r.buf[:copy(r.buf, r.buf[r.read:])], 0 // less than p, however large the rows are
	}
	for len(r.buf)-r.read < len(p) && r.err == nil {
		r.err = r.next()
	}
	n := copy(p, r.buf[r.read:])
	if r.read += n; r.read < len(r.buf) {
		return n, nil
	}
	return n, r.err
}

// next encodes the next row.
func (r *copyReader) next() (err error) {
	pointer := r.rows(r.at)
	if pointer == nil {
		r.buf = append(r.buf, "\xff\xff"...)
		return io.EOF
	}
	r.at++
	if r.cols == nil {
		if r.cols, err = columnsOf(reflect.TypeOf(pointer).Elem(), r.types); err != nil {
			return err
		}
	}
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(len(r.cols)))
	row := reflect.ValueOf(pointer).UnsafePointer()
	for i := range r.cols {
		c := &r.cols[i]
		if r.buf, err = r.appendValue(r.buf, c, unsafe.Add(row, c.offset)); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// appendValue appends a column's value with its length before it. What facts consist of is encoded here, where it lies in the row,
// which needs no memory; the rest by pgx.
func (r *copyReader) appendValue(to []byte, c *copyColumn, value unsafe.Pointer) ([]byte, error) {
	switch c.kind {
	case aText:
		return appendText(to, *(*string)(value)), nil
	case anOptionalText:
		return appendOptional(to, *(**string)(value), appendText), nil
	case anInt64:
		return appendInt64(to, *(*int64)(value)), nil
	case anOptionalInt64:
		return appendOptional(to, *(**int64)(value), appendInt64), nil
	case anInt32:
		return appendInt32(to, *(*int32)(value)), nil
	case anOptionalInt32:
		return appendOptional(to, *(**int32)(value), appendInt32), nil
	case aBool:
		return appendBool(to, *(*bool)(value)), nil
	case anOptionalBool:
		return appendOptional(to, *(**bool)(value), appendBool), nil
	case aBytea:
		return appendBytes(to, *(*[]byte)(value)), nil
	case aJSONB:
		const version = 1
		return appendBytes(to, *(*[]byte)(value), version), nil
	case aTextArray:
		return appendTexts(to, *(*[]string)(value)), nil
	case aTimestamp:
		v := (*pgtype.Timestamptz)(value)
		if !v.Valid {
			return appendLength(to, null), nil
		}
		if v.InfinityModifier == pgtype.Finite {
			const year2000 = 946_684_800 * 1_000_000 // in microseconds of Unix time
			return appendInt64(to, v.Time.UnixMicro()-year2000), nil
		}
	case aDecimal:
		return appendDecimal(to, *(*ledger.Decimal)(value)), nil
	case anOptionalDecimal:
		return appendOptional(to, *(**ledger.Decimal)(value), appendDecimal), nil
	}
	return r.appendPlanned(to, c.typ, reflect.NewAt(c.field, value).Elem().Interface())
}

// appendPlanned appends a value as pgx encodes it.
func (r *copyReader) appendPlanned(to []byte, typ uint32, value any) ([]byte, error) {
	at := len(to)
	to = appendLength(to, null)
	encoded, err := r.plans.Encode(typ, pgtype.BinaryFormatCode, value, to)
	if err != nil {
		return nil, err
	}
	if encoded == nil {
		return to, nil
	}
	binary.BigEndian.PutUint32(encoded[at:], uint32(len(encoded)-at-4))
	return encoded, nil
}
