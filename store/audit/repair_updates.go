package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// RepairUpdates makes the facts of the offsets after page.From up to page.To those that the ledger shows: the page. The
// offsets at which anything differs are written again, in every fact table. Names that the dictionaries lack are added,
// and then leaders begin a new term. The range is covered afterwards. Projections, and what else follows from facts,
// stay as they are.
//
// All is done in one transaction, except that partitions which are missing are attached before. A range beyond the
// watermark or below the history floor is an error: nothing is written that readers do not see, or that is not claimed.
func (r *Repairer) RepairUpdates(ctx context.Context, scope ledger.Scope, page ledger.Page) error {
	err := r.repairUpdates(ctx, scope, page)
	if err != nil {
		return fmt.Errorf("repair offsets after %d up to %d: %w", page.From, page.To, session.Refused(err))
	}
	return nil
}

func (r *Repairer) repairUpdates(ctx context.Context, scope ledger.Scope, page ledger.Page) error {
	if err := writing.CheckPage(&page, page.From); err != nil || page.From == page.To {
		return err
	}
	page = r.term.Redacted.Page(page)
	if err := r.repairPartitions(ctx, page.Updates); err != nil {
		return err
	}
	wanted := names.NewReferences()
	rows.FactsOf(wanted, page.Updates) // for their names
	return r.repair(ctx, rolesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.refuseOutside(ctx, tx, page.From, page.To); err != nil {
			return err
		}
		if err := r.refuseOtherScope(ctx, tx, page, cmp.Or(page.Scope, scope.Hash())); err != nil {
			return err
		}
		if err := r.addNames(ctx, tx, wanted); err != nil {
			return err
		}
		different, names, err := r.differing(ctx, tx, page)
		if err == nil && names {
			err = r.endTermsForNames(ctx, tx)
		}
		if err == nil {
			err = r.rewrite(ctx, tx, page, different)
		}
		if err != nil {
			return err
		}
		err = r.stored.db.Queries.CoverageClose(ctx, tx, dbsqlc.CoverageCloseParams{
			Stream: tables.StreamUpdates, Scope: cmp.Or(page.Scope, scope.Hash()), FromExclusive: int64(page.From),
			ToInclusive: int64(page.To),
		})
		if err != nil {
			return fmt.Errorf("close the coverage: %w", err)
		}
		return r.reseal(ctx, tx, findings.SealedUpdates, int64(page.From), int64(page.To), writing.Repaired,
			func(found func(findings.Difference) error) error {
				return r.stored.compare(ctx, tx, page, found)
			})
	})
}

// refuseOutside keeps facts from where none are claimed.
func (r *Repairer) refuseOutside(ctx context.Context, tx pgx.Tx, from, to ledger.Offset) error {
	extent, err := bounds.Read(ctx, r.stored.db, tx)
	if err != nil {
		return err
	}
	if !extent.Started || from < extent.HistoryFloor || to > extent.Watermark {
		return fmt.Errorf("events are claimed to be complete after offset %d up to %d only: repair the coverage first",
			extent.HistoryFloor, extent.Watermark)
	}
	return nil
}

// repairPartitions attaches the partitions that the updates' rows need. If any is missing, the leaders begin a new
// term: they remember one that was dropped.
func (r *Repairer) repairPartitions(ctx context.Context, updates []ledger.Update) error {
	before, err := r.stored.db.Queries.PartitionList(ctx, r.term.Pool)
	if err != nil {
		return fmt.Errorf("read partitions: %w", err)
	}
	r.term.Partitions.Forget()
	rows := rows.FactsOf(names.NewReferences(), updates) // for their offsets: names do not matter
	if err := writing.EnsurePartitions(ctx, r.term.Partitions, rows); err != nil {
		return err
	}
	after, err := r.stored.db.Queries.PartitionList(ctx, r.term.Pool)
	if err != nil || len(after) == len(before) {
		return err
	}
	return r.repair(ctx, rolesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		return r.term.EndTerms(ctx, tx, rolesThatRemember...)
	})
}

// refuseOtherScope keeps what was read in one scope from where another one is covered.
func (r *Repairer) refuseOtherScope(ctx context.Context, tx pgx.Tx, page ledger.Page, scope string) error {
	other, err := r.stored.db.Queries.CoverageOfOthers(ctx, tx, dbsqlc.CoverageOfOthersParams{
		Stream: tables.StreamUpdates, Scope: scope, FromExclusive: int64(page.From), ToInclusive: int64(page.To),
	})
	if err == nil && other != "" {
		err = fmt.Errorf("the page was read in scope %s, and some of its range is stored in scope %s meanwhile: try again",
			scope, other)
	}
	return err
}

// differing returns the offsets at which the page differs from what is stored, and whether it has other names or lists
// of parties there: a row of a dictionary may say something else than it did.
func (w *writer) differing(ctx context.Context, tx pgx.Tx, page ledger.Page) (different map[ledger.Offset]bool,
	names bool, err error) {
	different = map[ledger.Offset]bool{}
	err = w.stored.compare(ctx, tx, page, func(d findings.Difference) error {
		if d.Offset > 0 { // else it is of a template's interfaces, which were added before
			different[d.Offset] = true
		}
		names = names || tables.References[d.Column] != ""
		return nil
	})
	return different, names, err
}

func (w *writer) rewrite(ctx context.Context, tx pgx.Tx, page ledger.Page, different map[ledger.Offset]bool) error {
	if len(different) == 0 {
		return nil
	}
	wanted := names.NewReferences()
	facts := rows.FactsOf(wanted, slices.DeleteFunc(slices.Clone(page.Updates),
		func(u ledger.Update) bool { return !different[u.Offset] }))
	if _, err := w.stored.resolve(ctx, tx, wanted); err != nil {
		return err
	}
	offsets := make([]int64, 0, len(different))
	for offset := range different {
		offsets = append(offsets, int64(offset))
	}
	for _, table := range tables.In(tables.Facts) {
		if _, err := tx.Exec(ctx, table.Delete("s.ledger_offset = ANY ($1::bigint[])"), offsets); err != nil {
			return fmt.Errorf("remove %d offsets from %s: %w", len(offsets), table.Name, err)
		}
	}
	return writing.CopyFacts(ctx, w.stored.db, tx, facts)
}
