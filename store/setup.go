package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
)

// OrderedRedaction is a redaction that an operator ordered: those of the contracts of an update follow from the
// update's.
type OrderedRedaction struct{ ContractID, UpdateID, Reason string }

// OrderedRedactions lists the redactions that were ordered, in their order.
func (s *Store) OrderedRedactions(ctx context.Context) (list []OrderedRedaction, err error) {
	var kind, id, reason string
	err = pg.Each(ctx, s.db.Pool, "SELECT r.kind, r.id, r.reason FROM redactions r WHERE r.of_update IS NULL "+
		"ORDER BY r.redaction", nil, []any{&kind, &id, &reason}, func() error {
		if kind == redacted.Update {
			list = append(list, OrderedRedaction{UpdateID: id, Reason: reason})
		} else {
			list = append(list, OrderedRedaction{ContractID: id, Reason: reason})
		}
		return nil
	})
	return list, s.db.Unusable(err)
}

// PQSSchemas lists the schemas that EnablePQS made for this pair, by name.
func (s *Store) PQSSchemas(ctx context.Context) ([]string, error) {
	return s.named(ctx, "SELECT n.nspname::text FROM pg_namespace n WHERE obj_description(n.oid, 'pg_namespace') = $1 "+
		"ORDER BY 1", s.pqsComment())
}

// Publications lists the names with which EnablePublication made publications for this pair.
func (s *Store) Publications(ctx context.Context) ([]string, error) {
	return s.named(ctx, "SELECT p.pubname::text FROM pg_publication p WHERE obj_description(p.oid, 'pg_publication') = "+
		"$1 AND p.pubinsert AND NOT p.pubupdate ORDER BY 1", s.publicationComment())
}

// CheckReader refuses what Grant refuses, without changing anything, but for parties that nothing names.
func (s *Store) CheckReader(ctx context.Context, r Reader) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.checkReader(ctx, tx, r) })
}

// beyondSetupSQL says what hangs on a database and none of the indexer's commands made. Of settings it names no
// value, which may be a secret.
const beyondSetupSQL = `
WITH own (name) AS (SELECT unnest($1::text[])), here AS (
    SELECT * FROM pg_database d WHERE d.datname = current_database())
SELECT format('schema %I: copy it with pg_dump --schema, or, if it is of another pair, with the flags of that',
    n.nspname)
FROM pg_namespace n
WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT FROM own o WHERE o.name = n.nspname)
  AND EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND NOT EXISTS (
      SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'))
UNION ALL
SELECT DISTINCT format('rights of role %I in schema %I, which indexer grant did not give', r.rolname, n.nspname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL aclexplode(c.relacl) a
    JOIN pg_roles r ON r.oid = a.grantee
WHERE n.nspname IN (SELECT o.name FROM own o) AND r.oid <> c.relowner
    AND NOT EXISTS (SELECT FROM readers x WHERE x.reader = r.rolname)
UNION ALL
SELECT DISTINCT format('rights of role %I to schema %I', r.rolname, n.nspname)
FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE n.nspname = $3 AND r.oid <> n.nspowner
UNION ALL
SELECT format('setting %s of %sdatabase %I', split_part(c.setting, '=', 1),
    coalesce('role ' || quote_ident(r.rolname) || ' in ', ''), h.datname)
FROM here h JOIN pg_db_role_setting s ON s.setdatabase = h.oid LEFT JOIN pg_roles r ON r.oid = s.setrole
    CROSS JOIN LATERAL unnest(s.setconfig) c (setting)
UNION ALL
SELECT format('rights to database %I: %s', h.datname, h.datacl) FROM here h WHERE h.datacl IS NOT NULL
UNION ALL
SELECT format('publication %I', p.pubname) FROM pg_publication p
    WHERE obj_description(p.oid, 'pg_publication') IS DISTINCT FROM $2
ORDER BY 1`

// BeyondSetup says, in sentences, what hangs on the database and was made by none of the indexer's commands.
func (s *Store) BeyondSetup(ctx context.Context) (list []string, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		own, err := s.readSchemas(ctx, tx)
		if err != nil {
			return err
		}
		beneath := s.db.Config.Schemas.Tables
		list, err = pg.Column[string](ctx, tx, beyondSetupSQL, append(own, beneath), s.publicationComment(), beneath)
		return err
	})
	return list, s.db.Unusable(err)
}

// named lists names from the catalog.
func (s *Store) named(ctx context.Context, query string, args ...any) (names []string, err error) {
	names, err = pg.Column[string](ctx, s.db.Pool, query, args...)
	if err != nil {
		err = fmt.Errorf("database %s: %w", s.Address(), err)
	}
	return names, s.db.Unusable(err)
}
