package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/amulets"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// TransactionsStanding returns how far the transaction history has been read, and the party that operates its network;
// empty: it is not known.
func (s *Stored) TransactionsStanding(ctx context.Context) (at ledger.TransactionsPosition, networkID string,
	err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if at, err = bounds.TransactionsPosition(ctx, tx); err != nil {
			return err
		}
		networkID, err = queries.NetworkGet(ctx, tx)
		return err
	})
	return at, networkID, err
}

// ComparePosition compares the tables of the transaction history's records with the position and with one another: that
// seq has no gaps, that each record has its rows in the tables of its kind, and that no row belongs to no record.
// Everything is read in one snapshot.
//
// step is called with what is compared next, found for each difference.
func (s *Stored) ComparePosition(ctx context.Context, step func(what string), found Found) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		at, err := bounds.TransactionsPosition(ctx, tx)
		if err != nil {
			return err
		}
		for _, check := range recordChecks() {
			step("the transaction history with itself: " + check.relation)
			err := check.compare(ctx, tx, at, func(d Difference) {
				d.Derived = true
				found(d)
			})
			if err != nil {
				return fmt.Errorf("compare %s with the records of the transaction history: %w", check.relation, err)
			}
		}
		return nil
	})
}

// recordCheck finds rows of a table that contradict table transactions. Its query has $1 for the last seq, and gives
// the seqs.
type recordCheck struct {
	relation string
	kind     Disagreement
	sql      string
}

// stray are the rows s of a table that are not between the first record and the last.
const stray = "s.seq < 1 OR s.seq > $1"

func recordChecks() []recordCheck {
	checks := []recordCheck{
		{"transactions", Missing, `SELECT p.seq + 1 AS seq
FROM (SELECT 0::bigint AS seq UNION ALL SELECT t.seq FROM transactions t WHERE t.seq > 0 AND t.seq < $1) p
WHERE p.seq < $1 AND NOT EXISTS (SELECT FROM transactions t WHERE t.seq = p.seq + 1)`},
	}
	for _, table := range tables.In(tables.Records) {
		checks = append(checks, recordCheck{table.Name, Extra, `SELECT s.seq FROM ` + table.Name + ` s WHERE ` +
			table.Rows(stray)})
		if table.Kind != "" {
			is := `t.seq > 0 AND t.seq <= $1 AND t.kind `
			checks = append(checks,
				recordCheck{table.Name, Missing, `SELECT t.seq FROM transactions t
WHERE ` + is + `= '` + string(table.Kind) + `' AND NOT EXISTS (SELECT FROM ` + table.Name + ` x WHERE x.seq = t.seq)`},
				recordCheck{table.Name, Extra, `SELECT t.seq FROM transactions t JOIN ` + table.Name + ` x ON x.seq = t.seq
WHERE ` + is + `<> '` + string(table.Kind) + `'`})
		}
		if table.Count == "" {
			continue
		}
		for kind, sign := range map[Disagreement]string{Missing: "<", Extra: ">"} {
			checks = append(checks, recordCheck{table.Name, kind, `SELECT coalesce(t.seq, x.seq) AS seq
FROM (SELECT * FROM transfers WHERE seq > 0 AND seq <= $1) t
FULL JOIN (SELECT i.seq, count(*) AS rows FROM ` + table.Name +
				` i WHERE i.seq > 0 AND i.seq <= $1 GROUP BY i.seq) x ON x.seq = t.seq
WHERE coalesce(x.rows, 0) ` + sign + ` coalesce(t.` + table.Count + `, 0)
  AND EXISTS (SELECT FROM transactions r WHERE r.seq = coalesce(t.seq, x.seq))`})
		}
	}
	return checks
}

func (c *recordCheck) compare(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition, found Found) error {
	var seq int64
	return pg.Each(ctx, tx, c.sql+" ORDER BY 1", []any{at.LastSeq}, []any{&seq}, func() error {
		found(Difference{Kind: c.kind, Relation: c.relation, Seq: seq})
		return nil
	})
}

// CompareRecords compares what is stored under the seqs after one with records that follow one another, each column of
// each table of the history. It makes the rows that writing them would make, as Compare does. Where no record is stored
// under a seq, one row of table transactions is missing.
//
// found is called for each difference, relation by relation. Everything is read in one snapshot.
func (s *Stored) CompareRecords(ctx context.Context, after int64, records []ledger.Record, found Found) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.compareRecords(ctx, tx, after, records, found) })
}

