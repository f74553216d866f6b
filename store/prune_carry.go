package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

// carrying makes the carried rows those of a snapshot at a floor: $1 of its statements.
type carrying struct {
	db    *session.Database
	tx    pgx.Tx
	from  int64 // the history floor before
	floor int64
}

// carried says which rows, f, become carried ones: those of a fact's table or, again, those of the snapshot that was
// carried before.
type carried struct {
	table string
	again bool
	// more are columns with a value of their own, beside the snapshot's offset. The others are copied.
	more [][2]string
	rows string // chooses them
}

// The reassignments of which one half lies after the history floor, $2, up to the new one, and the other half does not.
var carriedReassignments = carried{
	table: "carried_reassignments",
	more: [][2]string{
		{"workflow_id", "(SELECT u.workflow_id FROM updates u WHERE u.ledger_offset = f.ledger_offset)"},
		{"created_offset", "coalesce(l.activated_offset, f.ledger_offset)"},
		{"created_node_id", "coalesce(l.activated_node_id, f.node_id)"},
	},
	rows: `reassignments f
LEFT JOIN lifetimes l ON f.kind = 'unassigned' AND l.deactivated_offset = f.ledger_offset AND l.contract_id = f.contract_id
    AND l.synchronizer_ref = f.source_ref
WHERE f.ledger_offset > $2::bigint AND f.ledger_offset <= $1::bigint
  AND (f.kind = 'assigned' OR l.activated_offset IS NOT NULL)
  AND NOT EXISTS (
      SELECT FROM reassignments o
      WHERE o.contract_id = f.contract_id AND o.reassignment_id = f.reassignment_id AND o.kind <> f.kind AND o.ledger_offset <= $1)
  AND NOT EXISTS (
      SELECT FROM carried_reassignments o
      WHERE o.contract_id = f.contract_id AND o.reassignment_id = f.reassignment_id AND o.kind <> f.kind)`,
}

var carriedReassignmentsAgain = carried{
	table: "carried_reassignments", again: true,
	rows: `carried_reassignments f
WHERE f.snapshot_offset < $1::bigint AND NOT EXISTS (
    SELECT FROM reassignments o
    WHERE o.contract_id = f.contract_id AND o.reassignment_id = f.reassignment_id AND o.kind <> f.kind AND o.ledger_offset <= $1)`,
}

// neededCreations are those that a snapshot at the floor has.
const neededCreations = `(
    SELECT n.ledger_offset, n.node_id, bool_or(n.active) AS active
    FROM needed_creations n
    WHERE n.ledger_offset <= $1::bigint AND (n.active_until IS NULL OR n.active_until > $1::bigint)
    GROUP BY n.ledger_offset, n.node_id
) k
`

// reassignedIn is the workflow of the incomplete reassignment that needs a creation event.
const reassignedIn = `(SELECT i.workflow_id FROM carried_reassignments i WHERE i.created_offset = f.ledger_offset AND i.created_node_id = f.node_id LIMIT 1)`

// A creation event that only an incomplete reassignment needs has the workflow of that one, as in a snapshot.
var carriedCreated = carried{
	table: "carried_created",
	more: [][2]string{
		{"workflow_id", `CASE WHEN k.active THEN (SELECT u.workflow_id FROM updates u WHERE u.ledger_offset = f.ledger_offset) ELSE ` + reassignedIn + ` END`},
		{"reassignment_counter", "CASE WHEN k.active THEN coalesce(r.reassignment_counter, 0) END"},
	},
	rows: neededCreations + `JOIN created f ON f.ledger_offset = k.ledger_offset AND f.node_id = k.node_id AND f.ledger_offset <= $1
LEFT JOIN reassignments r ON f.origin = 'assignment' AND r.kind = 'assigned' AND r.ledger_offset = f.ledger_offset AND r.node_id = f.node_id`,
}

