package audit

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/tables"
)

// CompareCoverage compares what the database holds of the updates with the ledger's end, which is nil where it is not known, looks for
// holes in it, and compares the list of partitions with those that there are. found is told of every difference; an error of its
// ends the comparison and is returned. holes are the ranges up to the watermark that are not covered: nothing but the ledger can tell
// what belongs there. Everything is read in one read-only snapshot.
//
// The end has to be one that was asked for after a watermark was seen beyond it: a daemon goes on while this compares.
//
// Checkpoint, floors and coverage themselves are compared by CompareCopies. One that is lost, and a ledger that ends before indexing
// began, are a *ledger.Problem.
func (s *Stored) CompareCoverage(ctx context.Context, end *ledger.Offset, found func(findings.Difference) error) (holes []ledger.Range, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		list, err := s.partitionDifferences(ctx, tx)
		if err != nil {
			return err
		}
		extent, err := s.extentOrLost(ctx, tx, end)
		if err != nil {
			return err
		}
		if extent.Started {
			var differences []findings.Difference
			if holes, differences, err = s.coverageDifferences(ctx, tx, extent, end); err != nil {
				return err
			}
			list = append(differences, list...)
		}
		for _, d := range list {
			if err := found(d); err != nil {
				return err
			}
		}
		return nil
	})
	return holes, err
}

// extentOrLost is how much the database holds. It is a *ledger.Problem where what says so is lost, and where the ledger ends before it.
func (s *Stored) extentOrLost(ctx context.Context, tx pgx.Tx, end *ledger.Offset) (held.Extent, error) {
	lost, err := s.db.Queries.HeldLost(ctx, tx)
	if err != nil {
		return held.Extent{}, fmt.Errorf("look for the checkpoint and the floors: %w", err)
	}
	if lost != "" {
		return held.Extent{}, &ledger.Problem{
			What: fmt.Sprintf("%s in database %s: table %s lacks the row", map[string]string{
				"checkpoints": "the checkpoint of the updates is lost", "floors": "the floors of the updates are lost",
			}[lost], s.db.Address(), lost),
			Do: fmt.Sprintf("run `indexer verify --repair`, which copies it back; where table %s_copy lacks it too, restore both rows from a "+
				"backup of the database, or index into a new one", lost),
		}
	}
	extent, err := held.Read(ctx, s.db, tx)
	if err == nil && extent.Started && end != nil && *end < extent.HistoryFloor {
		err = &ledger.Problem{
			What: fmt.Sprintf("the ledger ends at offset %d, before offset %d, where indexing into database %s began", *end, extent.HistoryFloor, s.db.Address()),
			Do: "correct --ledger-url or --database-url: this is not the ledger that the database was written from, " +
				"or its participant was set up anew, which needs a new database",
		}
	}
	return extent, err
}

func (s *Stored) coverageDifferences(
	ctx context.Context, tx pgx.Tx, extent held.Extent, end *ledger.Offset,
) (holes []ledger.Range, list []findings.Difference, err error) {
	upTo := extent.Watermark
	if end != nil && *end < upTo {
		upTo = *end
		stored, wanted := int64(extent.Watermark), int64(upTo)
		list = append(list, alteredColumn("checkpoints", "stream "+tables.StreamUpdates, "ledger_offset", textOfNumber(&stored), textOfNumber(&wanted)))
	}
	covered, err := held.Covered(ctx, s.db, tx, math.MaxInt64)
	if err != nil {
		return nil, nil, err
	}
	holes = covered.Missing(ledger.Range{From: extent.HistoryFloor, To: upTo})
	for _, hole := range holes {
		row := fmt.Sprintf("from_exclusive %d, to_inclusive %d", hole.From, hole.To)
		list = append(list, derivedDifference(findings.Missing, "coverage", row))
	}
	return holes, list, nil
}

// derivedDifference is of a row of no offset.
func derivedDifference(kind findings.Disagreement, relation, row string) findings.Difference {
	return findings.Difference{Kind: kind, Relation: relation, Row: row, Derived: true}
}

func alteredColumn(relation, row, column string, stored, wanted *string) findings.Difference {
	d := derivedDifference(findings.Altered, relation, row)
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

// unlike appends the difference of a column's values, if there is one.
func unlike(list []findings.Difference, relation, row, column string, stored, wanted *string) []findings.Difference {
	if findings.Quoted(stored) == findings.Quoted(wanted) {
		return list
	}
	return append(list, alteredColumn(relation, row, column, stored, wanted))
}

// partitionDifferences compares the list of partitions with those that there are.
func (s *Stored) partitionDifferences(ctx context.Context, tx pgx.Tx) (list []findings.Difference, err error) {
	listed, attached, err := s.partitionLists(ctx, tx)
	if err != nil {
		return nil, err
	}
	there := map[partitionKey]int64{}
	for _, p := range attached {
		there[partitionKey{p.Relation, p.FromOffset}] = p.ToOffset
	}
	for _, p := range listed {
		key := partitionKey{p.Relation, p.FromOffset}
		to, exists := there[key]
		if !exists {
			list = append(list, derivedDifference(findings.Extra, "partitions", key.String()))
			continue
		}
		list = unlike(list, "partitions", key.String(), "to_offset", textOfNumber(&p.ToOffset), textOfNumber(&to))
		delete(there, key)
	}
	for _, p := range attached {
		key := partitionKey{p.Relation, p.FromOffset}
		if _, missing := there[key]; missing {
			list = append(list, derivedDifference(findings.Missing, "partitions", key.String()))
		}
	}
	return list, nil
}

type partitionKey struct {
	relation string
	from     int64
}

func (k partitionKey) String() string {
	return fmt.Sprintf("relation %s, from_offset %d", k.relation, k.from)
}

func (s *Stored) partitionLists(ctx context.Context, tx pgx.Tx) (listed []dbsqlc.Partitions, attached []dbsqlc.PartitionsAttachedRow, err error) {
	if listed, err = s.db.Queries.PartitionList(ctx, tx); err != nil {
		return nil, nil, fmt.Errorf("read partitions: %w", err)
	}
	if attached, err = s.db.Queries.PartitionsAttached(ctx, tx); err != nil {
		return nil, nil, fmt.Errorf("look for the partitions that there are: %w", err)
	}
	return listed, attached, nil
}
