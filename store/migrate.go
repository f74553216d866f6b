package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"ledgerindexer/ledger"
	"ledgerindexer/migrations"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// Migrate brings the schema to this binary's version and returns the names of the migrations it applied. Several
// processes may call it at once: a lock lets one work. A database of a newer schema is a *ledger.Problem. Each
// migration that has a transaction waits for the writers' ones, and ends the terms of the leaders: those of an older
// version can't lead again. It waits for its locks for a moment only, and is tried again, so that readers and writers
// pass.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	if err := s.CheckSchema(ctx); err == nil {
		return nil, s.settled(ctx)
	} else if !errors.Is(err, ErrSchemaOlder) {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(s.db.Pool)
	defer db.Close()
	if err := s.requireUTF8(ctx); err != nil {
		return nil, err
	}
	if err := s.createSchema(ctx); err != nil {
		return nil, s.db.Unusable(err)
	}
	provider, err := newProvider(db, s.db.Config.Schemas, migrationsOf(s.db.Config.Schemas))
	if err != nil {
		return nil, err
	}
	var applied []string
	err = patiently(ctx, lockPatience, func() error {
		return s.alone(ctx, func(pgx.Tx) error {
			results, err := provider.Up(ctx)
			if partial := new(goose.PartialError); errors.As(err, &partial) {
				results = partial.Applied
			}
			for _, result := range results {
				applied = append(applied, result.Source.Path)
			}
			return err
		})
	})
	if err != nil {
		return applied, s.db.Unusable(s.blocked(fmt.Errorf("migrate database %s: %w", s.Address(), err)))
	}
	return applied, s.settled(ctx)
}

// settled gives readers their rights to what a migration made. If the program ends before that, the next call does it.
func (s *Store) settled(ctx context.Context) (err error) {
	defer s.db.Wrap(&err, "database %s: give readers their rights", s.Address())
	return s.settleReaders(ctx)
}

// createSchema makes the schema that holds the tables, and the table of versions, where there is none: IF NOT EXISTS
// would ask for the right to create schemas even where there is one, and that right may have been revoked after the
// first migration.
func (s *Store) createSchema(ctx context.Context) error {
	pair := s.db.Config.Schemas
	found, err := queries.InspectSchemas(ctx, s.db.Pool, []string{pair.Tables, pair.Views})
	if err != nil {
		return fmt.Errorf("look for schemas %s and %s: %w", pair.Tables, pair.Views, err)
	}
	if slices.ContainsFunc(found, func(schema dbsqlc.InspectSchemasRow) bool { return schema.Name == pair.Tables }) {
		return s.createSchemaLock(ctx)
	}
	if len(found) > 0 {
		return &ledger.Problem{
			What: fmt.Sprintf("database %s has a schema %s already, whose views read other tables than those of schema %s, "+
				"which does not exist", s.Address(), pair.Views, pair.Tables),
			Do: "give --tables-schema the name of the schema that it belongs to, or --views-schema another name",
		}
	}
	var words bool
	if err := s.db.Pool.QueryRow(ctx,
		"SELECT EXISTS (SELECT FROM pg_get_keywords() WHERE word IN ($1, $2) AND catcode <> 'U')", pair.Tables, pair.Views).
		Scan(&words); err != nil {
		return fmt.Errorf("look whether schemas can be named %s and %s: %w", pair.Tables, pair.Views, err)
	}
	if words {
		return &ledger.Problem{
			What: fmt.Sprintf("schemas can't be named %s and %s: one of them is a word of SQL", pair.Tables, pair.Views),
			Do:   "give --tables-schema or --views-schema another name",
		}
	}
	_, err = s.db.Pool.Exec(ctx, fmt.Sprintf(
		"CREATE SCHEMA %[1]s; COMMENT ON SCHEMA %[1]s IS 'Tables of the ledger indexer. They may change with any release: "+
			"read schema %[2]s instead.'", pair.Tables, pair.Views))
	if pg.HasCode(err, pg.UniqueViolation, pg.DuplicateSchema) { // another process was faster
		err = nil
	}
	if err != nil {
		return fmt.Errorf("create schema %s: %w", pair.Tables, err)
	}
	return s.createSchemaLock(ctx)
}

// createSchemaLock makes the view that is locked while schemas are migrated, if there is none yet.
func (s *Store) createSchemaLock(ctx context.Context) error {
	var exists bool
	err := s.db.Pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", string(session.LockSchema)).Scan(&exists)
	if err == nil && !exists {
		_, err = s.db.Pool.Exec(ctx, fmt.Sprintf(`CREATE VIEW %[1]s WITH (security_invoker = true) AS SELECT;
			COMMENT ON VIEW %[1]s IS 'Shows nothing. It is locked while schemas or rights are changed.'`, session.LockSchema))
	}
	if err != nil && !pg.HasCode(err, pg.UniqueViolation, pg.DuplicateTable) { // another process was faster
		return fmt.Errorf("create the view that is locked while the schema changes: %w", err)
	}
	return nil
}

