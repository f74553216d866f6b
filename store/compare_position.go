package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// HistoryStanding is how far the transaction history has been read, and the party that operates its network; empty: it is not known.
// Where the position is lost it is as if all records were of one generation.
func (s *Store) HistoryStanding(ctx context.Context) (at ledger.HistoryPosition, networkID string, err error) {
	err = s.readOnly(ctx, func(tx pgx.Tx) error {
		if at, _, err = s.standing(ctx, tx); err != nil {
			return err
		}
		networkID, err = s.queries.NetworkGet(ctx, tx)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return at, networkID, err
}

// standing is the position. Where that is lost it is worked out from the records, and there is false.
func (s *Store) standing(ctx context.Context, tx pgx.Tx) (at ledger.HistoryPosition, there bool, err error) {
	at, err = s.historyPosition(ctx, tx)
	if !errors.Is(err, pgx.ErrNoRows) {
		return at, true, err
	}
	seqs, err := s.queries.HistoryEnds(ctx, tx)
	// The revision is greater than any that a writer remembers: each of its revisions stored a record, or belongs to a generation.
	return ledger.HistoryPosition{
		Revision: 2*seqs.Newest + 1, ShownAfter: seqs.Before, ShownTo: seqs.Newest, ReadAfter: seqs.Before, LastSeq: seqs.Newest,
	}, false, err
}

// ComparePosition compares what is claimed of the transaction history with its records, and the tables of the records with
// one another: that the position is there, that the checkpoint is where the records end, that seq has no gaps, that each record has
// its rows in the tables of its kind, and that no row belongs to no record. Everything is read in one snapshot.
//
// step is told what is compared next; found of every difference, an error of its ends the comparison.
func (s *Store) ComparePosition(ctx context.Context, step func(what string), found func(ledger.Difference) error) error {
	derived := func(d ledger.Difference) error {
		d.Derived = true
		return found(d)
	}
	return s.readOnly(ctx, func(tx pgx.Tx) error {
		step("the position in the transaction history")
		at, there, err := s.standing(ctx, tx)
		if err == nil && !there {
			err = derived(ledger.Difference{Kind: ledger.Missing, Relation: "history_position"})
		}
		if err == nil {
			err = s.compareHistoryCheckpoint(ctx, tx, at, derived)
		}
		if err != nil {
			return err
		}
		for _, check := range recordChecks() {
			step("the transaction history with itself: " + check.relation)
			if err := check.compare(ctx, tx, at, derived); err != nil {
				return fmt.Errorf("compare %s with the records of the transaction history: %w", check.relation, err)
			}
		}
		return nil
	})
}

// checkpointStreams are the streams that have a checkpoint.
var checkpointStreams = []string{StreamUpdates, StreamTransactions}

// compareHistoryCheckpoint compares the checkpoint with the cursor of the newest record that has it alone. Where records are missing,
// the cursor may be of one of them.
func (s *Store) compareHistoryCheckpoint(ctx context.Context, tx pgx.Tx, at ledger.HistoryPosition, found func(ledger.Difference) error) error {
	elsewhere, err := s.queries.HistoryCheckpointsElsewhere(ctx, tx, checkpointStreams)
	if err != nil {
		return fmt.Errorf("read the checkpoints: %w", err)
	}
	for _, stream := range elsewhere {
		if err := found(ledger.Difference{Kind: ledger.Extra, Relation: "checkpoints", Row: "stream " + stream}); err != nil {
			return err
		}
	}
	stored, err := s.queries.HistoryCheckpointGet(ctx, tx, StreamTransactions)
	if err != nil {
		return fmt.Errorf("read the checkpoint of the transaction history: %w", err)
	}
	const row = "stream " + StreamTransactions
	if len(stored) == 0 {
		if at.Revision == 0 {
			return nil
		}
		return found(ledger.Difference{Kind: ledger.Missing, Relation: "checkpoints", Row: row})
	}
	if at.Revision == 0 {
		return found(ledger.Difference{Kind: ledger.Extra, Relation: "checkpoints", Row: row})
	}
	wanted := stored[0].EventID
	from := max(at.ReadAfter, at.LastSeq-historyWindow)
	marks, err := s.queries.HistoryMarks(ctx, tx, dbsqlc.HistoryMarksParams{Generation: at.ReadAfter, FromExclusive: from, ToInclusive: at.LastSeq})
	if err != nil {
		return fmt.Errorf("read the last records of the transaction history: %w", err)
	}
	if int64(len(marks)) == at.LastSeq-from {
		wanted = nil
		for i := range marks {
			if marks[i].Alone {
				wanted = &marks[i].EventID
			}
		}
	}
	for column, values := range map[string][2]*string{"ledger_offset": {textOfNumber(stored[0].LedgerOffset), nil}, "event_id": {stored[0].EventID, wanted}} {
		if ledger.Quoted(values[0]) == ledger.Quoted(values[1]) {
			continue
		}
		d := ledger.Difference{Kind: ledger.Altered, Relation: "checkpoints", Row: row, Column: column, Wanted: values[1], Stored: values[0]}
		if err := found(d); err != nil {
			return err
		}
	}
	return nil
}

// recordCheck finds rows of a table that contradict table transactions. Its query has $1 and $2 for the seqs of the generation that
// is shown, and gives the seqs.
type recordCheck struct {
	relation string
	kind     ledger.Disagreement
	sql      string
}

// stray are the rows s of a table that belong to no generation.
const stray = "(s.seq <= $1 OR s.seq > $2) AND set_aside(s.seq) IS NOT TRUE"

func recordChecks() []recordCheck {
	checks := []recordCheck{
		{"transactions", ledger.Missing, `SELECT p.seq + 1 AS seq
FROM (SELECT $1::bigint AS seq UNION ALL SELECT t.seq FROM transactions t WHERE t.seq > $1 AND t.seq < $2) p
WHERE p.seq < $2 AND NOT EXISTS (SELECT FROM transactions t WHERE t.seq = p.seq + 1)`},
	}
	for _, table := range tables.In(tables.Records) {
		checks = append(checks, recordCheck{table.Name, ledger.Extra, `SELECT s.seq FROM ` + table.SQL() + ` s WHERE ` + table.Rows(stray)})
		if table.Kind != "" {
			is := `t.seq > $1 AND t.seq <= $2 AND t.kind `
			checks = append(checks,
				recordCheck{table.Name, ledger.Missing, `SELECT t.seq FROM transactions t
WHERE ` + is + `= '` + string(table.Kind) + `' AND NOT EXISTS (SELECT FROM ` + table.SQL() + ` x WHERE x.seq = t.seq)`},
				recordCheck{table.Name, ledger.Extra, `SELECT t.seq FROM transactions t JOIN ` + table.SQL() + ` x ON x.seq = t.seq
WHERE ` + is + `<> '` + string(table.Kind) + `'`})
		}
		if table.Count == "" {
			continue
		}
		for kind, sign := range map[ledger.Disagreement]string{ledger.Missing: "<", ledger.Extra: ">"} {
			checks = append(checks, recordCheck{table.Name, kind, `SELECT coalesce(t.seq, x.seq) AS seq
FROM (SELECT * FROM transfers WHERE seq > $1 AND seq <= $2) t
FULL JOIN (SELECT i.seq, count(*) AS rows FROM ` + table.SQL() + ` i WHERE i.seq > $1 AND i.seq <= $2 GROUP BY i.seq) x ON x.seq = t.seq
WHERE coalesce(x.rows, 0) ` + sign + ` coalesce(t.` + table.Count + `, 0)
  AND EXISTS (SELECT FROM transactions r WHERE r.seq = coalesce(t.seq, x.seq))`})
		}
	}
	return checks
}

func (c *recordCheck) compare(ctx context.Context, tx pgx.Tx, at ledger.HistoryPosition, found func(ledger.Difference) error) error {
	rows, err := tx.Query(ctx, c.sql+" ORDER BY 1", at.ShownAfter, at.ShownTo)
	if err != nil {
		return err
	}
	var seq int64
	_, err = pgx.ForEachRow(rows, []any{&seq}, func() error {
		return found(ledger.Difference{Kind: c.kind, Relation: c.relation, Seq: seq})
	})
	return err
}
