package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// CompareCopies compares the tables that are kept twice (State and Dictionaries) with their copies, and the rows of
// both with their digests. found is called with every difference, of the table or of its copy, whichever was damaged;
// if it returns an error, the comparison stops with it. Everything is read in one read-only snapshot.
//
//   - A row with its digest, in the table or in the copy, wins over one without, and over one that is missing.
//   - A row without its digest that the other table lacks should not be there.
//   - Where neither has its digest, and where both have and yet differ, nothing says what is right: a *ledger.Problem.
func (s *Stored) CompareCopies(ctx context.Context, found func(findings.Difference) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.compareCopies(ctx, tx, found) })
}

func (s *Stored) compareCopies(ctx context.Context, tx pgx.Tx, found func(findings.Difference) error) error {
	columns, err := s.columnsOfCopies(ctx, tx)
	if err != nil {
		return err
	}
	var undecided error
	for _, table := range tables.KeptTwice() {
		err := eachThatDiffers(ctx, tx, &table, columns[table.Name], func(r *twoRows) error {
			if !r.undecided() {
				return r.report(&table, columns[table.Name], found)
			}
			if undecided == nil {
				undecided = s.undecided(&table, r)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("compare %s with its copy: %w", table.Name, err)
		}
	}
	return undecided
}

// twoRows are the rows with one key in a table that is kept twice and in its copy: their columns as text, nil where
// there is no row.
type twoRows struct {
	name             string
	stored, copied   []*string
	storedOK, copyOK bool // whether the row has its digest
}

// eachThatDiffers finds the keys under which a table and its copy do not both have the same row with its digest.
func eachThatDiffers(ctx context.Context, tx pgx.Tx, table *tables.Table, columns []column,
	each func(*twoRows) error) error {
	var name, same, stored, copied []string
	for _, c := range table.Key {
		same = append(same, fmt.Sprintf("s.%[1]s = c.%[1]s", c))
		if c != "only_row" {
			name = append(name, fmt.Sprintf("'%[1]s ' || coalesce(s.%[1]s, c.%[1]s)", c))
		}
	}
	for _, c := range columns {
		stored, copied = append(stored, "s."+c.name+"::text"), append(copied, "c."+c.name+"::text")
	}
	sql := fmt.Sprintf(`SELECT concat_ws(', ', %s), CASE WHEN s.is_copy IS NOT NULL THEN ARRAY[%s] END,
    CASE WHEN c.is_copy IS NOT NULL THEN ARRAY[%s] END, is_intact(s), is_intact(c)
FROM %s s FULL JOIN %s c ON %s
WHERE (is_intact(s) AND is_intact(c) AND s.digest = c.digest) IS NOT TRUE`,
		strings.Join(append(name, "NULL"), ", "), strings.Join(stored, ", "), strings.Join(copied, ", "), table.Name,
		table.Copy(), strings.Join(same, " AND "))
	var r twoRows
	return pg.Each(ctx, tx, sql, nil, []any{&r.name, &r.stored, &r.copied, &r.storedOK, &r.copyOK},
		func() error { return each(&r) })
}

// undecided reports whether nothing says which of two rows is right.
func (r *twoRows) undecided() bool {
	return r.stored != nil && r.copied != nil && r.storedOK == r.copyOK
}

func (s *Stored) undecided(table *tables.Table, r *twoRows) error {
	row := strings.TrimSuffix("a row of table "+table.Name+" in database "+s.db.Address()+", "+r.name, ", ")
	if r.storedOK {
		return &ledger.Problem{
			What: fmt.Sprintf("%s, and its copy in %s have their digests, and differ", row, table.Copy()),
			Do: "compare both with a backup of the database, delete the one that is wrong, and run `indexer verify " +
				"--repair`, which writes it again",
		}
	}
	return &ledger.Problem{
		What: fmt.Sprintf("%s, and its copy in %s were both altered: neither has the digest that it was written with", row,
			table.Copy()),
		Do: "restore one of the two from a backup of the database with its digest, delete the other and run `indexer " +
			"verify --repair`; or index into a new database",
	}
}

func (r *twoRows) report(table *tables.Table, columns []column, found func(findings.Difference) error) error {
	relation, stored, wanted := table.Name, r.stored, r.copied
	if r.storedOK || r.stored == nil && !r.copyOK {
		relation, stored, wanted = table.Copy(), r.copied, r.stored
	}
	return new(dictionaries).reportRows(derivedDifference("", relation, r.name), columnNames(columns), wanted, stored,
		found)
}

// columnsOfCopies returns the columns that a table and its copy should have alike.
func (s *Stored) columnsOfCopies(ctx context.Context, tx pgx.Tx) (map[string][]column, error) {
	columns, err := s.columnsOf(ctx, tx, tables.Dictionaries, tables.State)
	for name, list := range columns {
		columns[name] = slices.DeleteFunc(list, func(c column) bool { return c.name == "is_copy" })
	}
	return columns, err
}
