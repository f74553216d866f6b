package store

import (
	"context"

	"ledgerindexer/store/internal/pg"
)

// DiskUse is what a database takes on disk, in bytes, and the server that it lies on.
type DiskUse struct {
	Database      int64  `json:"database_bytes"` // all of the database, what others keep in it included
	Ledger        int64  `json:"ledger_bytes"`   // the tables of this ledger, with their indexes
	Partitions    int64  `json:"partitions"`
	ServerVersion string `json:"-"` // of PostgreSQL
}

// DiskUse reads what the database takes on disk.
func (s *Store) DiskUse(ctx context.Context) (_ DiskUse, err error) {
	defer pg.Wrap(&err, "read the size of the database")
	row, err := queries.StatusSizes(ctx, s.db.Pool)
	return DiskUse(row), err
}
