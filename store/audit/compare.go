package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ingest"
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
func (s *Stored) Compare(ctx context.Context, page ledger.Page, found func(Difference) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if other, err := s.otherScope(ctx, tx, page); err != nil || other != "" {
			return err
		}
		page, err := s.withoutPruned(ctx, tx, page)
		if err != nil {
			return err
		}
		return s.compare(ctx, tx, page, found)
	})
}

// Deviation implements ingest.StoredUpdates.
func (s *Stored) Deviation(ctx context.Context, page ledger.Page) (is ingest.Deviation, err error) {
	var all Comparison
	err = s.Compare(ctx, page, func(d Difference) error {
		switch {
		case d.Relation == "updates" && d.Kind == Missing:
			is.UpdateLost = true
		case d.Relation == "updates" && d.Column != "update_id" && !d.Lacking():
			is.UpdateAltered = true
		case d.Kind == Missing && d.Element:
			is.ElementsLost++
		}
		return all.Add(d)
	})
	if is.Differences, is.Lacking = all.Differences, all.Lacking; is.Differences > 0 {
		is.First = all.First[0].String()
	}
	return is, err
}

// otherScope returns the hash of another scope than page.Scope in which some of the page's range is stored; empty:
// there is none, or the page has no scope.
func (s *Stored) otherScope(ctx context.Context, tx pgx.Tx, page ledger.Page) (string, error) {
	if page.Scope == "" {
		return "", nil
	}
	other, err := s.db.Queries.CoverageOfOthers(ctx, tx, dbsqlc.CoverageOfOthersParams{
		Stream: tables.StreamUpdates, Scope: page.Scope, FromExclusive: int64(page.From), ToInclusive: int64(page.To),
	})
	if err != nil {
		return "", fmt.Errorf("read in which scope offsets after %d up to %d are stored: %w", page.From, page.To, err)
	}
	return other, nil
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

// compare compares a page, without what was redacted of it.
func (s *Stored) compare(ctx context.Context, tx pgx.Tx, page ledger.Page, found Found) error {
	if err := writing.CheckPage(&page, page.From); err != nil {
		return err
	}
	erased, err := redacted.Read(ctx, s.db.Queries, tx)
	if err != nil {
		return err
	}
	facts := factsOf(erased.Page(page))
	return s.compareFacts(ctx, tx, &facts, found)
}

// pageFacts are the rows that writing a page makes, and the names that these refer to.
type pageFacts struct {
	page  ledger.Page
	rows  *rows.Facts
	names *names.References
}

func factsOf(page ledger.Page) pageFacts {
	wanted := names.NewReferences()
	return pageFacts{page, rows.FactsOf(wanted, page.Updates), wanted}
}

// compareFacts compares the rows of a page with those that are stored of its range.
func (s *Stored) compareFacts(ctx context.Context, tx pgx.Tx, facts *pageFacts, found Found) error {
	page := facts.page
	dictionaries, err := s.resolve(ctx, tx, facts.names)
	if err != nil {
		return err
	}
	if err := dictionaries.check(ctx, tx, facts.names, page.From, page.To, found); err != nil {
		return err
	}
	columns, err := s.factColumns(ctx, tx)
	if err != nil {
		return err
	}
	for _, rows := range facts.rows.Tables() {
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
