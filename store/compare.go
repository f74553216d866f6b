package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// Disagreement tells in what way the database and the ledger do not say the same.
type Disagreement string

// The ways to disagree.
const (
	Altered Disagreement = "altered" // a column holds another value
	Missing Disagreement = "missing" // the ledger has it, and the row is not stored
	Extra   Disagreement = "extra"   // a row is stored that the ledger has not
)

// Difference is one thing that is not stored as the ledger shows it.
type Difference struct {
	Kind     Disagreement
	Relation string        // of schema indexer
	Offset   ledger.Offset // 0: a row of a dictionary, which belongs to no offset
	Row      string        // tells the row from others at its offset, such as "node_id 3, ordinal 0"; empty: there is one only
	NodeID   *int32        // of the row, where it has one

	// Where Kind is Altered: the column, and both values as PostgreSQL writes them, nil for NULL. In place of a
	// reference stands what it refers to; of binary values longer than 64 bytes their length and their SHA-256.
	Column string
	Ledger *string
	Stored *string
}

// String is the difference as a sentence. Values of the ledger stand in quotes, escaped.
func (d Difference) String() string {
	where := d.Relation
	if d.Offset > 0 {
		where += fmt.Sprintf(" at offset %d", d.Offset)
	}
	if d.Row != "" {
		where += ", " + strings.Trim(strconv.Quote(d.Row), `"`)
	}
	switch d.Kind {
	case Missing:
		return where + ": the row is not stored"
	case Extra:
		return where + ": the row is stored, and the ledger has none"
	}
	return fmt.Sprintf("%s: %s is %s, and %s in the ledger", where, d.Column, quoted(d.Stored), quoted(d.Ledger))
}

// Compare compares the facts of the offsets after page.From up to page.To, all of which should be covered, with what
// the ledger shows there: the page. It makes the rows that writing the page would make, and compares them with the
// stored ones, each column of each fact table; carried rows, offset checkpoints and projections it leaves alone. A
// jsonb column has to hold what PostgreSQL makes of the ledger's JSON, to the last digit.
//
// found is told of every difference, relation by relation, in offset order as far as one relation goes; an error of
// its ends the comparison and is returned. Memory is in proportion to the page, however much is stored or different.
// A writer at work is not disturbed and does not disturb: everything is read in one read-only snapshot.
func (s *Store) Compare(ctx context.Context, page ledger.Page, found func(Difference) error) error {
	return s.readOnly(ctx, func(tx pgx.Tx) error { return s.compare(ctx, tx, page, found) })
}

func (s *Store) compare(ctx context.Context, tx pgx.Tx, page ledger.Page, found func(Difference) error) error {
	if err := checkPage(&page, page.From); err != nil {
		return err
	}
	dictionaries, err := s.readDictionaries(ctx, tx)
	if err != nil {
		return err
	}
	wanted := newNames()
	for i := range page.Updates {
		updateNames(wanted, &page.Updates[i])
	}
	numbers := dictionaries.resolve(wanted)
	if err := dictionaries.check(wanted, found); err != nil {
		return err
	}
	var facts factRows
	for i := range page.Updates {
		facts.add(numbers, &page.Updates[i])
	}
	columns, err := s.factColumns(ctx, tx)
	if err != nil {
		return err
	}
	for _, rows := range facts.tables(s.queries) {
		table, err := record(ctx, tx, rows, columns[rows.relation])
		if err != nil {
			return err
		}
		if err := newTableComparison(table, dictionaries, found).run(ctx, tx, page.From, page.To); err != nil {
			return fmt.Errorf("compare %s after offset %d up to %d: %w", table.relation, page.From, page.To, err)
		}
	}
	return nil
}

// readOnly reads with fn in one snapshot of the database.
func (s *Store) readOnly(ctx context.Context, fn func(tx pgx.Tx) error) error {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("database %s: %w", s.Address(), err)
	}
	defer rollback(ctx, tx)
	return fn(tx)
}
