package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// IndexTable is the table of an index: what it is of.
type IndexTable string

// The tables that indexes are made of. Without a field they index all creations by contract key, all exercises by
// choice, and all lifetimes by template.
const (
	IndexCreated   IndexTable = "created"
	IndexViews     IndexTable = "interface_views"
	IndexExercised IndexTable = "exercised"
	IndexLifetimes IndexTable = "lifetimes"
)

// Column returns the column that has the fields; empty: there is none.
func (t IndexTable) Column() string {
	return map[IndexTable]string{IndexCreated: "payload", IndexViews: "view_value", IndexExercised: "choice_argument"}[t]
}

// FieldIndex is an index of a field of all payloads, of all interface views, or of all choice arguments that have it,
// or without a path of what its table says. An index of a field serves every template whose field has the same path
// and type. A partial index for one template would need the numbers of its versions in the condition, which queries
// through a view don't have.
type FieldIndex struct {
	Path       string     `json:"path"`       // with dots between fields; empty: of no field
	Type       string     `json:"type"`       // of SQL; empty without a path
	Expression string     `json:"expression"` // of the field; it must be immutable and never fail; empty without a path
	Table      IndexTable `json:"-"`

	Name       string `json:"-"` // of the index on the partitioned table; those on partitions have their own names
	Bytes      int64  `json:"-"` // size for all partitions
	Partitions int    `json:"-"` // number of partitions that have it
	Unfinished int    `json:"-"` // number of partitions that don't have it yet, or not completely
}

const (
	// fieldComment begins the comment of such an index. The description follows as JSON, and is stored nowhere else.
	fieldComment = "Made by indexer index create: "
	// fieldTurnTries is how often the lock is tried: the session of an ended command may last a little longer.
	fieldTurnTries = 20
	// At most one of sameShare values, of the last sameSample, may be the most frequent one. A hash index keeps equal
	// values in one chain, and walks it for each new one.
	sameSample, sameShare = 10_000, 10
)

// ErrSameValues is wrapped by the error of CreateFieldIndex for a field of which too many values are the same.
var ErrSameValues = errors.New("too many values are the same")

// CreateFieldIndex creates an index, or completes an unfinished one, and reports whether it did anything. It blocks
// writers and readers for moments only. It builds one part of the index after the other, each after the open
// transactions have ended. After an error the finished parts stay, and the next call continues from there. Errors are a
// *ledger.Problem if the role lacks a right, another call is at work, or, without anyway, too many values are the same
// (ErrSameValues).
func (s *Store) CreateFieldIndex(ctx context.Context, wanted FieldIndex, anyway bool) (FieldIndex, bool, error) {
	var index FieldIndex
	changed := false
	err := s.alterFieldIndexes(ctx, func(w *fieldIndexWork) (err error) {
		index, changed, err = w.create(ctx, wanted, anyway)
		return err
	})
	if err != nil {
		err = fmt.Errorf("index of field %s: %w", wanted.Path, err)
	}
	return index, changed, err
}

// FieldIndexes lists the indexes, by name.
func (s *Store) FieldIndexes(ctx context.Context) (list []FieldIndex, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		list, err = fieldIndexes(ctx, tx)
		return err
	})
	return list, err
}

// DropFieldIndex drops an index, and reports whether there is one of this name.
func (s *Store) DropFieldIndex(ctx context.Context, name string) (found bool, err error) {
	err = s.alterFieldIndexes(ctx, func(w *fieldIndexWork) error {
		index, exists, err := fieldIndex(ctx, w.conn, name)
		if found = exists; err != nil || !exists {
			return err
		}
		return w.drop(ctx, index)
	})
	if err != nil {
		err = fmt.Errorf("drop index %s: %w", name, err)
	}
	return found, err
}

// fieldIndexWork changes indexes on a connection of its own.
type fieldIndexWork struct {
	store *Store
	conn  *pgx.Conn
}

