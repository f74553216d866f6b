package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// Compare compares the facts of the offsets after page.From up to page.To, all of which should be covered, with what
// the ledger shows there: the page. It makes the rows that writing the page would make, and compares them with the
// stored ones, each column of each fact table; carried rows, offset checkpoints and projections it leaves alone. A
// jsonb column has to hold what PostgreSQL makes of the ledger's JSON, to the last digit.
//
// found is told of every difference, relation by relation, in offset order as far as one relation goes; an error of
// its ends the comparison and is returned. Memory is in proportion to the page, however much is stored or different.
// A writer at work is not disturbed and does not disturb: everything is read in one read-only snapshot.
func (s *Store) Compare(ctx context.Context, page ledger.Page, found func(ledger.Difference) error) error {
	return s.readOnly(ctx, func(tx pgx.Tx) error { return s.compare(ctx, tx, page, found) })
}

func (s *Store) compare(ctx context.Context, tx pgx.Tx, page ledger.Page, found func(ledger.Difference) error) error {
	if err := checkPage(&page, page.From); err != nil {
		return err
	}
	dictionaries, err := s.readDictionaries(ctx, tx)
	if err != nil {
		return err
	}
	wanted := names.NewWanted()
	for i := range page.Updates {
		rows.UpdateNames(wanted, &page.Updates[i])
	}
	numbers, err := dictionaries.resolve(ctx, tx, wanted)
	if err != nil {
		return err
	}
	if err := dictionaries.check(wanted, found); err != nil {
		return err
	}
	var facts rows.Facts
	for i := range page.Updates {
		facts.Add(numbers, &page.Updates[i])
	}
	columns, err := s.factColumns(ctx, tx)
	if err != nil {
		return err
	}
	for _, rows := range facts.Tables() {
		table, err := record(tx, tables.Facts, rows, columns[rows.Name])
		if err != nil {
			return err
		}
		if err := newTableComparison(table, dictionaries, found).run(ctx, tx, page.From, page.To); err != nil {
			return fmt.Errorf("compare %s after offset %d up to %d: %w", table.Name, page.From, page.To, err)
		}
	}
	return nil
}

// readOnly reads with fn in one snapshot of the database.
func (s *Store) readOnly(ctx context.Context, fn func(tx pgx.Tx) error) error {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return s.unusable(fmt.Errorf("database %s: %w", s.Address(), err))
	}
	defer pg.Rollback(ctx, tx)
	return s.unusable(fn(tx))
}

// Bounds are what the database claims to hold of the updates; started is false where nothing was indexed.
func (s *Store) Bounds(ctx context.Context) (bounds ledger.Bounds, started bool, err error) {
	err = s.readOnly(ctx, func(tx pgx.Tx) error {
		extent, err := s.extent(ctx, tx)
		bounds = ledger.Bounds{
			Floor: extent.HistoryFloor, Watermark: extent.Watermark,
			StateFloor: extent.StateFloor,
		}
		started = extent.Started
		return err
	})
	return bounds, started, err
}
