package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// Compare compares the facts of the offsets after page.From up to page.To, all of which should be covered, with what
// the ledger shows there: the page. It makes the rows that writing the page would make, and compares them with the
// stored ones, each column of each fact table; carried rows, offset checkpoints and projections it leaves alone. A
// value is no difference that is alike (ledger.AlikeJSON), and interface views that differ are reported with a
// Rendering. What was pruned meanwhile is left out, and so is a page of a scope (page.Scope) in which its range is not
// stored any more. What was redacted has to be missing.
//
// found is called for each difference, relation by relation, in offset order as far as one relation goes; if it returns
// an error, the comparison stops with it. Memory is in proportion to the page, however much is stored or different. A
// writer at work is not disturbed and does not disturb: everything is read in one read-only snapshot.
func (s *Stored) Compare(ctx context.Context, page ledger.Page, found func(findings.Difference) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if other, err := s.ofOtherScope(ctx, tx, page); err != nil || other {
			return err
		}
		page, err := s.withoutPruned(ctx, tx, page)
		if err != nil {
			return err
		}
		return s.compare(ctx, tx, page, found)
	})
}

// ofOtherScope reports whether some of a page's range is stored in another scope than the page was read in.
func (s *Stored) ofOtherScope(ctx context.Context, tx pgx.Tx, page ledger.Page) (bool, error) {
	if page.Scope == "" {
		return false, nil
	}
	other, err := s.db.Queries.CoverageOfOthers(ctx, tx, dbsqlc.CoverageOfOthersParams{
		Stream: tables.StreamUpdates, Scope: page.Scope, FromExclusive: int64(page.From), ToInclusive: int64(page.To),
	})
	if err != nil {
		return false, fmt.Errorf("read in which scope offsets after %d up to %d are stored: %w", page.From, page.To, err)
	}
	return other != "", nil
}

// withoutPruned returns the part of a page that was not pruned since it was decided to read it.
func (s *Stored) withoutPruned(ctx context.Context, tx pgx.Tx, page ledger.Page) (ledger.Page, error) {
	extent, err := bounds.Read(ctx, s.db, tx)
	if err != nil || page.From >= extent.PrunedTo {
		return page, err
	}
	page.From = min(extent.PrunedTo, page.To)
	page.Updates = slices.DeleteFunc(slices.Clone(page.Updates),
		func(u ledger.Update) bool { return u.Offset <= page.From })
	return page, nil
}

func (s *Stored) compare(ctx context.Context, tx pgx.Tx, page ledger.Page,
	found func(findings.Difference) error) error {
	if err := writing.CheckPage(&page, page.From); err != nil {
		return err
	}
	erased, err := redacted.Read(ctx, s.db.Queries, tx)
	if err != nil {
		return err
	}
	page = erased.Page(page)
	wanted := names.NewReferences()
	facts := rows.FactsOf(wanted, page.Updates)
	dictionaries, err := s.resolve(ctx, tx, wanted)
	if err != nil {
		return err
	}
	if err := dictionaries.check(ctx, tx, wanted, page.From, page.To, found); err != nil {
		return err
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
		if err := newTableComparison(table, dictionaries, found).run(ctx, tx, int64(page.From), int64(page.To)); err != nil {
			return fmt.Errorf("compare %s after offset %d up to %d: %w", table.Name, page.From, page.To, err)
		}
	}
	return nil
}