// alterFieldIndexes calls change while no other call changes indexes.
func (s *Store) alterFieldIndexes(ctx context.Context, change func(*fieldIndexWork) error) error {
	lock, alone, err := s.db.Hold(ctx, session.LockIndexes, fieldTurnTries)
	switch {
	case pg.HasCode(err, pg.InsufficientPrivilege):
		return notTheirOwner(err)
	case err != nil:
		return s.db.Unusable(fmt.Errorf("database %s: see whether others change indexes: %w", s.Address(), err))
	case !alone:
		return &ledger.Problem{What: "another command is making or dropping an index", Do: "repeat it when that has ended"}
	}
	defer pg.Rollback(ctx, lock)
	conn, err := s.db.Connect(ctx, s.db.Conn)
	if err != nil {
		return s.db.Unusable(err)
	}
	defer pg.Close(ctx, conn)
	limits := fmt.Sprintf(`SELECT set_config(s.name, CASE s.name WHEN 'lock_timeout' THEN '%d' ELSE '0' END, false)
		FROM pg_settings s
		WHERE s.name IN ('statement_timeout', 'transaction_timeout', 'lock_timeout')`, lockPatience.Milliseconds())
	if _, err := conn.Exec(ctx, limits); err != nil {
		return s.db.Unusable(fmt.Errorf("database %s: set the limits on time: %w", s.Address(), err))
	}
	// The lock is another session's. If this process is killed, the server must not continue to build beside the next
	// holder of the lock. Servers that can't look for that refuse the setting.
	if _, err := conn.Exec(ctx, "SET client_connection_check_interval = '1s'"); err != nil &&
		!pg.HasCode(err, pg.InvalidParameterValue) {
		return s.db.Unusable(fmt.Errorf("database %s: let it notice that this command has ended: %w", s.Address(), err))
	}
	err = change(&fieldIndexWork{store: s, conn: conn})
	if pg.HasCode(err, pg.InsufficientPrivilege) {
		return notTheirOwner(err)
	}
	return err
}

func notTheirOwner(err error) error {
	return &ledger.Problem{What: "the role may not change the indexer's tables", Do: "use the role that owns them: the " +
		"one that runs the indexer", Err: err}
}

func (w *fieldIndexWork) create(ctx context.Context, wanted FieldIndex, anyway bool) (FieldIndex, bool, error) {
	whole := wholeDefinitions[wanted.Table]
	definition := whole.definition
	if wanted.Path != "" {
		definition = fieldDefinition(wanted.Type, wanted.Expression)
	}
	hash := fieldHash(wanted.Table, cmp.Or(wanted.Expression, definition))
	name := fieldIndexName(wanted.Table, cmp.Or(wanted.Path, whole.of), hash)
	_, exists, err := fieldIndex(ctx, w.conn, name)
	if err != nil {
		return FieldIndex{}, false, err
	}
	if !exists {
		if wanted.Type == "text" && !anyway {
			if err := w.refuseSameValues(ctx, wanted); err != nil {
				return FieldIndex{}, false, err
			}
		}
		text, err := json.Marshal(wanted)
		if err != nil {
			return FieldIndex{}, false, err
		}
		comment := strings.ReplaceAll(fieldComment+string(text), "'", "''")
		err = patiently(ctx, lockPatience, func() error {
			return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, fmt.Sprintf("CREATE INDEX %s ON ONLY %s %s", quotedName(name), wanted.Table, definition))
				if err == nil {
					_, err = tx.Exec(ctx, "COMMENT ON INDEX "+quotedName(name)+" IS '"+comment+"'")
				}
				return err
			})
		})
		if err != nil {
			return FieldIndex{}, false, err
		}
	}
	built, err := w.finish(ctx, wanted.Table, name, hash, definition)
	if err != nil {
		return FieldIndex{}, false, err
	}
	index, _, err := fieldIndex(ctx, w.conn, name)
	return index, built || !exists, err
}

// finish builds the missing parts, one for each partition. PostgreSQL creates those of new partitions.
func (w *fieldIndexWork) finish(ctx context.Context, table IndexTable, name, hash,
	definition string) (built bool, err error) {
	for {
		partitions, err := pg.Column[string](ctx, w.conn,
			`SELECT p.relname::text FROM pg_inherits h JOIN pg_class p ON p.oid = h.inhrelid
			WHERE h.inhparent = to_regclass($1) AND NOT EXISTS (
				SELECT FROM pg_index i JOIN pg_inherits x ON x.inhrelid = i.indexrelid
				WHERE i.indrelid = p.oid AND x.inhparent = to_regclass($2))
			ORDER BY length(p.relname), p.relname`, string(table), quotedName(name))
		if err != nil {
			return built, fmt.Errorf("look for partitions without the index: %w", err)
		}
		if len(partitions) == 0 {
			return built, nil
		}
		for _, partition := range partitions {
			part := fieldPartName(partition, hash)
			// A build can deadlock with a writer that attaches a partition: PostgreSQL then ends one of them.
			err := patiently(ctx, lockPatience, func() error {
				_, err := w.build(ctx, partition, part, definition)
				return err
			})
			if err != nil {
				return built, err
			}
			built = true
			err = patiently(ctx, lockPatience, func() error {
				_, err := w.conn.Exec(ctx, "ALTER INDEX "+quotedName(name)+" ATTACH PARTITION "+quotedName(part))
				return err
			})
			if err != nil {
				return built, fmt.Errorf("attach the index of %s: %w", partition, err)
			}
		}
	}
}

