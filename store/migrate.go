package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"ledgerindexer/ledger"
	"ledgerindexer/migrations"
	"ledgerindexer/store/internal/pg"
)

// The table lies beside ours, not in whatever schema the search path begins with.
const versionTable = "schema_version"

// Migrate brings the schema to this binary's version and returns the names of the migrations it applied. Several
// processes may call it at once: a session lock lets one work. A database of a newer schema is a *ledger.Problem.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	if err := s.CheckSchema(ctx); !errors.Is(err, ErrSchemaOlder) {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close()
	if err := s.requireUTF8(ctx); err != nil {
		return nil, err
	}
	if err := s.createSchema(ctx); err != nil {
		return nil, s.unusable(err)
	}
	provider, err := newProvider(db)
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	var applied []string
	for _, result := range results {
		applied = append(applied, result.Source.Path)
	}
	if err != nil {
		return applied, s.unusable(fmt.Errorf("migrate database %s: %w", s.Address(), err))
	}
	return applied, nil
}

// createSchema makes the schema that holds the table of versions, where there is none: IF NOT EXISTS would ask for the right to
// create schemas even where there is one, and that right may have been revoked after the first migration.
func (s *Store) createSchema(ctx context.Context) error {
	var exists bool
	err := s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'indexer')").Scan(&exists)
	if err == nil && !exists {
		_, err = s.pool.Exec(ctx, "CREATE SCHEMA indexer")
		if pg.HasCode(err, pg.UniqueViolation, pg.DuplicateSchema) { // another process was faster
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("create schema indexer: %w", err)
	}
	return nil
}

// requireUTF8 refuses a database whose encoding can't hold every text of the ledger.
func (s *Store) requireUTF8(ctx context.Context) error {
	var encoding string
	if err := s.pool.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return s.unusable(fmt.Errorf("database %s, read its encoding: %w", s.Address(), err))
	}
	if encoding != "UTF8" {
		return &ledger.Problem{
			What: fmt.Sprintf("database %s has the encoding %s", s.Address(), encoding),
			Do:   "make the database with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
		}
	}
	return nil
}

// ErrSchemaOlder is wrapped by the Problem that CheckSchema returns for a database that has to be migrated.
var ErrSchemaOlder = errors.New("the database's schema is older than this program")

// CheckSchema compares the database's schema with this binary's. An older one, or none, and a newer one are
// *ledger.Problem, as is a pooler on the way that shares sessions out between connections.
func (s *Store) CheckSchema(ctx context.Context) error {
	want, err := SchemaVersion()
	if err != nil {
		return err
	}
	if err := s.requireSessions(ctx); err != nil {
		return s.unusable(fmt.Errorf("database %s: %w", s.Address(), err))
	}
	var have int64
	var exists bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable).Scan(&exists); err != nil {
		return s.unusable(fmt.Errorf("database %s: %w", s.Address(), err))
	}
	if exists {
		err := s.pool.QueryRow(ctx, "SELECT coalesce(max(version_id) FILTER (WHERE is_applied), 0) FROM "+versionTable).Scan(&have)
		if err != nil {
			return s.unusable(fmt.Errorf("database %s, read schema version: %w", s.Address(), err))
		}
	}
	switch {
	case have == want:
		return nil
	case have < want:
		return &ledger.Problem{
			What: fmt.Sprintf("database %s has schema version %d, this program needs %d", s.Address(), have, want),
			Do:   "run `indexer migrate` with a user that may create schemas and tables",
			Err:  ErrSchemaOlder,
		}
	default:
		return &ledger.Problem{
			What: fmt.Sprintf("database %s has schema version %d, this program knows only %d", s.Address(), have, want),
			Do:   "run the newer release of the indexer that migrated this database; schemas are not migrated back",
		}
	}
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300), lock.WithUnlockTimeout(1, 60)) // seconds between tries, tries
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	versions, err := database.NewStore(goose.DialectPostgres, versionTable)
	if err != nil {
		return nil, fmt.Errorf("migration table %s: %w", versionTable, err)
	}
	provider, err := goose.NewProvider("", db, migrations.Files, goose.WithStore(versions), goose.WithSessionLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("read the embedded migrations: %w", err)
	}
	return provider, nil
}

// SchemaVersion is the version of the schema that this program needs.
func SchemaVersion() (int64, error) {
	entries, err := migrations.Files.ReadDir(".")
	if err != nil {
		return 0, fmt.Errorf("read the embedded migrations: %w", err)
	}
	newest, err := goose.NumericComponent(entries[len(entries)-1].Name())
	if err != nil {
		return 0, fmt.Errorf("read the embedded migrations: %w", err)
	}
	return newest, nil
}
