package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
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
// found is called for each difference, relation by relation, in offset order as far as one relation goes. Memory is in
// proportion to the page, however much is stored or different. A writer at work is not disturbed and does not disturb:
// everything is read in one read-only snapshot.
func (s *Stored) Compare(ctx context.Context, page ledger.Page, found Found) error {
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
	err = s.Compare(ctx, page, func(d Difference) {
		switch {
		case d.Relation == "updates" && d.Kind == Missing:
			is.UpdateLost = true
		case d.Relation == "updates" && d.Column != "update_id" && !d.Lacking():
			is.UpdateAltered = true
		case d.Kind == Missing && d.Element:
			is.ElementsLost++
		}
		all.Add(d)
	})
	if is.Differences, is.Lacking = all.Differences, all.Lacking; is.Differences > 0 {
		is.First = all.First[0].String()
	}
	return is, err
}

// otherScope returns the hash of another scope than page.Scope in which some of the page's range is stored; empty:
// there is none, or the page has no scope.
func (s *Stored) otherScope(ctx context.Context, tx pgx.Tx, page ledger.Page) (other string, err error) {
	defer pg.Wrap(&err, "read in which scope offsets after %d up to %d are stored", page.From, page.To)
	if page.Scope == "" {
		return "", nil
	}
	return queries.CoverageOfOthers(ctx, tx, dbsqlc.CoverageOfOthersParams{
		Stream: tables.StreamUpdates, Scope: page.Scope, FromExclusive: int64(page.From), ToInclusive: int64(page.To),
	})
}

// withoutPruned returns the part of a page that was not pruned since it was decided to read it.
func (s *Stored) withoutPruned(ctx context.Context, tx pgx.Tx, page ledger.Page) (ledger.Page, error) {
	extent, err := bounds.Read(ctx, tx)
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
	erased, err := redacted.Read(ctx, tx)
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
	c, err := s.comparing(ctx, tx, tables.In(tables.Facts), facts.names, found)
	if err == nil {
		err = c.names.check(ctx, tx, facts.names, page.From, page.To, found)
	}
	if err != nil {
		return err
	}
	return c.between(ctx, tables.Facts, facts.rows.Tables(), int64(page.From), int64(page.To))
}

// RepairUpdates makes the facts of the offsets after page.From up to page.To those that the ledger shows: the page. It
// compares them, while nobody else writes, and writes the offsets at which anything differs again, in every fact table.
// Names that the dictionaries lack are added, and then leaders begin a new term. The range is covered afterwards, and
// the windows that lie in it as a whole are sealed. Projections, and what else follows from facts, stay as they are.
//
// All is done in one transaction, except that partitions which are missing are attached before. A range beyond the
// watermark or below the history floor is an error: nothing is written that readers do not see, or that is not claimed.
func (r *Repairer) RepairUpdates(ctx context.Context, scope ledger.Scope, page ledger.Page) (err error) {
	defer session.WrapRefused(&err, "repair offsets after %d up to %d", page.From, page.To)
	page.Scope = cmp.Or(page.Scope, scope.Hash())
	if err := writing.CheckPage(&page, page.From); err != nil || page.From == page.To {
		return err
	}
	facts := factsOf(r.term.Redacted.Page(page))
	if err := r.repairPartitions(ctx, facts.rows); err != nil {
		return err
	}
	return r.repair(ctx, leasesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.refuseOutside(ctx, tx, page.From, page.To); err != nil {
			return err
		}
		if err := r.refuseOtherScope(ctx, tx, page); err != nil {
			return err
		}
		if err := r.addNames(ctx, tx, facts.names); err != nil {
			return err
		}
		if err := r.rewriteDifferent(ctx, tx, &facts); err != nil {
			return err
		}
		err := queries.CoverageClose(ctx, tx, dbsqlc.CoverageCloseParams{
			Stream: tables.StreamUpdates, Scope: page.Scope, FromExclusive: int64(page.From), ToInclusive: int64(page.To),
		})
		if err != nil {
			return fmt.Errorf("close the coverage: %w", err)
		}
		return r.reseal(ctx, tx, tables.StreamUpdates, int64(page.From), int64(page.To))
	})
}

// refuseOutside keeps facts from where none are claimed.
func (r *Repairer) refuseOutside(ctx context.Context, tx pgx.Tx, from, to ledger.Offset) error {
	extent, err := bounds.Read(ctx, tx)
	if err != nil {
		return err
	}
	if !extent.Started || from < extent.HistoryFloor || to > extent.Watermark {
		return fmt.Errorf("events are claimed to be complete after offset %d up to %d only: repair the coverage first",
			extent.HistoryFloor, extent.Watermark)
	}
	return nil
}

// repairPartitions attaches the partitions that rows need. If any is missing, the leaders begin a new term: they
// remember one that was dropped.
func (r *Repairer) repairPartitions(ctx context.Context, facts *rows.Facts) error {
	before, err := queries.PartitionList(ctx, r.term.Pool)
	if err != nil {
		return fmt.Errorf("read partitions: %w", err)
	}
	r.term.Partitions.Forget()
	if err := writing.EnsurePartitions(ctx, r.term.Partitions, facts); err != nil {
		return err
	}
	after, err := queries.PartitionList(ctx, r.term.Pool)
	if err != nil || len(after) == len(before) {
		return err
	}
	return r.repair(ctx, leasesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		return r.term.EndTerms(ctx, tx, leasesThatRemember...)
	})
}

// refuseOtherScope keeps what was read in one scope from where another one is covered.
func (r *Repairer) refuseOtherScope(ctx context.Context, tx pgx.Tx, page ledger.Page) error {
	other, err := r.stored.otherScope(ctx, tx, page)
	if err == nil && other != "" {
		err = fmt.Errorf("the page was read in scope %s, and some of its range is stored in scope %s meanwhile: try again",
			page.Scope, other)
	}
	return err
}

// rewriteDifferent compares the facts of a page, and writes them again at the offsets at which they differ. Where a
// name or a list of parties differs, a row of a dictionary may say something else than it did: the terms of the leaders
// end.
func (r *Repairer) rewriteDifferent(ctx context.Context, tx pgx.Tx, facts *pageFacts) error {
	different, renamed := map[ledger.Offset]bool{}, false
	err := r.stored.compareFacts(ctx, tx, facts, func(d Difference) {
		if d.Offset > 0 { // else it is of a template's interfaces, which were added before
			different[d.Offset] = true
		}
		renamed = renamed || tables.References[d.Column] != ""
	})
	if err == nil && renamed {
		err = r.endTermsForNames(ctx, tx)
	}
	if err != nil || len(different) == 0 {
		return err
	}
	offsets := slices.Collect(maps.Keys(different))
	for _, table := range tables.In(tables.Facts) {
		if _, err := tx.Exec(ctx, table.Delete("s.ledger_offset = ANY ($1::bigint[])"), offsets); err != nil {
			return fmt.Errorf("remove %d offsets from %s: %w", len(offsets), table.Name, err)
		}
	}
	again := factsOf(ledger.Page{Updates: slices.DeleteFunc(slices.Clone(facts.page.Updates),
		func(u ledger.Update) bool { return !different[u.Offset] })})
	if _, err := r.stored.resolve(ctx, tx, again.names); err != nil {
		return err
	}
	return writing.CopyFacts(ctx, r.stored.db, tx, again.rows)
}