// build builds the index of one table, unless it exists. It first drops an invalid one, which an interrupted build left
// behind.
func (w *fieldIndexWork) build(ctx context.Context, table, name, definition string) (built bool, err error) {
	var valid bool
	err = w.conn.QueryRow(ctx, "SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass($1) AND i.indrelid "+
		"= to_regclass($2)", quotedName(name), quotedName(table)).Scan(&valid)
	switch {
	case err == nil && valid:
		return false, nil
	case err == nil:
		if err := w.dropConcurrently(ctx, name); err != nil {
			return false, err
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return false, fmt.Errorf("look for index %s: %w", name, err)
	}
	start := time.Now()
	w.store.db.Config.Logger.InfoContext(ctx, "building an index", "index", name, "relation", table)
	// It waits for other transactions, but blocks none.
	if err := w.withoutLockTimeout(ctx, "CREATE INDEX CONCURRENTLY "+quotedName(name)+" ON "+quotedName(table)+" "+
		definition); err != nil {
		return false, fmt.Errorf("build the index of %s: %w", table, err)
	}
	// Without this the planner has no statistics of the expression.
	if err := w.withoutLockTimeout(ctx, "ANALYZE "+quotedName(table)); err != nil {
		return false, fmt.Errorf("analyze %s: %w", table, err)
	}
	w.store.db.Config.Logger.InfoContext(ctx, "built an index", "index", name, "duration", time.Since(start))
	return true, nil
}

func (w *fieldIndexWork) dropConcurrently(ctx context.Context, name string) (err error) {
	defer pg.Wrap(&err, "drop index %s", name)
	return w.withoutLockTimeout(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+quotedName(name))
}

// withoutLockTimeout runs a statement that waits for others, but blocks none.
func (w *fieldIndexWork) withoutLockTimeout(ctx context.Context, statement string) error {
	if _, err := w.conn.Exec(ctx, "SET lock_timeout = 0"); err != nil {
		return err
	}
	if _, err := w.conn.Exec(ctx, statement); err != nil {
		return err
	}
	_, err := w.conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", lockPatience.Milliseconds()))
	return err
}

// drop drops the index after the parts that are not attached, so that an interrupted drop can be repeated.
func (w *fieldIndexWork) drop(ctx context.Context, index FieldIndex) error {
	hash := index.Name[strings.LastIndex(index.Name, "_")+1:]
	loose, err := pg.Column[string](ctx, w.conn,
		`SELECT c.relname::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid
		WHERE c.relkind = 'i' AND NOT c.relispartition AND c.relname = t.relname || $1
		AND i.indrelid IN (SELECT h.inhrelid FROM pg_inherits h WHERE h.inhparent = to_regclass($2))`,
		fieldPartName("", hash), string(index.Table))
	if err != nil {
		return fmt.Errorf("look for its parts: %w", err)
	}
	for _, part := range loose {
		if err := w.dropConcurrently(ctx, part); err != nil {
			return err
		}
	}
	return patiently(ctx, lockPatience, func() error {
		_, err := w.conn.Exec(ctx, "DROP INDEX IF EXISTS "+quotedName(index.Name))
		return err
	})
}

// refuseSameValues returns ErrSameValues, in a *ledger.Problem, if too many of the last values are the same.
func (w *fieldIndexWork) refuseSameValues(ctx context.Context, of FieldIndex) error {
	var values, same int64
	err := w.conn.QueryRow(ctx, fmt.Sprintf(`SELECT coalesce(sum(y.rows), 0)::bigint, coalesce(max(y.rows), 0) FROM (
		SELECT count(*) AS rows FROM (SELECT sha256(convert_to(%[1]s, 'UTF8')) AS value FROM %[2]s
			WHERE %[1]s IS NOT NULL ORDER BY ledger_offset DESC LIMIT %[3]d) x
		GROUP BY x.value) y`, of.Expression, of.Table, sameSample)).Scan(&values, &same)
	if err != nil {
		return fmt.Errorf("look at its last values: %w", err)
	}
	if values >= sameSample/sameShare && same*sameShare > values {
		return &ledger.Problem{What: fmt.Sprintf("of its last %d values %d are the same: an index would slow writing down "+
			"more and more, and a query for that value would read as much without it", values, same),
			Do: "index another field, or say --anyway", Err: ErrSameValues}
	}
	return nil
}

// wholeDefinitions are those of indexes of no field. That of lifetimes by template has all columns that counting needs,
// also for limited roles. Of contract keys ledger.created_with_key has the expression. A key is used again and again:
// the offset keeps equal ones in order, so that each new one has its place at once.
var wholeDefinitions = map[IndexTable]struct{ of, definition string }{
	IndexCreated: {"key", "USING btree (jsonb_hash_extended(contract_key, 0), ledger_offset) " +
		"WHERE contract_key IS NOT NULL"},
	IndexLifetimes: {"template", "USING btree (template_ref, deactivated_offset, activated_offset) " +
		"INCLUDE (activated_node_id, stakeholders_ref)"},
	IndexExercised: {"choice", "USING btree (choice)"},
}

// fieldDefinition returns what follows the table's name in CREATE INDEX. An index must accept every value, or rows
// could not be stored: a btree refuses more than 2,704 bytes, and SP-GiST becomes slow with long texts that begin
// alike. Texts therefore have a hash index, which serves equality only. Other types are short; values that don't fit
// the type are NULL, and not indexed.
func fieldDefinition(kind, expression string) string {
	if kind == "text" {
		return "USING hash ((" + expression + "))"
	}
	return "USING btree ((" + expression + ")) WHERE (" + expression + ") IS NOT NULL"
}

// fieldHash returns the end of an index's name, which makes it unique.
func fieldHash(table IndexTable, expression string) string {
	sum := sha256.Sum256([]byte(string(table) + "\x00" + expression))
	return hex.EncodeToString(sum[:6])
}

// fieldIndexName returns a name that contains the path, for people, cut to 63 bytes.
func fieldIndexName(table IndexTable, path, hash string) string {
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, path)
	end := "_" + hash
	name := string(table) + "_field_" + strings.ToLower(readable)
	return name[:min(len(name), 63-len(end))] + end
}

