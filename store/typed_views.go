package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// TypedView is a view that was made of a template, an interface or a choice.
type TypedView struct {
	Schema, Name                  string
	Kind, Package, Module, Entity string
	Choice                        string // of a choice; else empty
	Columns                       []byte // JSON: what was published
}

// CheckTypedSchema refuses a name that typed views can't lie in.
func (s *Store) CheckTypedSchema(name string) error {
	switch {
	case !session.SchemaName.MatchString(name), strings.HasPrefix(name, "pg_"), name == "information_schema":
		return fmt.Errorf("schema %q: a schema's name has up to 24 lower case letters, digits and underscores, begins with "+
			"no digit, and is not PostgreSQL's own", name)
	case name == s.db.Config.Schemas.Tables || name == s.db.Config.Schemas.Views:
		return fmt.Errorf("schema %q is the indexer's own: typed views need another one", name)
	}
	return nil
}

// ViewsSchema returns the schema of what analysts read.
func (s *Store) ViewsSchema() string { return s.db.Config.Schemas.Views }

// TypedViews lists the views that were made in a schema, by name; with an empty name, in any.
func (s *Store) TypedViews(ctx context.Context, schema string) ([]TypedView, error) {
	return s.typedViews(ctx, s.db.Pool, TypedView{Schema: schema})
}

// typedViews lists the views in a schema, and of a template or an interface; what is empty chooses nothing.
func (s *Store) typedViews(ctx context.Context, db dbsqlc.DBTX, of TypedView) ([]TypedView, error) {
	named := func(name string) *string {
		if name == "" {
			return nil
		}
		return &name
	}
	rows, err := queries.TypedViewList(ctx, db, dbsqlc.TypedViewListParams{
		ViewSchema: named(of.Schema), PackageName: named(of.Package), ModuleName: named(of.Module),
		EntityName: named(of.Entity),
	})
	if err != nil {
		return nil, fmt.Errorf("list the typed views: %w", err)
	}
	list := make([]TypedView, len(rows))
	for i, r := range rows {
		list[i] = TypedView{r.ViewSchema, r.ViewName, r.Kind, r.PackageName, r.ModuleName, r.EntityName, r.Choice, r.Columns}
	}
	return list, nil
}

// ChangeTypedViews calls change in a transaction, one at a time. All of its changes are made, or none. It changes the
// views in a schema: those of one template or interface, or all if of does not name one. While readers hold a view's
// lock, it rolls back and calls change again, so that other readers do not queue behind it.
func (s *Store) ChangeTypedViews(ctx context.Context, of TypedView, change func(*TypedViewsChange) error) error {
	return patiently(ctx, readersWait, func() error { return s.tryTypedViews(ctx, of, change) })
}

func (s *Store) tryTypedViews(ctx context.Context, of TypedView, change func(*TypedViewsChange) error) error {
	tx, err := s.db.Pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("change typed views: %w", err)
	}
	defer pg.Rollback(ctx, tx)
	if err := queries.TypedViewsLock(ctx, tx); err != nil {
		return fmt.Errorf("wait for another process that changes typed views: %w", err)
	}
	registered, err := s.typedViews(ctx, tx, of)
	if err != nil {
		return err
	}
	if err := pg.WaitAtMost(ctx, tx, readersWait); err != nil {
		return err
	}
	if err := change(&TypedViewsChange{store: s, tx: tx, schema: of.Schema, Registered: registered}); err != nil {
		return err
	}
	if err := s.settleAccess(ctx, tx); err != nil {
		return fmt.Errorf("give readers their rights to typed views: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("change typed views: %w", err)
	}
	return nil
}

// TypedViewsChange is a change of the typed views in a schema.
type TypedViewsChange struct {
	Registered []TypedView // those that were made before

	store  *Store
	tx     pgx.Tx
	schema string
}

// Taken reports whether something in the schema has a name.
func (c *TypedViewsChange) Taken(ctx context.Context, name string) (_ bool, err error) {
	defer pg.Wrap(&err, "look for relation %s.%s", c.schema, name)
	var taken bool
	quoted := pgx.Identifier{c.schema, name}.Sanitize()
	err = c.tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL OR to_regtype($1) IS NOT NULL", quoted).Scan(&taken)
	return taken, err
}

// Make makes a view, or replaces it, by statements, and registers it. The schema is made where it is missing.
func (c *TypedViewsChange) Make(ctx context.Context, v TypedView, statements []string) error {
	var exists bool
	err := c.tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", pgx.Identifier{c.schema}.Sanitize()).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for schema %s: %w", c.schema, err)
	}
	if !exists {
		statements = append([]string{"CREATE SCHEMA " + pgx.Identifier{c.schema}.Sanitize()}, statements...)
	}
	// In one request: there is a comment for each column.
	if _, err := c.tx.Conn().PgConn().Exec(ctx, strings.Join(statements, ";\n")).ReadAll(); err != nil {
		return fmt.Errorf("make view %s.%s: %w", v.Schema, v.Name, refusedView(err, v))
	}
	err = queries.TypedViewUpsert(ctx, c.tx, dbsqlc.TypedViewUpsertParams{
		ViewSchema: v.Schema, ViewName: v.Name, Kind: v.Kind, PackageName: v.Package, ModuleName: v.Module,
		EntityName: v.Entity, Choice: v.Choice, Columns: v.Columns,
	})
	if err != nil {
		return fmt.Errorf("register view %s.%s: %w", v.Schema, v.Name, err)
	}
	return nil
}

// Drop drops a view, and forgets what was published. Nothing that depends on it is dropped.
func (c *TypedViewsChange) Drop(ctx context.Context, v TypedView) error {
	if _, err := c.tx.Exec(ctx, "DROP VIEW IF EXISTS "+pgx.Identifier{v.Schema, v.Name}.Sanitize()); err != nil {
		return fmt.Errorf("drop view %s.%s: %w", v.Schema, v.Name, refusedView(err, v))
	}
	if err := queries.TypedViewDelete(ctx, c.tx, dbsqlc.TypedViewDeleteParams{ViewSchema: v.Schema,
		ViewName: v.Name}); err != nil {
		return fmt.Errorf("forget view %s.%s: %w", v.Schema, v.Name, err)
	}
	return nil
}

// refusedView says what to do where PostgreSQL refuses a view.
func refusedView(err error, v TypedView) error {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		return err
	}
	p := &ledger.Problem{What: "PostgreSQL refuses it", Err: err}
	switch refusal.Code {
	case pg.InsufficientPrivilege:
		p.Do = "use a role that may create schemas in the database and views in the schema, such as the one that runs the " +
			"indexer"
	case pg.DependentObjects:
		p.Do = "drop what depends on the view first; " + refusal.Detail
	case "42P16", "42809":
		p.Do = fmt.Sprintf("somebody replaced it: drop %s.%s, and make it again", v.Schema, v.Name)
	default:
		return err
	}
	return p
}
