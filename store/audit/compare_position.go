package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// TransactionsStanding returns how far the transaction history has been read, and the party that operates its network;
// empty: it is not known.
func (s *Stored) TransactionsStanding(ctx context.Context) (at ledger.TransactionsPosition, networkID string,
	err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if at, err = bounds.TransactionsPosition(ctx, s.db, tx); err != nil {
			return err
		}
		networkID, err = s.db.Queries.NetworkGet(ctx, tx)
		return err
	})
	return at, networkID, err
}

// ComparePosition compares the tables of the transaction history's records with the position and with one another: that
// seq has no gaps, that each record has its rows in the tables of its kind, and that no row belongs to no record.
// Everything is read in one snapshot.
//
// step is called with what is compared next, found for each difference; if found returns an error, the comparison stops
// with it.
func (s *Stored) ComparePosition(ctx context.Context, step func(what string),
	found func(Difference) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		at, err := bounds.TransactionsPosition(ctx, s.db, tx)
		if err != nil {
			return err
		}
		for _, check := range recordChecks() {
			step("the transaction history with itself: " + check.relation)
			err := check.compare(ctx, tx, at, func(d Difference) error {
				d.Derived = true
				return found(d)
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

func (c *recordCheck) compare(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition,
	found func(Difference) error) error {
	var seq int64
	return pg.Each(ctx, tx, c.sql+" ORDER BY 1", []any{at.LastSeq}, []any{&seq}, func() error {
		return found(Difference{Kind: c.kind, Relation: c.relation, Seq: seq})
	})
}