// fieldPartName returns the name of the index of a partition.
func fieldPartName(table, hash string) string { return table + "_field_" + hash }

func quotedName(name string) string { return pgx.Identifier{name}.Sanitize() }

// fieldIndex reads an index from the catalog; ok is false if there is none of the name.
func fieldIndex(ctx context.Context, db pg.Queryer, name string) (index FieldIndex, ok bool, err error) {
	list, err := fieldIndexes(ctx, db)
	if i := slices.IndexFunc(list, func(x FieldIndex) bool { return x.Name == name }); i >= 0 {
		return list[i], true, err
	}
	return index, false, err
}

// fieldIndexes reads the indexes from the catalog.
func fieldIndexes(ctx context.Context, db pg.Queryer) (list []FieldIndex, err error) {
	defer pg.Wrap(&err, "list the indexes of fields")
	var index FieldIndex
	var text string
	into := []any{&index.Name, &index.Table, &text, &index.Bytes, &index.Partitions, &index.Unfinished}
	err = pg.Each(ctx, db, `
		SELECT c.relname::text, t.relname::text, substr(d.description, length($1) + 1),
		       (SELECT coalesce(sum(pg_relation_size(p.relid)), 0)::bigint FROM pg_partition_tree(c.oid) p
		        WHERE p.isleaf AND p.relid <> c.oid),
		       parts.built, (SELECT count(*) FROM pg_inherits h WHERE h.inhparent = t.oid)::integer - parts.built
		FROM pg_class c
		JOIN pg_index i ON i.indexrelid = c.oid
		JOIN pg_class t ON t.oid = i.indrelid
		JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
			AND starts_with(d.description, $1)
		CROSS JOIN LATERAL (SELECT count(*)::integer AS built FROM pg_inherits h WHERE h.inhparent = c.oid) parts
		WHERE c.relkind = 'I'
			AND t.oid IN (to_regclass('created'), to_regclass('interface_views'), to_regclass('exercised'),
				to_regclass('lifetimes'))
		ORDER BY 1`, []any{fieldComment}, into, func() error {
		described := index
		if err := json.Unmarshal([]byte(text), &described); err != nil {
			return fmt.Errorf("the comment of index %s: %w", index.Name, err)
		}
		list = append(list, described)
		return nil
	})
	return list, err
}
