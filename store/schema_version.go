package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"ledgerindexer/ledger"
	"ledgerindexer/migrations"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// ErrSchemaOlder is wrapped by the Problem that CheckSchema returns for a database that has to be migrated.
var ErrSchemaOlder = errors.New("the database's schema is older than this program")

// CheckSessions refuses a pooler on the way that shares sessions out between connections, by ErrPooled.
func (s *Store) CheckSessions(ctx context.Context) (err error) {
	defer s.db.Wrap(&err, "database %s", s.Address())
	return s.db.RequireSessions(ctx)
}

// CheckSchema compares the database's schema with this binary's. An older one, or none, and a newer one are
// *ledger.Problem, as is a pooler on the way that shares sessions out between connections.
func (s *Store) CheckSchema(ctx context.Context) error {
	want, err := SchemaVersion()
	if err != nil {
		return err
	}
	if err := s.CheckSessions(ctx); err != nil {
		return err
	}
	var have int64
	var exists bool
	if err := s.db.Pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.db.Config.Schemas.VersionTable()).Scan(
		&exists); err != nil {
		return s.refused(ctx, err)
	}
	if exists {
		if have, err = s.schemaVersion(ctx, s.db.Pool); err != nil {
			return s.db.Unusable(fmt.Errorf("database %s, read schema version: %w", s.Address(), err))
		}
		if err := s.checkViews(ctx); err != nil {
			return err
		}
	}
	switch {
	case have == want:
		return nil
	case have < want:
		do := "run `indexer migrate` with a user that may create schemas and tables"
		if !exists {
			elsewhere, err := s.otherPairs(ctx)
			if err != nil {
				return err
			}
			if elsewhere != "" {
				do = "to use " + elsewhere + "; to index another ledger beside it " + do
			}
		}
		return &ledger.Problem{
			What: fmt.Sprintf("database %s has schema version %d, this program needs %d", s.Address(), have, want), Do: do,
			Err: ErrSchemaOlder,
		}
	default:
		return &ledger.Problem{
			What: fmt.Sprintf("database %s has schema version %d, this program knows only %d", s.Address(), have, want),
			Do:   "run the newer release of the indexer that migrated this database; schemas are not migrated back",
		}
	}
}

// refused returns the error of a role that can't look up the tables. One that `indexer grant` lets read has all the
// rights that it should have.
func (s *Store) refused(ctx context.Context, err error) error {
	var reads bool
	if pg.HasCode(err, pg.InsufficientPrivilege) {
		const usage = "SELECT coalesce(has_schema_privilege(to_regnamespace($1), 'USAGE'), false)"
		if askErr := s.db.Pool.QueryRow(ctx, usage,
			pgx.Identifier{s.db.Config.Schemas.Views}.Sanitize()).Scan(&reads); askErr != nil {
			err = errors.Join(err, askErr)
		}
	}
	if !reads {
		return s.db.Unusable(fmt.Errorf("database %s: %w", s.Address(), err))
	}
	return &ledger.Problem{
		What: fmt.Sprintf("database user %s reads schema %s of database %s by SQL, and can't run this command",
			s.db.Conn.User, s.db.Config.Schemas.Views, s.Address()),
		Do:  "ask in SQL (docs/sql.md), or run the command as the role that runs the indexer, or one with its rights",
		Err: err,
	}
}

// NothingIndexed returns the *ledger.Problem of a database in whose pair of schemas nothing is stored, so that there is
// nothing to do what is named.
func (s *Store) NothingIndexed(ctx context.Context, to string) error {
	elsewhere, err := s.otherPairs(ctx)
	if err != nil {
		return err
	}
	do := fmt.Sprintf("run `indexer run` or `%s` first", s.Backfill())
	if elsewhere != "" {
		do = "to use " + elsewhere + "; to index another ledger beside it " + do
	}
	return &ledger.Problem{
		What: fmt.Sprintf("nothing has been indexed into schema %s of database %s yet, so there is nothing to %s",
			s.db.Config.Schemas.Views, s.Address(), to),
		Do: do,
	}
}

// otherPairs returns with which flags the ledgers of this database are to be found that other schemas hold, as far as
// this user may know; empty: there are none.
func (s *Store) otherPairs(ctx context.Context) (string, error) {
	names, err := queries.InspectPairs(ctx, s.db.Pool)
	if err != nil {
		return "", s.db.Unusable(fmt.Errorf("database %s, look for other schemas: %w", s.Address(), err))
	}
	var ways []string
	for _, name := range names {
		if name == s.db.Config.Schemas.Tables {
			continue
		}
		var begun bool
		err := s.db.Pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+pgx.Identifier{name, "checkpoints"}.Sanitize()+
			")").Scan(&begun)
		if err != nil && !pg.HasCode(err, pg.InsufficientPrivilege) {
			return "", s.db.Unusable(fmt.Errorf("database %s, look what schema %s holds: %w", s.Address(), name, err))
		}
		if !begun {
			continue
		}
		views, err := queries.InspectViews(ctx, s.db.Pool, name)
		if err != nil {
			return "", s.db.Unusable(fmt.Errorf("database %s, look for the views of schema %s: %w", s.Address(), name, err))
		}
		for _, view := range views {
			ways = append(ways, "the ledger in schema "+view+" "+session.Schemas{Tables: name, Views: view}.Flags())
		}
	}
	return strings.Join(ways, ", or to use "), nil
}

// checkViews refuses a pair whose views were made in a schema of another name.
func (s *Store) checkViews(ctx context.Context) error {
	pair := s.db.Config.Schemas
	made, err := queries.InspectViews(ctx, s.db.Pool, pair.Tables)
	if err != nil {
		return s.db.Unusable(fmt.Errorf("database %s, look for the views of schema %s: %w", s.Address(), pair.Tables, err))
	}
	if len(made) == 0 || slices.Contains(made, pair.Views) { // none: the migration that makes them has not run
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("database %s: the tables of schema %s are shown by views in schema %s, not %s", s.Address(),
			pair.Tables, strings.Join(made, ", "), pair.Views),
		Do: "give --tables-schema and --views-schema the names with which the database was migrated",
	}
}

// SchemaVersion returns the version of the schema that this program needs.
func SchemaVersion() (int64, error) {
	entries, err := fs.ReadDir(migrations.For(session.DefaultSchemas.Views, nil), ".")
	if err != nil {
		return 0, fmt.Errorf("read the embedded migrations: %w", err)
	}
	newest, err := goose.NumericComponent(entries[len(entries)-1].Name())
	if err != nil {
		return 0, fmt.Errorf("read the embedded migrations: %w", err)
	}
	return newest, nil
}

func (s *Store) schemaVersion(ctx context.Context, db dbsqlc.DBTX) (version int64, err error) {
	err = db.QueryRow(ctx,
		"SELECT coalesce(max(version_id) FILTER (WHERE is_applied), 0) FROM "+
			s.db.Config.Schemas.VersionTable()).Scan(&version)
	return version, err
}
