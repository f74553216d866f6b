package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/session"
)

// carrying copies what a snapshot at a floor has, $1 of its statements, from the rows up to there into partitions of
// their own. They are attached when those that had these rows are dropped.
type carrying struct {
	db    *session.Database
	tx    pgx.Tx
	from  int64 // the history floor before
	floor int64
	kept  map[string]*partitions.UpTo // by the name of the table
}

// carried says which rows, f, of a table stay, and which of their columns have another value than they had. An @ stands
// before the name of a table where its partition of what stays is meant.
type carried struct {
	table  string
	values [][2]string
	rows   string
}

const workflowOfUpdate = "(SELECT u.workflow_id FROM updates u WHERE u.ledger_offset = f.ledger_offset)"

// Reassignments of which one half lies up to the floor, and the other half does not.
var carriedReassignments = carried{
	table: "reassignments",
	values: [][2]string{
		{"record_time", "NULL"},
		{"workflow_id", "coalesce(f.workflow_id, " + workflowOfUpdate + ")"},
		{"created_offset", "coalesce(f.created_offset, l.activated_offset, f.ledger_offset)"},
		{"created_node_id", "coalesce(f.created_node_id, l.activated_node_id, f.node_id)"},
	},
	rows: `reassignments f
LEFT JOIN lifetimes l ON f.kind = 'unassigned' AND l.deactivated_offset = f.ledger_offset
    AND l.contract_id = f.contract_id AND l.synchronizer_ref = f.source_ref
WHERE f.ledger_offset <= $1::bigint
  AND (f.kind = 'assigned' OR f.created_offset IS NOT NULL OR l.activated_offset IS NOT NULL)
  AND NOT EXISTS (
      SELECT FROM reassignments o
      WHERE o.contract_id = f.contract_id AND o.reassignment_id = f.reassignment_id AND o.kind <> f.kind
        AND o.ledger_offset <= $1)`,
}

// A creation event that only an incomplete reassignment needs has the workflow of that one, as in a snapshot.
var carriedCreated = carried{
	table: "created",
	values: [][2]string{
		{"record_time", "NULL"},
		{"origin", "'snapshot'"},
		{"workflow_id", `CASE WHEN NOT k.active
        THEN (SELECT i.workflow_id FROM @reassignments i
              WHERE i.created_offset = f.ledger_offset AND i.created_node_id = f.node_id LIMIT 1)
    WHEN f.origin = 'snapshot' THEN f.workflow_id
    ELSE ` + workflowOfUpdate + ` END`},
		{"reassignment_counter", "CASE WHEN k.active THEN coalesce(f.reassignment_counter, r.reassignment_counter, 0) END"},
	},
	rows: `(
    SELECT n.ledger_offset, n.node_id, bool_or(n.active) AS active
    FROM (
        SELECT a.ledger_offset, a.node_id, true AS active FROM needed_creations a
        WHERE a.ledger_offset <= $1::bigint AND (a.active_until IS NULL OR a.active_until > $1::bigint)
        UNION ALL
        SELECT i.created_offset, i.created_node_id, false FROM @reassignments i
    ) n
    GROUP BY n.ledger_offset, n.node_id
) k
JOIN created f ON f.ledger_offset = k.ledger_offset AND f.node_id = k.node_id AND f.ledger_offset <= $1
LEFT JOIN reassignments r ON f.origin = 'assignment' AND r.kind = 'assigned' AND r.ledger_offset = f.ledger_offset
    AND r.node_id = f.node_id`,
}

var carriedViews = carried{
	table:  "interface_views",
	values: [][2]string{{"record_time", "NULL"}},
	rows: `@created c
JOIN interface_views f ON f.ledger_offset = c.ledger_offset AND f.node_id = c.node_id
    AND f.ledger_offset <= $1::bigint`,
}

// run goes in an order that matters: reassignments first, then creation events, then what belongs to these. It returns
// how many entries a snapshot has of them: an entry is what is active, or an incomplete reassignment.
func (c *carrying) run(ctx context.Context) (entries int64, err error) {
	c.kept = map[string]*partitions.UpTo{}
	var reassigned, active int64
	if reassigned, err = c.copy(ctx, carriedReassignments); err == nil {
		_, err = c.copy(ctx, carriedCreated)
	}
	if err == nil {
		_, err = c.copy(ctx, carriedViews)
	}
	if err != nil {
		return 0, fmt.Errorf("carry what was active at offset %d: %w", c.floor, err)
	}
	err = c.tx.QueryRow(ctx, c.named("SELECT count(*) FROM @created c WHERE c.reassignment_counter IS NOT NULL")).
		Scan(&active)
	if err != nil {
		return 0, fmt.Errorf("count what was active at offset %d: %w", c.floor, err)
	}
	return reassigned + active, nil
}

// named puts the partitions that stay in the place of their tables' names behind an @.
func (c *carrying) named(statement string) string {
	for table, kept := range c.kept {
		statement = strings.ReplaceAll(statement, "@"+table, kept.Table())
	}
	return statement
}

// copy copies rows into a new partition, and builds its indexes.
func (c *carrying) copy(ctx context.Context, of carried) (rows int64, err error) {
	list, err := queries.ColumnTypes(ctx, c.tx, []string{of.table})
	if err != nil {
		return 0, err
	}
	names, values := make([]string, len(list)), make([]string, len(list))
	for i, column := range list {
		names[i], values[i] = column.Name, "f."+column.Name
		if j := slices.IndexFunc(of.values, func(v [2]string) bool { return v[0] == column.Name }); j >= 0 {
			values[i] = of.values[j][1]
		}
	}
	kept := partitions.NewUpTo(of.table, c.floor)
	if err := kept.Create(ctx, c.tx); err != nil {
		return 0, err
	}
	statement := fmt.Sprintf("INSERT INTO %s (%s)\nSELECT %s\nFROM %s", kept.Table(), strings.Join(names, ", "),
		strings.Join(values, ", "), of.rows)
	copied, err := c.tx.Exec(ctx, c.named(statement), c.floor)
	if err != nil {
		return 0, fmt.Errorf("copy rows of %s: %w", of.table, err)
	}
	c.kept[of.table] = kept
	return copied.RowsAffected(), kept.BuildIndexes(ctx, c.tx)
}

// moveUnknown moves the entries of unknown kinds, of which nobody can tell whether they are active, to the floor. Their
// table has no partitions, and lacks the rows of updates up to there already.
func (c *carrying) moveUnknown(ctx context.Context) (entries int64, err error) {
	if entries, err = queries.PruneMoveUnknown(ctx, c.tx, dbsqlc.PruneMoveUnknownParams{Floor: c.floor,
		FloorBefore: c.from}); err != nil {
		return 0, fmt.Errorf("carry entries of unknown kinds: %w", err)
	}
	return entries, nil
}

// attach attaches the new partitions, when those that had their offsets are dropped.
func (c *carrying) attach(ctx context.Context, tx pgx.Tx) error {
	for _, kept := range c.kept {
		if err := kept.Attach(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
