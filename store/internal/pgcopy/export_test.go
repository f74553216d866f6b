package pgcopy

import (
	"io"

	"github.com/jackc/pgx/v5/pgtype"
)

// Encode encodes rows as a COPY sends them, and returns how many bytes they take.
func Encode(rows Rows, plans *pgtype.Map) (int64, error) {
	e := newEncoder(rows, typesOf(rows), plans)
	defer e.release()
	return io.Copy(io.Discard, struct{ io.Reader }{e})
}

// typesOf are the types that the columns have in the database, told by those of Go: bytes are all jsonb here.
func typesOf(rows Rows) (types []uint32) {
	for _, field := range fieldsOf(rows.row) {
		for pair := range encodings {
			if pair.field == field.Type && pair.typ != pgtype.ByteaOID {
				types = append(types, pair.typ)
			}
		}
	}
	return types
}
