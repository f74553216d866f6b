package partitions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Cut is a partition that has offsets up to a floor, and is to lose them. What lies above is copied into a partition that takes its
// place: DELETE would give no room on the disk back. Its methods are called in one transaction.
type Cut struct {
	Relation string
	Name     string // the partition
	Floor    int64
	To       int64 // where the partition ends, exclusive
}

// Whole reports whether nothing of the partition stays.
func (c *Cut) Whole() bool { return c.To <= c.Floor+1 }

// successor is the name of the partition that takes the place.
func (c *Cut) successor() string { return fmt.Sprintf("%s_p%d", c.Relation, c.Floor+1) }

// Begin makes the partition that will take the place, unless nothing stays.
func (c *Cut) Begin(ctx context.Context, tx pgx.Tx) error {
	if c.Whole() {
		return nil
	}
	column, err := partitionColumn(c.Relation)
	if err != nil {
		return err
	}
	// The CHECK spares the attachment a scan.
	_, err = tx.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMPRESSION INCLUDING INDEXES, CONSTRAINT %s CHECK (%s >= %d AND %[4]s < %[6]d))",
		quoted(c.successor()), quoted(c.Relation), quoted(c.successor()+"_range"), column, c.Floor+1, c.To))
	if err != nil {
		return fmt.Errorf("make the partition of %s from offset %d on: %w", c.Relation, c.Floor+1, err)
	}
	return nil
}

// Copy copies what lies after an offset, which is not below the floor, up to another.
func (c *Cut) Copy(ctx context.Context, tx pgx.Tx, after, upTo int64) error {
	if c.Whole() {
		return nil
	}
	column, err := partitionColumn(c.Relation)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s > $1 AND %[3]s <= $2", quoted(c.successor()), quoted(c.Name), column), after, upTo)
	if err != nil {
		return fmt.Errorf("copy what stays of partition %s: %w", c.Name, err)
	}
	return nil
}

// Finish drops the partition, and attaches the one that takes its place. Nobody may read or write the table.
func (c *Cut) Finish(ctx context.Context, tx pgx.Tx) error {
	statements := []string{"DROP TABLE " + quoted(c.Name)}
	if !c.Whole() {
		statements = append(statements,
			fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", quoted(c.Relation), quoted(c.successor()), c.Floor+1, c.To),
			fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", quoted(c.successor()), quoted(c.successor()+"_range")))
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("drop partition %s: %w", c.Name, err)
		}
	}
	return nil
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
