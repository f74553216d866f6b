package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// CompareRecords compares what is stored under the seqs after one with records that follow one another, each column of
// each table of the history. It makes the rows that writing them would make, as Compare does. Where no record is stored
// under a seq, one row of table transactions is missing.
//
// found is called for each difference, relation by relation; if it returns an error, the comparison stops with it.
// Everything is read in one snapshot.
func (s *Stored) CompareRecords(ctx context.Context, after int64, records []ledger.Transaction,
	found func(Difference) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.compareRecords(ctx, tx, after, records, found) })
}

func (s *Stored) compareRecords(ctx context.Context, tx pgx.Tx, after int64, records []ledger.Transaction,
	found func(Difference) error) error {
	if len(records) == 0 {
		return nil
	}
	wanted := rows.RecordNames(records)
	dictionaries, err := s.resolve(ctx, tx, wanted)
	if err != nil {
		return err
	}
	erased, err := redacted.Read(ctx, s.db.Queries, tx)
	if err != nil {
		return err
	}
	var rows rows.Records
	rows.AddAll(wanted, erased, after, records)
	columns, err := s.columnsOf(ctx, tx, tables.In(tables.Records))
	if err != nil {
		return err
	}
	to := after + int64(len(records))
	stored, err := s.db.Queries.TransactionsSeqs(ctx, tx, dbsqlc.TransactionsSeqsParams{FromExclusive: after,
		ToInclusive: to})
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
	// A record that is missing as a whole is reported once.
	report := func(d Difference) error {
		if d.Kind == Missing && d.Relation != "transactions" && lacking[d.Seq] {
			return nil
		}
		return found(d)
	}
	for _, list := range rows.Tables() {
		table, err := record(tx, tables.Records, list, columns[list.Name])
		if err != nil {
			return err
		}
		if err := newTableComparison(table, dictionaries, report).run(ctx, tx, after, to); err != nil {
			return fmt.Errorf("compare %s for seq %d up to %d: %w", table.Name, after+1, to, err)
		}
	}
	return nil
}