var carriedCreatedAgain = carried{
	table: "carried_created", again: true,
	more: [][2]string{
		{"workflow_id", `CASE WHEN k.active THEN f.workflow_id ELSE ` + reassignedIn + ` END`},
		{"reassignment_counter", "CASE WHEN k.active THEN f.reassignment_counter END"},
	},
	rows: neededCreations + `JOIN carried_created f ON f.ledger_offset = k.ledger_offset AND f.node_id = k.node_id AND f.snapshot_offset < $1`,
}

var carriedViews = carried{
	table: "carried_interface_views",
	rows: `carried_created c
JOIN interface_views f ON f.ledger_offset = c.ledger_offset AND f.node_id = c.node_id AND f.ledger_offset <= $1::bigint`,
}

var carriedViewsAgain = carried{
	table: "carried_interface_views", again: true,
	rows: `carried_interface_views f
WHERE f.snapshot_offset < $1::bigint AND EXISTS (SELECT FROM carried_created c WHERE c.ledger_offset = f.ledger_offset AND c.node_id = f.node_id)`,
}

// Entries of unknown kinds belong to the snapshot as a whole: whether they are active nobody can tell.
var carriedUnknownAgain = carried{
	table: "carried_unknown_elements", again: true,
	rows: "carried_unknown_elements f WHERE f.ledger_offset < $1::bigint",
}

// run goes in an order that matters: reassignments first, then creation events, then what belongs to these.
func (c *carrying) run(ctx context.Context) error {
	q := c.db.Queries
	for _, step := range []struct {
		what string
		do   func(context.Context, dbsqlc.DBTX, int64) error
	}{
		{"incomplete reassignments", c.rows(carriedReassignments, c.from)},
		{"carried reassignments", c.rows(carriedReassignmentsAgain)},
		{"creations of what was active", c.rows(carriedCreated)},
		{"carried creations", c.rows(carriedCreatedAgain)},
		{"interface views of what was active", c.rows(carriedViews)},
		{"carried interface views", c.rows(carriedViewsAgain)},
		{"carried entries of unknown kinds", c.rows(carriedUnknownAgain)},
		{"the snapshot", q.PruneSnapshot},
	} {
		if err := step.do(ctx, c.tx, c.floor); err != nil {
			return fmt.Errorf("carry what was active at offset %d: %s: %w", c.floor, step.what, err)
		}
	}
	return nil
}

// rows copies rows. Those of the snapshot that was carried before are copied too, and not changed, because only what is
// inserted gets to copies by replication; after that they are removed.
func (c *carrying) rows(of carried, arguments ...any) func(context.Context, dbsqlc.DBTX, int64) error {
	return func(ctx context.Context, db dbsqlc.DBTX, floor int64) error {
		table := tables.Get(tables.Snapshot, of.table)
		from := table.Fact
		if of.again {
			from = table.Name
		}
		list, err := c.db.Queries.ColumnTypes(ctx, db, []string{from, table.Name})
		if err != nil {
			return err
		}
		names, values := []string{table.SnapshotOffset}, []string{"$1::bigint"}
		for _, column := range of.more {
			names, values = append(names, column[0]), append(values, column[1])
		}
		for _, column := range list {
			both := slices.ContainsFunc(list, func(other dbsqlc.ColumnTypesRow) bool {
				return other.Relation == table.Name && other.Name == column.Name
			})
			if column.Relation == from && both && !slices.Contains(names, column.Name) {
				names, values = append(names, column.Name), append(values, "f."+column.Name)
			}
		}
		statement := fmt.Sprintf("INSERT INTO %s (%s)\nSELECT %s\nFROM %s", table.Name, strings.Join(names, ", "),
			strings.Join(values, ", "), of.rows)
		_, err = db.Exec(ctx, statement, append([]any{floor}, arguments...)...)
		if err == nil && of.again {
			_, err = db.Exec(ctx, table.Delete("s."+table.SnapshotOffset+" < $1"), floor)
		}
		return err
	}
}
