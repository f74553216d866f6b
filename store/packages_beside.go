package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// PackageContentOfAny returns the content of a package that is stored, of this ledger or else of another one in this
// database. A package's id is the hash of its content, so it is the same wherever it lies. The error is
// ledger.ErrNotFound where it is not stored.
func (s *Store) PackageContentOfAny(ctx context.Context, id string) ([]byte, error) {
	content, err := s.PackageContent(ctx, id)
	if !errors.Is(err, ledger.ErrNotFound) {
		return content, err
	}
	besideErr := s.beside(ctx, func(table string) error {
		rows, _ := s.db.Pool.Query(ctx, "SELECT content FROM "+table+" WHERE package_id = $1 AND encode(sha256(content), "+
			"'hex') = $1", id)
		found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if len(found) > 0 {
			content = found[0]
		}
		return err
	})
	if besideErr != nil {
		return nil, besideErr
	}
	if content != nil {
		return content, nil
	}
	return nil, err
}

// beside calls fn with each table of packages of another ledger in this database.
func (s *Store) beside(ctx context.Context, fn func(table string) error) error {
	schemas, err := queries.PackageSchemaList(ctx, s.db.Pool, s.db.Config.Schemas.Tables)
	if err != nil {
		return fmt.Errorf("look for the packages of other ledgers in this database: %w", err)
	}
	for _, schema := range schemas {
		if err := fn(pgx.Identifier{schema, "package_contents"}.Sanitize()); err != nil {
			return fmt.Errorf("read the packages of schema %s: %w", schema, err)
		}
	}
	return nil
}
