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

// stays returns the partition of what stays.
func (c *Cut) stays() part { return partOf(c.Relation, span{c.Floor + 1, c.To}) }

// Begin makes the partition that will take the place, with what lies above the floor up to an offset, unless nothing
// stays.
func (c *Cut) Begin(ctx context.Context, tx pgx.Tx, upTo int64) error {
	if c.Whole() {
		return nil
	}
	stays := c.stays()
	if err := stays.create(ctx, tx); err != nil {
		return err
	}
	if err := c.Copy(ctx, tx, c.Floor, upTo); err != nil {
		return err
	}
	return stays.buildIndexes(ctx, tx)
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
	to := quoted(c.stays().name)
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
		stays := c.stays()
		statements = append(statements, stays.attachSQL()...)
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("drop partition %s: %w", c.Name, err)
		}
	}
	return nil
}

// UpTo is a new partition of a table with all offsets up to a floor. It is filled while it is a table of its own, and
// takes the place of those that had these offsets. Its methods are called in one transaction.
type UpTo struct{ part }

// NewUpTo returns the partition, which is not made yet.
func NewUpTo(relation string, floor int64) *UpTo { return &UpTo{partUpTo(relation, floor)} }

// Table returns its name as it stands in statements.
func (u *UpTo) Table() string { return quoted(u.name) }

// Create makes it as an empty table.
func (u *UpTo) Create(ctx context.Context, tx pgx.Tx) error { return u.create(ctx, tx) }

// BuildIndexes builds its indexes, when it is filled.
func (u *UpTo) BuildIndexes(ctx context.Context, tx pgx.Tx) error { return u.buildIndexes(ctx, tx) }

// Attach attaches it. Nobody may read or write the table, and those that had its offsets are dropped.
func (u *UpTo) Attach(ctx context.Context, tx pgx.Tx) error {
	for _, statement := range u.attachSQL() {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("attach partition %s: %w", u.name, err)
		}
	}
	return nil
}
