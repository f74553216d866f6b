package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/store/internal/dbsqlc"
)

// copyTx is a transaction whose CopyFrom sends the same bytes as pgx's own, for a third of the client's time: pgx looks a plan up
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
	row, values := reflect.ValueOf(pointer).Elem(), 1
	several := row.Kind() == reflect.Struct
	if several {
		values = row.NumField()
	}
	if values != len(r.types) {
		return fmt.Errorf("a row has %d values, and the table %d columns", values, len(r.types))
	}
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(len(r.types)))
	for i, typ := range r.types {
		value := row
		if several {
			value = row.Field(i)
		}
		if r.buf, err = r.appendValue(r.buf, typ, value); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// appendValue appends a value with its length before it. What facts consist of is encoded here, by a pointer to it, which needs
// no memory; the rest by pgx.
func (r *copyReader) appendValue(to []byte, typ uint32, value reflect.Value) ([]byte, error) {
	switch v := value.Addr().Interface().(type) {
	case *string:
		if typ == pgtype.TextOID {
			return appendText(to, *v), nil
		}
	case **string:
		if typ == pgtype.TextOID {
			return appendOptional(to, *v, appendText), nil
		}
	case *int64:
		if typ == pgtype.Int8OID {
			return appendInt64(to, *v), nil
		}
	case **int64:
		if typ == pgtype.Int8OID {
			return appendOptional(to, *v, appendInt64), nil
		}
	case *int32:
		if typ == pgtype.Int4OID {
			return appendInt32(to, *v), nil
		}
	case **int32:
		if typ == pgtype.Int4OID {
			return appendOptional(to, *v, appendInt32), nil
		}
	case *bool:
		if typ == pgtype.BoolOID {
			return appendBool(to, *v), nil
		}
	case **bool:
		if typ == pgtype.BoolOID {
			return appendOptional(to, *v, appendBool), nil
		}
	case *[]byte:
		switch {
		case *v == nil:
			return appendLength(to, null), nil
		case typ == pgtype.ByteaOID:
			return append(appendLength(to, len(*v)), *v...), nil
		case typ == pgtype.JSONBOID:
			const version = 1
			return append(append(appendLength(to, 1+len(*v)), version), *v...), nil
		}
	case *[]string:
		if typ == pgtype.TextArrayOID {
			return appendTexts(to, *v), nil
		}
	case *pgtype.Timestamptz:
		switch {
		case !v.Valid:
			return appendLength(to, null), nil
		case typ == pgtype.TimestamptzOID && v.InfinityModifier == pgtype.Finite:
			const year2000 = 946_684_800 * 1_000_000 // in microseconds of Unix time
			return appendInt64(to, v.Time.UnixMicro()-year2000), nil
		}
	case *pgtype.Numeric:
		if typ == pgtype.NumericOID {
			if encoded, ok := appendShortNumeric(to, *v); ok {
				return encoded, nil
			}
		}
	}
	return r.appendPlanned(to, typ, value.Interface())
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

// null is the length of no value.
const null = -1

func appendLength(to []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(to, uint32(length))
}

func appendOptional[T any](to []byte, value *T, appendValue func([]byte, T) []byte) []byte {
	if value == nil {
		return appendLength(to, null)
	}
	return appendValue(to, *value)
}

func appendText(to []byte, text string) []byte { return append(appendLength(to, len(text)), text...) }

func appendInt64(to []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(appendLength(to, 8), uint64(n))
}

func appendInt32(to []byte, n int32) []byte {
	return binary.BigEndian.AppendUint32(appendLength(to, 4), uint32(n))
}

func appendBool(to []byte, truth bool) []byte {
	to = append(appendLength(to, 1), 0)
	if truth {
		to[len(to)-1] = 1
	}
	return to
}

// appendTexts appends an array of texts.
func appendTexts(to []byte, texts []string) []byte {
	if texts == nil {
		return appendLength(to, null)
	}
	at := len(to)
	to = appendLength(to, 0) // not known yet
	to = appendArrayHead(to, pgtype.TextOID, len(texts))
	for _, text := range texts {
		to = appendText(to, text)
	}
	binary.BigEndian.PutUint32(to[at:], uint32(len(to)-at-4))
	return to
}
