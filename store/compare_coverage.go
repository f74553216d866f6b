package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// CompareCoverage compares what the database claims to hold of the updates with itself and with the ledger's end, which is
// nil where it is not known: coverage, checkpoint, floors, scope, snapshot, and the list of partitions. What the rows
// should say, where they contradict one another, is told at agree. found is told of every difference; an error of its
// ends the comparison and is returned. holes are the ranges up to the watermark that no coverage row claims: nothing but
// the ledger can tell what belongs there. Everything is read in one read-only snapshot.
//
// The end has to be one that was asked for after a watermark was seen beyond it: a daemon goes on while this compares.
//
// What can't be told from within: when rows were written; how many entries a snapshot had, because empty ones leave no
// row; where it stood before its last page; how much was covered where a row and what it covers are both gone.
func (s *Store) CompareCoverage(ctx context.Context, end *ledger.Offset, found func(ledger.Difference) error) (holes []ledger.Range, err error) {
	err = s.readOnly(ctx, func(tx pgx.Tx) error {
		c, err := s.readClaims(ctx, tx)
		if err != nil {
			return err
		}
		a, err := s.agree(ctx, tx, c, end)
		if err != nil {
			return err
		}
		holes = a.holes
		differences := c.differences(a)
		partitions, err := s.partitionDifferences(ctx, tx)
		if err != nil {
			return err
		}
		for _, d := range append(differences, partitions...) {
			if err := found(d); err != nil {
				return err
			}
		}
		return nil
	})
	return holes, err
}

// derivedDifference is of a row of no offset.
func derivedDifference(kind ledger.Disagreement, relation, row string) ledger.Difference {
	return ledger.Difference{Kind: kind, Relation: relation, Row: row, Derived: true}
}

