package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// derivedTable is a table that follows from the records of the history.
type derivedTable struct {
	relation string
	key      []string
	ofSeqs   bool   // its rows belong to records
	follows  string // a query of the rows that it should hold, with the table's columns
}

// runningTotals are what indexer.balance_totals is, worked out from all balance changes at once.
const runningTotals = `SELECT c.party COLLATE "C" AS party, c.round,
    sum(sum(c.change_to_initial_amount_as_of_round_zero)) OVER rounds AS initial_amount,
    sum(sum(c.change_to_holding_fees_rate)) OVER rounds AS holding_fees_rate
FROM indexer.balance_changes c
WHERE c.round IS NOT NULL
GROUP BY c.party COLLATE "C", c.round
WINDOW rounds AS (PARTITION BY c.party COLLATE "C" ORDER BY c.round)`

// balanceTables are all tables that follow from the records.
var balanceTables = []derivedTable{
	{"party_transfers", []string{"party", "date", "seq", "sent"}, true,
		`SELECT x.party COLLATE "C" AS party, x.date, x.seq, x.sent, x.round, x.amount, x.fee FROM indexer.transfer_parties x`},
	{"balance_totals", []string{"party", "round"}, false, runningTotals},
	{"latest_totals", []string{"party"}, false,
		`SELECT DISTINCT ON (t.party) t.party, t.round, t.initial_amount, t.holding_fees_rate FROM (` + runningTotals + `) t ORDER BY t.party, t.round DESC`},
	{"balance_rounds", []string{"only_row"}, false,
		`SELECT true AS only_row, (SELECT max(x.round) FROM indexer.transactions x WHERE x.kind <> 'unknown') AS newest, (
    SELECT min(coalesce(x.round, -9223372036854775808))
    FROM indexer.transactions x
    LEFT JOIN indexer.transfers t ON t.seq = x.seq
    WHERE x.kind = 'unknown' OR x.kind = 'transfer' AND (x.round IS NULL OR coalesce(t.balance_changes, 0) = 0)
) AS first_incomplete`},
}

// CompareBalances compares what follows from the records of the history with them: who took part in which transfer, the
// running totals of the balance changes, and the rounds that balances can be told of. PostgreSQL works all of it out once
// more; of what it finds, no more than a row at a time is held here.
//
// step is told what is compared next; found of every difference, an error of its ends the comparison.
func (s *Store) CompareBalances(ctx context.Context, step func(what string), found func(ledger.Difference) error) error {
	return s.readOnly(ctx, func(tx pgx.Tx) error {
		columns, err := s.columnsOf(ctx, tx, balanceRelations())
		if err != nil {
			return err
		}
		derived := func(d ledger.Difference) error {
			d.Derived = true
			return found(d)
		}
		for _, table := range balanceTables {
			step("what follows from the transaction history: " + table.relation)
			list := columns[table.relation]
			c := &tableComparison{table: recordedTable{relation: table.relation, columns: list}, ofSeqs: table.ofSeqs, names: new(dictionaries), found: derived}
			if err := c.keyedBy(table.key).pairs(ctx, tx, table.differing(list), []any{pgx.QueryResultFormats{pgx.TextFormatCode}}); err != nil {
				return fmt.Errorf("compare %s with what it follows from: %w", table.relation, err)
			}
		}
		return nil
	})
}

func balanceRelations() []string {
	list := make([]string, len(balanceTables))
	for i := range balanceTables {
		list[i] = balanceTables[i].relation
	}
	return list
}

// differing finds the rows that are on one side only.
func (t *derivedTable) differing(columns []column) string {
	return `WITH expected AS (` + t.exactly(columns, "("+t.follows+")") + `), stored AS (` + t.exactly(columns, t.table()) + `)
SELECT true AS expected, x.* FROM (TABLE expected EXCEPT ALL TABLE stored) x
UNION ALL
SELECT false, y.* FROM (TABLE stored EXCEPT ALL TABLE expected) y
ORDER BY ` + strings.Join(t.key, ", ")
}

// exactly selects a table's columns from rows, numbers as text, which tells 1.0 from 1.00.
func (t *derivedTable) exactly(columns []column, rows string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = "r." + c.name
		if c.typeName == "numeric" {
			list[i] += "::text AS " + c.name
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + rows + " r"
}

func (t *derivedTable) table() string { return pgx.Identifier{"indexer", t.relation}.Sanitize() }

// onKey compares the keys of two rows.
func (t *derivedTable) onKey(a, b string) string {
	list := make([]string, len(t.key))
	for i, name := range t.key {
		list[i] = a + "." + name + " = " + b + "." + name
	}
	return strings.Join(list, " AND ")
}
