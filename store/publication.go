package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// watermarkSuffix ends the name of the publication of the watermark, beside that of the facts. Both are for logical
// replication.
const watermarkSuffix = "_watermark"

// published returns the tables whose inserts are published. Facts are written once; dictionaries
// have the names that they refer to, and rewrites says which of them changed afterwards.
func published() []tables.Table {
	return append(tables.In(tables.Facts, tables.Dictionaries), tables.Get(tables.State, "rewrites"))
}

// EnablePublication makes the publications that a subscriber replicates from, or adds what a newer schema has: one, of
// the given name, of the inserts into facts and dictionaries, and one, whose name ends in "_watermark", of
// the watermark and the floors. A server whose wal_level does not allow it, and a publication of that name that
// something else made, are a *ledger.Problem.
func (s *Store) EnablePublication(ctx context.Context, name string) error {
	return s.changeSchemas(ctx, "change its publications", func(tx pgx.Tx) error {
		var level string
		if err := tx.QueryRow(ctx, "SELECT setting FROM pg_settings WHERE name = 'wal_level'").Scan(&level); err != nil {
			return err
		}
		if level != "logical" {
			return &ledger.Problem{
				What: fmt.Sprintf("the server of database %s has wal_level = %s: nothing can be published", s.Address(), level),
				Do:   "set wal_level = logical, and restart it",
			}
		}
		var facts []string
		for _, table := range published() {
			facts = append(facts, pgx.Identifier{s.db.Config.Schemas.Tables, table.Name}.Sanitize())
		}
		state := []string{
			pgx.Identifier{s.db.Config.Schemas.Tables, "checkpoints"}.Sanitize(), pgx.Identifier{s.db.Config.Schemas.Tables,
				"floors"}.Sanitize(),
		}
		for _, p := range []struct {
			name, publish string
			tables        []string
		}{{name, "insert", facts}, {name + watermarkSuffix, "insert, update", state}} {
			if err := s.publish(ctx, tx, p.name, p.publish, p.tables); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) publish(ctx context.Context, tx pgx.Tx, name, publish string, list []string) error {
	found, err := s.ownPublication(ctx, tx, name)
	if err != nil {
		return err
	}
	quoted := pgx.Identifier{name}.Sanitize()
	if found {
		_, err := tx.Exec(ctx, fmt.Sprintf("ALTER PUBLICATION %s SET TABLE %s", quoted, strings.Join(list, ", ")))
		return err
	}
	// Of a partitioned table the name is published, not those of its partitions, which the indexer makes, swaps and drops.
	for _, statement := range []string{
		fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish = '%s', publish_via_partition_root = true)", quoted,
			strings.Join(list, ", "), publish),
		fmt.Sprintf("COMMENT ON PUBLICATION %s IS '%s'", quoted, s.publicationComment()),
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// DisablePublication removes the publications that EnablePublication made, and reports whether there were any.
// Subscriptions to them fail from then on.
func (s *Store) DisablePublication(ctx context.Context, name string) (removed bool, err error) {
	err = s.changeSchemas(ctx, "change its publications", func(tx pgx.Tx) error {
		for _, name := range []string{name, name + watermarkSuffix} {
			found, err := s.ownPublication(ctx, tx, name)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			removed = true
			if _, err := tx.Exec(ctx, "DROP PUBLICATION "+pgx.Identifier{name}.Sanitize()); err != nil {
				return err
			}
		}
		return nil
	})
	return removed, err
}

// publicationComment identifies a publication of EnablePublication, and its pair.
func (s *Store) publicationComment() string {
	return fmt.Sprintf("Made by indexer publication enable for the schemas %s and %s.", s.db.Config.Schemas.Tables,
		s.db.Config.Schemas.Views)
}

// ownPublication reports whether there is a publication. One that something else made is a *ledger.Problem.
func (s *Store) ownPublication(ctx context.Context, tx pgx.Tx, name string) (bool, error) {
	var comment string
	err := tx.QueryRow(ctx, "SELECT coalesce(obj_description(p.oid, 'pg_publication'), '') FROM pg_publication p WHERE "+
		"p.pubname = $1", name).Scan(&comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case comment != s.publicationComment():
		return false, &ledger.Problem{
			What: fmt.Sprintf("database %s has a publication %s that was not made by `indexer publication enable` for the "+
				"schemas %s and %s",
				s.Address(), name, s.db.Config.Schemas.Tables, s.db.Config.Schemas.Views),
			Do: "give --publication another name, or --tables-schema and --views-schema those for which it was made",
		}
	}
	return true, nil
}

// columnsOfTable are the columns of a table as CREATE TABLE has them.
const columnsOfTable = `
SELECT string_agg(format('    %I %s', a.attname, format_type(a.atttypid, a.atttypmod)), E',\n' ORDER BY a.attnum)
FROM pg_attribute a WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped`

// SubscriberSchema returns the statements that make the tables of a subscriber, and for each table of facts a view,
// current_ and its name, of its rows up to the watermark, each once.
//
// Rows may come again: when they are repaired, or read again after a reset. So the tables have no primary key, and a
// column "applied", which grows with each transaction that is replicated. The initial copies of the tables are
// transactions in any order, and what a reset had removed before is in none of them: the rewrites of the initial copy
// are older than any row.
func (s *Store) SubscriberSchema(ctx context.Context) (string, error) {
	schema := pgx.Identifier{s.db.Config.Schemas.Tables}.Sanitize()
	var b strings.Builder
	fmt.Fprintf(&b, `CREATE SCHEMA %[1]s;

CREATE FUNCTION %[1]s.rewrite_applied() RETURNS xid8 LANGUAGE sql AS $$
SELECT CASE WHEN EXISTS (SELECT FROM pg_subscription_rel s WHERE s.srrelid = to_regclass('%[1]s.rewrites')
    AND s.srsubstate IN ('i', 'd'))
    THEN '0' ELSE pg_current_xact_id() END
$$;

`, schema)
	create := func(name, more string) error {
		table := schema + "." + name
		var columns string
		if err := s.db.Pool.QueryRow(ctx, columnsOfTable, table).Scan(&columns); err != nil {
			return s.db.Unusable(fmt.Errorf("database %s: read the columns of %s: %w", s.Address(), table, err))
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (\n%s%s\n);\n", table, columns, more)
		return nil
	}
	for _, state := range []string{"checkpoints", "floors"} {
		if err := create(state, ",\n    PRIMARY KEY (stream)"); err != nil {
			return "", err
		}
	}
	list := published()
	for _, table := range list {
		applied := "pg_current_xact_id()"
		if table.Name == "rewrites" {
			applied = schema + ".rewrite_applied()"
		}
		if err := create(table.Name, ",\n    applied xid8 NOT NULL DEFAULT "+applied); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "CREATE INDEX ON %s.%s (%s, applied);\n", schema, table.Name, strings.Join(table.Key, ", "))
	}
	for _, table := range slices.DeleteFunc(list, func(t tables.Table) bool { return t.Family != tables.Facts }) {
		key := "t." + strings.Join(table.Key, ", t.")
		fmt.Fprintf(&b, `
CREATE VIEW %[1]s.current_%[2]s AS
SELECT DISTINCT ON (%[3]s) t.* FROM %[1]s.%[2]s t
WHERE t.ledger_offset <= (SELECT c.ledger_offset FROM %[1]s.checkpoints c WHERE c.stream = '%[4]s')
  AND NOT EXISTS (SELECT FROM %[1]s.rewrites r
                  WHERE r.stream = '%[4]s' AND r.reason = 'reset' AND r.from_exclusive < t.ledger_offset
                      AND r.applied > t.applied)
ORDER BY %[3]s, t.applied DESC;
`, schema, table.Name, key, StreamUpdates)
	}
	return b.String(), nil
}