func alteredColumn(relation, row, column string, stored, wanted *string) ledger.Difference {
	d := derivedDifference(ledger.Altered, relation, row)
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
func unlike(list []ledger.Difference, relation, row, column string, stored, wanted *string) []ledger.Difference {
	if ledger.Quoted(stored) == ledger.Quoted(wanted) {
		return list
	}
	return append(list, alteredColumn(relation, row, column, stored, wanted))
}

func (c *claims) differences(a *agreement) []ledger.Difference {
	if !a.started {
		return nil
	}
	list := c.coverageDifferences(a)
	list = append(list, c.placeDifferences(a)...)
	list = append(list, c.scopeDifferences(a)...)
	list = append(list, c.snapshotDifferences(a)...)
	return append(list, c.fillDifferences(a)...)
}

func (c *claims) coverageDifferences(a *agreement) (list []ledger.Difference) {
	for _, hole := range a.holes {
		row := fmt.Sprintf("from_exclusive %d, to_inclusive %d", hole.From, hole.To)
		list = append(list, derivedDifference(ledger.Missing, "coverage", row))
	}
	first := map[int]coveredRange{} // the rows that stay
	for _, r := range a.coverage {
		first[r.rows[0]] = r
	}
	for i, row := range c.coverage {
		name := fmt.Sprintf("from_exclusive %d, to_inclusive %d", row.FromExclusive, row.ToInclusive)
		r, stays := first[i]
		if !stays {
			list = append(list, derivedDifference(ledger.Extra, "coverage", name))
			continue
		}
		stream := StreamUpdates
		list = unlike(list, "coverage", name, "stream", &row.Stream, &stream)
		list = unlike(list, "coverage", name, "scope", &row.Scope, &a.scope)
		list = unlike(list, "coverage", name, "from_exclusive", textOfNumber(&row.FromExclusive), textOfNumber(&r.from))
		list = unlike(list, "coverage", name, "to_inclusive", textOfNumber(&row.ToInclusive), textOfNumber(&r.to))
	}
	return list
}

// placeDifferences are those of checkpoint and floors.
func (c *claims) placeDifferences(a *agreement) (list []ledger.Difference) {
	checkpoint, floors := false, false
	for _, row := range c.checkpoints {
		name := "stream " + row.Stream
		if row.Stream != StreamUpdates {
			list = append(list, derivedDifference(ledger.Extra, "checkpoints", name))
			continue
		}
		checkpoint = true
		list = unlike(list, "checkpoints", name, "ledger_offset", textOfNumber(row.LedgerOffset), textOfNumber(&a.watermark))
		list = unlike(list, "checkpoints", name, "event_id", row.EventID, nil)
	}
	if !checkpoint {
		list = append(list, derivedDifference(ledger.Missing, "checkpoints", "stream "+StreamUpdates))
	}
	for _, row := range c.floors {
		name := "stream " + row.Stream
		if row.Stream != StreamUpdates {
			list = append(list, derivedDifference(ledger.Extra, "floors", name))
			continue
		}
		floors = true
		list = unlike(list, "floors", name, "history_floor", textOfNumber(&row.HistoryFloor), textOfNumber(&a.floor))
		list = unlike(list, "floors", name, "state_floor", textOfNumber(row.StateFloor), textOfNumber(a.stateFloor))
	}
	if !floors {
		list = append(list, derivedDifference(ledger.Missing, "floors", "stream "+StreamUpdates))
	}
	return list
}

func (c *claims) scopeDifferences(a *agreement) (list []ledger.Difference) {
	recorded := false
	for _, row := range c.scopes {
		name := "scope " + row.Scope
		hash, defined := definedHash(row.Definition)
		switch {
		case row.Scope == a.scope:
			recorded = true
			if !defined || hash != a.scope {
				stored, wanted := string(row.Definition), "the definition that this is the hash of"
				list = append(list, alteredColumn("scopes", name, "definition", &stored, &wanted))
			}
		case defined && hash == a.scope && !recorded:
			recorded = true
			list = append(list, alteredColumn("scopes", name, "scope", &row.Scope, &a.scope))
		default:
			list = append(list, derivedDifference(ledger.Extra, "scopes", name))
		}
	}
	if !recorded {
		list = append(list, derivedDifference(ledger.Missing, "scopes", "scope "+a.scope))
	}
	return list
}

func (c *claims) snapshotDifferences(a *agreement) (list []ledger.Difference) {
	kept := c.keptSnapshot(a)
	for i, row := range c.snapshots {
		name := fmt.Sprintf("snapshot_offset %d", row.SnapshotOffset)
		if i != kept {
			list = append(list, derivedDifference(ledger.Extra, "snapshots", name))
			continue
		}
		list = unlike(list, "snapshots", name, "snapshot_offset", textOfNumber(&row.SnapshotOffset), textOfNumber(&a.base))
		list = unlike(list, "snapshots", name, "scope", &row.Scope, &a.scope)
		if !row.Finished {
			wanted := "a time: indexing went on from there"
			list = append(list, alteredColumn("snapshots", name, "finished_at", nil, &wanted))
		}
	}
	if a.snapshot && kept < 0 {
		list = append(list, derivedDifference(ledger.Missing, "snapshots", fmt.Sprintf("snapshot_offset %d", a.base)))
	}
	return list
}

// fillDifferences are those of the record of what was filled in. Where that is nothing, a record does no harm.
func (c *claims) fillDifferences(a *agreement) (list []ledger.Difference) {
	switch {
	case c.fill != nil:
		return unlike(nil, "fill", "", "projected_from", textOfNumber(&c.fill.ProjectedFrom), textOfNumber(&a.base))
	case a.floor < a.base:
		return append(list, derivedDifference(ledger.Missing, "fill", ""))
	}
	return nil
}

// keptSnapshot is the snapshot that is carried; -1: none of those that are recorded.
func (c *claims) keptSnapshot(a *agreement) int {
	kept := -1
	for i, row := range c.snapshots {
		if a.snapshot && (row.SnapshotOffset == a.base || len(c.snapshots) == 1) {
			kept = i
		}
	}
	return kept
}

// partitionDifferences compares the list of partitions with those that there are.
func (s *Store) partitionDifferences(ctx context.Context, tx pgx.Tx) (list []ledger.Difference, err error) {
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
			list = append(list, derivedDifference(ledger.Extra, "partitions", key.String()))
			continue
		}
		list = unlike(list, "partitions", key.String(), "to_offset", textOfNumber(&p.ToOffset), textOfNumber(&to))
		delete(there, key)
	}
	for _, p := range attached {
		key := partitionKey{p.Relation, p.FromOffset}
		if _, missing := there[key]; missing {
			list = append(list, derivedDifference(ledger.Missing, "partitions", key.String()))
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

func (s *Store) partitionLists(ctx context.Context, tx pgx.Tx) (listed []dbsqlc.Partitions, attached []dbsqlc.PartitionsAttachedRow, err error) {
	if listed, err = s.queries.PartitionList(ctx, tx); err != nil {
		return nil, nil, fmt.Errorf("read partitions: %w", err)
	}
	if attached, err = s.queries.PartitionsAttached(ctx, tx); err != nil {
		return nil, nil, fmt.Errorf("look for the partitions that there are: %w", err)
	}
	return listed, attached, nil
}
