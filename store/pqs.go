package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/migrations"
	"ledgerindexer/store/internal/pg"
)

// ValidatePQS refuses names that EnablePQS can't give its schema beside a pair.
func ValidatePQS(s Schemas, name string) error {
	s = s.OrDefault()
	if err := (Schemas{Tables: s.Tables, Views: name}).Validate(); err != nil {
		return err
	}
	if name == s.Views {
		return fmt.Errorf("schema %q holds the views already", name)
	}
	return nil
}

// EnablePQS makes the names of the Participant Query Store in a schema, or replaces those that an earlier release made
// there, in one transaction. Rights that were granted stay. A schema that something else made is refused with a
// *ledger.Problem.
func (s *Store) EnablePQS(ctx context.Context, name string) error {
	script, err := migrations.PQS(s.db.Config.Schemas.Views, name)
	if err != nil {
		return fmt.Errorf("read the embedded statements: %w", err)
	}
	return s.changePQS(ctx, name, func(tx pgx.Tx, found bool) error {
		if !found {
			var word bool
			if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_get_keywords() WHERE word = $1 AND catcode <> 'U')",
				name).Scan(&word); err != nil {
				return err
			}
			if word {
				return &ledger.Problem{What: fmt.Sprintf("a schema can't be named %s: it is a word of SQL", name),
					Do: "give --pqs-schema another name"}
			}
			if _, err := tx.Exec(ctx, fmt.Sprintf("CREATE SCHEMA %s", name)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, fmt.Sprintf("COMMENT ON SCHEMA %s IS '%s'", name, s.pqsComment())); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, script); err != nil {
			return err
		}
		return s.settleAccess(ctx, tx)
	})
}

// DisablePQS removes the schema that EnablePQS made, and reports whether there was one. It is refused with a
// *ledger.Problem where something else depends on what is in the schema.
func (s *Store) DisablePQS(ctx context.Context, name string) (bool, error) {
	removed := false
	err := s.changePQS(ctx, name, func(tx pgx.Tx, found bool) error {
		if removed = found; !found {
			return nil
		}
		// What is in the schema goes with it, what only reads it does not.
		var outside *string
		if err := tx.QueryRow(ctx, dependsOnSchema, name).Scan(&outside); err != nil {
			return err
		}
		if outside != nil {
			return &ledger.Problem{
				What: fmt.Sprintf("database %s: something else reads schema %s: %s", s.Address(), name, *outside),
				Do:   "drop it first, or leave the schema",
			}
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("DROP SCHEMA %s CASCADE", name))
		return err
	})
	return removed, err
}

// dependsOnSchema lists what lies outside of a schema and depends on what is in it. A view depends by its rule.
const dependsOnSchema = `
WITH inside AS (
    SELECT 'pg_class'::regclass AS classid, c.oid FROM pg_class c WHERE c.relnamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'pg_proc'::regclass, p.oid FROM pg_proc p WHERE p.pronamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'pg_type'::regclass, t.oid FROM pg_type t WHERE t.typnamespace = $1::text::regnamespace
), outside AS (
    SELECT CASE WHEN d.classid = 'pg_rewrite'::regclass THEN 'pg_class'::regclass ELSE d.classid END AS classid,
           CASE WHEN d.classid = 'pg_rewrite'::regclass THEN (SELECT r.ev_class FROM pg_rewrite r WHERE r.oid = d.objid)
               ELSE d.objid END AS oid
    FROM pg_depend d
    JOIN inside i ON i.classid = d.refclassid AND i.oid = d.refobjid
    WHERE d.deptype IN ('n', 'a')
)
SELECT string_agg(DISTINCT pg_describe_object(o.classid, o.oid, 0), ', ') FROM outside o
WHERE o.classid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass, 'pg_constraint'::regclass,
    'pg_attrdef'::regclass, 'pg_policy'::regclass)
  AND NOT EXISTS (SELECT FROM inside i WHERE i.classid = o.classid AND i.oid = o.oid)`

// changePQS changes a schema of EnablePQS in a transaction, alone and beside no migration. It is tried again while
// readers keep a view.
func (s *Store) changePQS(ctx context.Context, name string, change func(tx pgx.Tx, found bool) error) error {
	if err := ValidatePQS(s.db.Config.Schemas, name); err != nil {
		return err
	}
	return patiently(ctx, readersWait, func() error { return s.tryPQS(ctx, name, change) })
}

func (s *Store) tryPQS(ctx context.Context, name string, change func(tx pgx.Tx, found bool) error) error {
	return s.changeSchemas(ctx, "change schema "+name, func(tx pgx.Tx) error {
		var comment string
		err := tx.QueryRow(ctx, "SELECT coalesce(obj_description(n.oid, 'pg_namespace'), '') FROM pg_namespace n WHERE "+
			"n.nspname = $1", name).Scan(&comment)
		found := err == nil
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return fmt.Errorf("look for it: %w", err)
		case comment != s.pqsComment():
			return &ledger.Problem{
				What: fmt.Sprintf("database %s has a schema %s that was not made by `indexer pqs enable` for the schemas %s and %s",
					s.Address(), name, s.db.Config.Schemas.Tables, s.db.Config.Schemas.Views),
				Do: "give --pqs-schema another name, or --tables-schema and --views-schema those for which it was made",
			}
		}
		if err := pg.WaitAtMost(ctx, tx, readersWait); err != nil {
			return err
		}
		return change(tx, found)
	})
}