func (s *Stored) compareRecords(ctx context.Context, tx pgx.Tx, after int64, records []ledger.Record,
	found Found) error {
	if len(records) == 0 {
		return nil
	}
	erased, err := redacted.Read(ctx, tx)
	if err != nil {
		return err
	}
	to := after + int64(len(records))
	stored, err := queries.TransactionsSeqs(ctx, tx, dbsqlc.TransactionsSeqsParams{FromExclusive: after, ToInclusive: to})
	if err != nil {
		return fmt.Errorf("look for the records after seq %d: %w", after, err)
	}
	lacking := make(map[int64]bool, len(records))
	for seq := after + 1; seq <= to; seq++ {
		lacking[seq] = true
	}
	for _, seq := range stored {
		delete(lacking, seq)
	}
	wanted := rows.RecordNames(records)
	// A record that is missing as a whole is reported once.
	c, err := s.comparing(ctx, tx, tables.In(tables.Records), wanted, func(d Difference) {
		if d.Kind != Missing || d.Relation == "transactions" || !lacking[d.Seq] {
			found(d)
		}
	})
	if err != nil {
		return err
	}
	var rows rows.Records
	rows.AddAll(wanted, erased, after, records)
	return c.between(ctx, tables.Records, rows.Tables(), after, to)
}

// comparedAtOnce is how many updates' records are compared at once.
const comparedAtOnce = 2_000

// CompareFollowing derives the records that follow from the stored updates of a network again, and compares them with
// those that are stored. Everything is read in one snapshot.
//
// step is called with the offset up to which it has come, found for each difference.
func (s *Stored) CompareFollowing(ctx context.Context, step func(at ledger.Offset),
	found Found) (c Following, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := bounds.Read(ctx, tx)
		if err != nil {
			return err
		}
		d, err := bounds.ReadDerived(ctx, tx, &extent)
		if err != nil || !d.Any {
			return err
		}
		if c.Outdated = d.Outdated; c.Outdated {
			return nil
		}
		if c.Kept, err = bounds.RecordsKept(ctx, tx, &extent, d.At); err != nil {
			return err
		}
		after := c.Kept
		for at := extent.HistoryFloor; at < d.To; {
			updates, to, err := amulets.Window(ctx, tx, at, d.To, comparedAtOnce)
			if err != nil {
				return err
			}
			records := amulets.Records(updates)
			if err := s.compareRecords(ctx, tx, after, records, found); err != nil {
				return err
			}
			at, after, c.Records = to, after+int64(len(records)), c.Records+int64(len(records))
			step(at)
		}
		extraRecords(after, d.At.LastSeq, found)
		return nil
	})
	return c, err
}

// extraRecords reports the records after a seq, up to another one, as extra.
func extraRecords(after, to int64, found Found) {
	for seq := after + 1; seq <= to; seq++ {
		found(Difference{Kind: Extra, Relation: "transactions", Seq: seq})
	}
}

// DeriveAgain derives the records of a network's updates again, but for those whose updates were pruned: it removes
// them, and writes them anew up to the watermark. Readers see those that are written already.
func (r *Repairer) DeriveAgain(ctx context.Context, step func(at ledger.Offset)) error {
	writer := store.UpdatesWriter{Leader: r.Leader}
	err := r.repair(ctx, []session.Lease{session.LeaseUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		extent, err := bounds.Read(ctx, tx)
		if err != nil {
			return err
		}
		at, err := bounds.TransactionsPosition(ctx, tx)
		if err != nil {
			return err
		}
		_, err = writing.RemoveDerived(ctx, tx, &extent, at, writing.Repaired)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the records that follow from updates: %w", session.Refused(err))
	}
	for {
		derived, err := writer.DeriveRecords(ctx)
		if errors.Is(err, session.ErrPositionMoved) { // the daemon derives them too
			continue
		}
		if err != nil {
			return err
		}
		step(derived.To)
		if !derived.More {
			return nil
		}
	}
}

// Following is what was compared of the records that follow from the updates of a network.
type Following struct {
	Records  int64 // that were derived again, and compared
	Kept     int64 // that follow from updates that were pruned, and so were not compared
	Outdated bool  // they follow by other rules, and will be derived again: nothing was compared
}

// History writes the transaction history with the lease of repairs: a repair writes all of it again, as its writer
// does.
func (r *Repairer) History() *store.TransactionsWriter {
	return &store.TransactionsWriter{Leader: r.Leader}
}

// RestartTransactions clears the transaction history, whatever is stored of it, to be read again from the beginning.
func (r *Repairer) RestartTransactions(ctx context.Context) (err error) {
	defer session.WrapRefused(&err, "clear the transaction history, to read it again")
	return r.repair(ctx, onlyTransactions, func(ctx context.Context, tx pgx.Tx) error {
		at, err := bounds.TransactionsPosition(ctx, tx)
		if err == nil {
			err = writing.RemoveRecords(ctx, tx, at, writing.Cleared(at), nil, writing.Repaired)
		}
		return err
	})
}