// requireUTF8 refuses a database whose encoding can't hold every text of the ledger.
func (s *Store) requireUTF8(ctx context.Context) error {
	var encoding string
	if err := s.db.Pool.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return s.db.Unusable(fmt.Errorf("database %s, read its encoding: %w", s.Address(), err))
	}
	if encoding != "UTF8" {
		return &ledger.Problem{
			What: fmt.Sprintf("database %s has the encoding %s", s.Address(), encoding),
			Do:   "make the database with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
		}
	}
	return nil
}

// migrationsOf returns the migrations of a pair of schemas.
func migrationsOf(pair Schemas) fs.FS {
	return migrations.For(pair.Views, func(text string) string { return beginning(pair, text) })
}

func newProvider(db *sql.DB, pair Schemas, files fs.FS) (*goose.Provider, error) {
	versions, err := database.NewStore(goose.DialectPostgres, pair.VersionTable())
	if err != nil {
		return nil, fmt.Errorf("migration table %s: %w", pair.VersionTable(), err)
	}
	provider, err := goose.NewProvider("", db, files, goose.WithStore(versions))
	if err != nil {
		return nil, fmt.Errorf("read the embedded migrations: %w", err)
	}
	return provider, nil
}

// beginning returns the first statements of each migration. They exclude all writers until it is committed, as a repair
// does, and end their terms. Then they lock readers out of the relations that the migration's text names.
func beginning(pair Schemas, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SET LOCAL lock_timeout = %d;\n", lockPatience.Milliseconds())
	for _, lease := range session.Leases {
		b.WriteString(lease.Turn().Alone() + ";\n")
	}
	b.WriteString("UPDATE leadership SET epoch = epoch + 1, holder = NULL, led_since = NULL WHERE epoch > 0;\n")
	fmt.Fprintf(&b, readersOut, strings.Join(relationNames(text), ","), pair.Tables, pair.Views,
		2*lockPatience.Milliseconds(), readersWait.Milliseconds())
	return b.String()
}

// relationNames returns, in order, the words of statements that may be the name of a relation.
func relationNames(text string) []string {
	var words []string
	for line := range strings.Lines(text) {
		statement, _, _ := strings.Cut(line, "--")
		words = append(words, strings.FieldsFunc(statement, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})...)
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word[0] < 'a' || word != strings.ToLower(word) })
	slices.Sort(words)
	return slices.Compact(words)
}

// readersOut locks relations before anything is done that takes time, or fails. First it waits for VACUUM and ANALYZE,
// with a lock that keeps no reader waiting; the server ends its own ones after deadlock_timeout (1 s by default). Then
// it waits for readers, at most readersWait for all relations together, so that no reader that holds one of them and
// asks for another is ended by a deadlock. Views come first, and newer ones before those that they read, as readers
// lock them. The statement on a view changes nothing, and locks no table beneath it. Relations of other owners are left
// alone: no migration changes them, whatever their names.
const readersOut = `DO $$
DECLARE
    changed CONSTANT name[] := '{%[1]s}';
    relation record;
    began timestamptz;
BEGIN
    PERFORM set_config('lock_timeout', '%[4]d', true);
    FOR relation IN SELECT c.oid::regclass AS name FROM pg_class c WHERE c.relnamespace = '%[2]s'::regnamespace
        AND c.relkind IN ('r', 'p')
        AND c.relname = ANY (changed) AND pg_has_role(c.relowner, 'USAGE') ORDER BY c.oid DESC
    LOOP
        EXECUTE format('LOCK TABLE %%s IN SHARE UPDATE EXCLUSIVE MODE', relation.name);
    END LOOP;
    began := clock_timestamp();
    FOR relation IN SELECT c.oid::regclass AS name, c.relkind = 'v' AS is_view FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname IN ('%[2]s', '%[3]s') AND c.relkind IN ('r', 'p', 'v') AND c.relname = ANY (changed)
        AND pg_has_role(c.relowner, 'USAGE') ORDER BY c.relkind = 'v' DESC, c.oid DESC
    LOOP
        PERFORM set_config('lock_timeout', greatest(1, least(%[5]d,
            %[5]d - 1000 * extract(epoch FROM clock_timestamp() - began)))::integer::text, true);
        IF relation.is_view THEN
            EXECUTE format('ALTER VIEW %%s RESET (check_option)', relation.name);
        ELSE
            EXECUTE format('LOCK TABLE ONLY %%s IN ACCESS EXCLUSIVE MODE', relation.name);
        END IF;
    END LOOP;
    PERFORM set_config('lock_timeout', '%[5]d', true);
END
$$;
`

// blocked makes a *ledger.Problem of the error of a migration that changes what other objects depend on, such as views
// of other owners or of EnablePQS.
func (s *Store) blocked(err error) error {
	var pgErr *pgconn.PgError
	if !pg.HasCode(err, pg.DependentObjects) || !errors.As(err, &pgErr) {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("database %s can't be migrated, because something depends on what changes: %s (%s)", s.Address(),
			pgErr.Message, pgErr.Detail),
		Do: "remove what depends on it, migrate, and make it again: of a schema of `indexer pqs enable` with `indexer pqs " +
			"disable` and `indexer pqs enable`",
		Err: err,
	}
}
