package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

// The policies of a table: one with what limited readers see, and one that shows the others everything. They are
// permissive, and the planner drops the first one if the second one applies too.
const (
	partiesPolicy = "parties"
	allPolicy     = "all_parties"
)

// ownersViews are the views in the schema of tables that keep their owner's rights: policies ask them, or they show
// nothing about other parties.
var ownersViews = []string{"my_lists", "my_parties", "my_positions", "my_history", "interface_names", "scope_ranges",
	"hosting_asked"}

func readableNames() []string { return tables.Names(tables.Readable()) }

// settleAccess gives every reader the rights that it should have, and every table its policies, after a grant, and
// after relations were made or replaced. It does not touch, or lock, what is right already. It waits for other changes
// of schemas.
func (s *Store) settleAccess(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, session.LockSchema.Alone()); err != nil {
		return fmt.Errorf("wait for others who change schemas: %w", err)
	}
	if err := s.removeRenamed(ctx, tx); err != nil {
		return err
	}
	var all, limited []string
	var reader string
	var allParties bool
	const readers = "SELECT r.reader, r.all_parties FROM readers r JOIN pg_roles x ON x.rolname = r.reader ORDER BY " +
		"r.reader"
	err := pg.Each(ctx, tx, readers, nil, []any{&reader, &allParties}, func() error {
		if allParties {
			all = append(all, reader)
		} else {
			limited = append(limited, reader)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the readers: %w", err)
	}
	slices.Sort(all)
	statements, changed, err := s.policyStatements(ctx, tx, all, len(limited) > 0)
	if err != nil {
		return err
	}
	rights, err := s.rightStatements(ctx, tx, all, limited)
	if err != nil {
		return err
	}
	if len(statements) > 0 {
		if err := lockOut(ctx, tx, changed); err != nil {
			return err
		}
	}
	statements = append(statements, "RESET lock_timeout") // of the caller's too: rights keep no reader waiting
	for _, statement := range append(statements, rights...) {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// renamedSQL lists the roles that have a reader's rights and no grant: a reader that was renamed has them. A role that
// got its rights by hand may use the schema of tables, which a grant does not allow, and is left out.
const renamedSQL = `
SELECT DISTINCT r.rolname::text
FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE c.relnamespace = $1::text::regnamespace AND c.relname = 'my_lists' AND r.oid <> c.relowner
  AND NOT has_schema_privilege(r.oid, c.relnamespace, 'USAGE')
      AND NOT EXISTS (SELECT FROM readers x WHERE x.reader = r.rolname)
ORDER BY 1`

// removeRenamed takes the rights from readers that were renamed: a grant goes by the role's name, but PostgreSQL's
// rights follow the role. Once nobody else is limited such a role would see everything.
func (s *Store) removeRenamed(ctx context.Context, tx pgx.Tx) error {
	roles, err := pg.Column[string](ctx, tx, renamedSQL, s.db.Config.Schemas.Tables)
	if err != nil {
		return fmt.Errorf("look for readers that were renamed: %w", err)
	}
	for _, role := range roles {
		if err := s.takeRights(ctx, tx, role); err != nil {
			return fmt.Errorf("take the rights of role %s, which was renamed: %w", role, err)
		}
	}
	return nil
}

// settleReaders is settleAccess if there is any grant.
func (s *Store) settleReaders(ctx context.Context) error {
	var any bool
	if err := s.db.Pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM readers)").Scan(&any); err != nil || !any {
		return err
	}
	return s.changeAccess(ctx, func(tx pgx.Tx) error { return s.settleAccess(ctx, tx) })
}

// readSchemas returns the schemas that analysts read: the views', those of typed views, and EnablePQS's. EnablePQS
// marks its schema with a comment. Anybody can write that on a schema of their own, so it counts only if the owner has
// the rights of the tables' owner. The collation makes the comparison with typed_views use its index; without it all
// typed views would be read, for each schema.
func (s *Store) readSchemas(ctx context.Context, tx pgx.Tx) ([]string, error) {
	return pg.Column[string](ctx, tx, `SELECT n.nspname::text FROM pg_namespace n
WHERE n.nspname = $1 OR EXISTS (SELECT FROM typed_views v WHERE v.view_schema = n.nspname COLLATE "default")
    OR obj_description(n.oid, 'pg_namespace') = $2
    AND pg_has_role(n.nspowner, (SELECT c.relowner FROM pg_class c WHERE c.oid = 'readers'::regclass), 'USAGE')
ORDER BY n.nspname`, s.db.Config.Schemas.Views, s.pqsComment())
}

// missingRightsSQL are the statements that give readers what they lack: the relations that they should be able to read,
// and the schemas, functions and types that these need, where PUBLIC has not been left them. A limited reader gets no
// view that reads with its owner's rights, whoever made it. Functions of the schema of tables are called by views, with
// their reader's rights.
const missingRightsSQL = `
WITH roles (role, limited) AS (SELECT * FROM unnest($1::text[], $2::boolean[])), spaces AS (
    SELECT n.oid, n.nspname AS name, n.nspname = $4 AS beneath FROM pg_namespace n WHERE n.nspname = ANY ($3::text[])
        OR n.nspname = $4
)
SELECT format('GRANT SELECT ON %I.%I TO %I', n.name, c.relname, q.role)
FROM roles q CROSS JOIN spaces n JOIN pg_class c ON c.relnamespace = n.oid AND pg_has_role(c.relowner, 'USAGE')
WHERE (NOT n.beneath AND c.relkind IN ('r', 'p', 'v', 'm')
       AND (NOT q.limited OR c.relkind = 'v' AND 'security_invoker=true' = ANY (c.reloptions))
       OR n.beneath AND (c.relname = ANY ($5::text[]) OR c.relkind = 'v'
           AND ('security_invoker=true' = ANY (c.reloptions) OR c.relname = ANY ($6::text[]))))
  AND NOT has_table_privilege(q.role, c.oid, 'SELECT')
UNION ALL
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', n.name, q.role) FROM roles q CROSS JOIN spaces n
WHERE NOT n.beneath AND NOT has_schema_privilege(q.role, n.oid, 'USAGE')
UNION ALL
SELECT format('GRANT EXECUTE ON ROUTINE %I.%I(%s) TO %I', n.name, p.proname, pg_get_function_identity_arguments(p.oid),
    q.role)
FROM roles q CROSS JOIN spaces n JOIN pg_proc p ON p.pronamespace = n.oid AND pg_has_role(p.proowner, 'USAGE')
WHERE p.prorettype <> 'trigger'::regtype AND NOT has_function_privilege(q.role, p.oid, 'EXECUTE')
UNION ALL
SELECT format('GRANT USAGE ON TYPE %I.%I TO %I', n.name, t.typname, q.role)
FROM roles q CROSS JOIN spaces n JOIN pg_type t ON t.typnamespace = n.oid AND pg_has_role(t.typowner, 'USAGE')
WHERE NOT n.beneath AND t.typelem = 0 AND (t.typrelid = 0 OR EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid
    AND c.relkind = 'c'))
  AND NOT has_type_privilege(q.role, t.oid, 'USAGE')
ORDER BY 1`

func (s *Store) rightStatements(ctx context.Context, tx pgx.Tx, all,
	limited []string) (statements []string, err error) {
	schemas, err := s.readSchemas(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("list the schemas of what is read: %w", err)
	}
	roles := slices.Concat(all, limited)
	isLimited := make([]bool, len(roles))
	for i := range limited {
		isLimited[len(all)+i] = true
	}
	statements, err = pg.Column[string](ctx, tx, missingRightsSQL, roles, isLimited, schemas, s.db.Config.Schemas.Tables,
		readableNames(), ownersViews)
	if err != nil {
		return nil, fmt.Errorf("list the rights that readers lack: %w", err)
	}
	return statements, nil
}

type policies struct {
	enabled   bool
	condition string   // of partiesPolicy, which is its comment; empty: there is none
	all       []string // the roles of allPolicy, by name; nil: there is none
}

// policyStatements give tables their policies, or take them away where nobody is limited. changed are the tables,
// quoted.
func (s *Store) policyStatements(ctx context.Context, tx pgx.Tx, all []string,
	wanted bool) (statements, changed []string, err error) {
	found, err := s.policiesOf(ctx, tx)
	if err != nil {
		return nil, nil, fmt.Errorf("look at the tables' policies: %w", err)
	}
	var quoted []string
	for _, role := range all {
		quoted = append(quoted, pgx.Identifier{role}.Sanitize())
	}
	for _, table := range tables.Readable() {
		condition := table.Policy()
		if condition == "" {
			continue
		}
		is, name, before := found[table.Name], pgx.Identifier{table.Name}.Sanitize(), len(statements)
		drop := func(policy string) { statements = append(statements, "DROP POLICY "+policy+" ON "+name) }
		if is.condition != "" && (!wanted || is.condition != condition) {
			drop(partiesPolicy)
		}
		if is.all != nil && (!wanted || !slices.Equal(is.all, all)) {
			drop(allPolicy)
		}
		switch {
		case !wanted && is.enabled:
			statements = append(statements, "ALTER TABLE "+name+" DISABLE ROW LEVEL SECURITY")
		case wanted && !is.enabled:
			statements = append(statements, "ALTER TABLE "+name+" ENABLE ROW LEVEL SECURITY")
		}
		if wanted && is.condition != condition {
			statements = append(statements, "CREATE POLICY "+partiesPolicy+" ON "+name+" FOR SELECT USING ("+condition+")",
				"COMMENT ON POLICY "+partiesPolicy+" ON "+name+" IS '"+strings.ReplaceAll(condition, "'", "''")+"'")
		}
		if wanted && len(all) > 0 && !slices.Equal(is.all, all) {
			statements = append(statements, "CREATE POLICY "+allPolicy+" ON "+name+" FOR SELECT TO "+strings.Join(quoted, ", ")+
				" USING (true)")
		}
		if len(statements) > before {
			changed = append(changed, name)
		}
	}
	return statements, changed, nil
}

func (s *Store) policiesOf(ctx context.Context, tx pgx.Tx) (map[string]policies, error) {
	found := map[string]policies{}
	var name string
	var is policies
	err := pg.Each(ctx, tx, `SELECT c.relname::text, c.relrowsecurity,
    coalesce((SELECT coalesce(obj_description(p.oid, 'pg_policy'), '?') FROM pg_policy p WHERE p.polrelid = c.oid
        AND p.polname = $2), ''),
    (SELECT ARRAY(SELECT r.rolname::text FROM pg_roles r WHERE r.oid = ANY (p.polroles) ORDER BY 1) FROM pg_policy p
        WHERE p.polrelid = c.oid AND p.polname = $3)
FROM pg_class c WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p')
    AND c.relname = ANY ($4::text[])`,
		[]any{s.db.Config.Schemas.Tables, partiesPolicy, allPolicy, readableNames()}, []any{&name, &is.enabled, &is.condition,
			&is.all}, func() error {
			slices.Sort(is.all)
			found[name] = is
			is = policies{}
			return nil
		})
	return found, err
}

// takeRights revokes all rights of an existing role to what analysts read, and to the tables beneath.
func (s *Store) takeRights(ctx context.Context, tx pgx.Tx, role string) error {
	schemas, err := s.readSchemas(ctx, tx)
	if err != nil {
		return err
	}
	statements, err := pg.Column[string](ctx, tx, revocationsSQL, role, append(schemas, s.db.Config.Schemas.Tables))
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// revocationsSQL are the statements that take from a role what it may do in some schemas, and would be let do with
// later relations.
const revocationsSQL = `
SELECT format('REVOKE ALL ON %I.%I FROM %I', n.nspname, c.relname, r.rolname)
FROM pg_roles r, pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
WHERE r.rolname = $1 AND n.nspname = ANY ($2::text[]) AND EXISTS (SELECT FROM aclexplode(c.relacl) a
    WHERE a.grantee = r.oid)
UNION ALL
SELECT format('REVOKE ALL ON SCHEMA %I FROM %I', n.nspname, r.rolname)
FROM pg_roles r, pg_namespace n
WHERE r.rolname = $1 AND n.nspname = ANY ($2::text[]) AND EXISTS (SELECT FROM aclexplode(n.nspacl) a
    WHERE a.grantee = r.oid)
UNION ALL
SELECT format('REVOKE ALL ON ROUTINE %I.%I(%s) FROM %I', n.nspname, p.proname,
    pg_get_function_identity_arguments(p.oid), r.rolname)
FROM pg_roles r, pg_namespace n JOIN pg_proc p ON p.pronamespace = n.oid
WHERE r.rolname = $1 AND n.nspname = ANY ($2::text[]) AND EXISTS (SELECT FROM aclexplode(p.proacl) a
    WHERE a.grantee = r.oid)
UNION ALL
SELECT format('REVOKE ALL ON TYPE %I.%I FROM %I', n.nspname, t.typname, r.rolname)
FROM pg_roles r, pg_namespace n JOIN pg_type t ON t.typnamespace = n.oid
WHERE r.rolname = $1 AND n.nspname = ANY ($2::text[]) AND EXISTS (SELECT FROM aclexplode(t.typacl) a
    WHERE a.grantee = r.oid)
UNION ALL
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I REVOKE ALL ON TABLES FROM %I',
    (SELECT o.rolname FROM pg_roles o WHERE o.oid = d.defaclrole), n.nspname, r.rolname)
FROM pg_roles r, pg_default_acl d JOIN pg_namespace n ON n.oid = d.defaclnamespace
WHERE r.rolname = $1 AND n.nspname = ANY ($2::text[]) AND d.defaclobjtype = 'r' AND pg_has_role(d.defaclrole, 'USAGE')
  AND EXISTS (SELECT FROM aclexplode(d.defaclacl) a WHERE a.grantee = r.oid)`

// pqsComment identifies a schema of EnablePQS, and its pair.
func (s *Store) pqsComment() string {
	return fmt.Sprintf("Made by indexer pqs enable for the schemas %s and %s.", s.db.Config.Schemas.Tables,
		s.db.Config.Schemas.Views)
}
