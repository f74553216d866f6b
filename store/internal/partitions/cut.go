package partitions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Cut removes the offsets up to a floor from a partition. It copies the rows above the floor into a new partition,
// which replaces the old one: DELETE would not free disk space. Its methods are called in one transaction.
type Cut struct {
	Relation string
	Name     string // the partition
	Floor    int64
	To       int64 // where the partition ends, exclusive
}

// Whole reports whether nothing of the partition stays.
func (c *Cut) Whole() bool { return c.To <= c.Floor+1 }

// stays returns the offsets that stay.
func (c *Cut) stays() span { return span{c.Floor + 1, c.To} }

// Begin makes the partition that will take the place, with what lies above the floor up to an offset, unless nothing
// stays.
func (c *Cut) Begin(ctx context.Context, tx pgx.Tx, upTo int64) error {
	if c.Whole() {
		return nil
	}
	create, err := createSQL(c.Relation, c.stays())
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, create); err != nil {
		return fmt.Errorf("make the partition of %s from offset %d on: %w", c.Relation, c.Floor+1, err)
	}
	if err := c.Copy(ctx, tx, c.Floor, upTo); err != nil {
		return err
	}
	return c.buildIndexes(ctx, tx)
}

// buildIndexes builds the relation's indexes on the new partition, before it is attached, so that the relation is not
// locked meanwhile. To have PostgreSQL build them all, it attaches the partition for a moment to another table with the
// same indexes.
func (c *Cut) buildIndexes(ctx context.Context, tx pgx.Tx) error {
	column, err := partitionColumn(c.Relation)
	if err != nil {
		return err
	}
	s := c.stays()
	name := partitionName(c.Relation, s)
	parent := quoted(name + "_parent")
	for _, statement := range []string{
		fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING INDEXES) PARTITION BY RANGE (%s)", parent, quoted(c.Relation),
			column),
		fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", parent, quoted(name), s.from, s.to),
		fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, quoted(name)),
		"DROP TABLE " + parent,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("build the indexes of the partition of %s from offset %d on: %w", c.Relation, c.Floor+1, err)
		}
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
	to := quoted(partitionName(c.Relation, c.stays()))
	_, err = tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s > $1 AND %[3]s <= $2", to, quoted(c.Name),
		column), after, upTo)
	if err != nil {
		return fmt.Errorf("copy what stays of partition %s: %w", c.Name, err)
	}
	return nil
}

// Finish drops the partition, and attaches the one that takes its place. Nobody may read or write the table.
func (c *Cut) Finish(ctx context.Context, tx pgx.Tx) error {
	statements := []string{"DROP TABLE " + quoted(c.Name)}
	if !c.Whole() {
		statements = append(statements, attachSQL(c.Relation, c.stays())...)
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("drop partition %s: %w", c.Name, err)
		}
	}
	return nil
}
