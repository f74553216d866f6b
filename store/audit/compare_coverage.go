package audit

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/tables"
)

// CompareCoverage compares what the database holds of the updates with the ledger's end, which is nil where it is not
// known, and looks for holes in it. found is called for each difference; if it returns an error, the comparison stops
// with it. holes are the ranges up to the watermark that are not covered: only the ledger knows what belongs there.
// Everything is read in one read-only snapshot.
//
// The end has to be one that was asked for after a watermark was seen beyond it: a daemon continues while this
// compares.
//
// What contradicts itself is for CompareHeld. A ledger that ends before indexing began is a *ledger.Problem.
func (s *Stored) CompareCoverage(ctx context.Context, end *ledger.Offset,
	found func(Difference) error) (holes []ledger.Range, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := s.extentBefore(ctx, tx, end)
		if err != nil || !extent.Started {
			return err
		}
		holes, err = s.compareCoverage(ctx, tx, extent, end, found)
		return err
	})
	return holes, err
}

// extentBefore returns how much the database holds. The error is a *ledger.Problem where the ledger ends before it.
func (s *Stored) extentBefore(ctx context.Context, tx pgx.Tx, end *ledger.Offset) (bounds.Extent, error) {
	extent, err := bounds.Read(ctx, s.db, tx)
	if err == nil && extent.Started && end != nil && *end < extent.HistoryFloor {
		err = &ledger.Problem{
			What: fmt.Sprintf("the ledger ends at offset %d, before offset %d, where indexing into database %s began", *end,
				extent.HistoryFloor, s.db.Address()),
			Do: "correct --ledger-url or --database-url: this is not the ledger that the database was written from, " +
				"or its participant was set up again from nothing, which needs a new database",
		}
	}
	return extent, err
}

func (s *Stored) compareCoverage(
	ctx context.Context, tx pgx.Tx, extent bounds.Extent, end *ledger.Offset, found func(Difference) error,
) (holes []ledger.Range, err error) {
	upTo := extent.Watermark
	if end != nil && *end < upTo {
		upTo = *end
		stored, wanted := int64(extent.Watermark), int64(upTo)
		if err := found(alteredColumn("checkpoints", "stream "+tables.StreamUpdates, "ledger_offset", textOfNumber(&stored),
			textOfNumber(&wanted))); err != nil {
			return nil, err
		}
	}
	covered, err := bounds.Covered(ctx, s.db, tx, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	holes = covered.Missing(ledger.Range{From: extent.HistoryFloor, To: upTo})
	for _, hole := range holes {
		row := fmt.Sprintf("from_exclusive %d, to_inclusive %d", hole.From, hole.To)
		if err := found(derivedDifference(Missing, "coverage", row)); err != nil {
			return nil, err
		}
	}
	return holes, nil
}

// derivedDifference returns a difference of a row that belongs to no offset.
func derivedDifference(kind Disagreement, relation, row string) Difference {
	return Difference{Kind: kind, Relation: relation, Row: row, Derived: true}
}

func alteredColumn(relation, row, column string, stored, wanted *string) Difference {
	d := derivedDifference(Altered, relation, row)
	d.Column, d.Stored, d.Wanted = column, stored, wanted
	return d
}

func textOfNumber(n *int64) *string {
	if n == nil {
		return nil
	}
	text := strconv.FormatInt(*n, 10)
	return &text
}
