package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
)

// recordBatch is records on their way into the database.
type recordBatch struct {
	at      ledger.HistoryPosition // before them
	records []ledger.Transaction
	marks   []ledger.HistoryMark
	filter  int // the number of the one that has their event ids
	numbers names.Numbers
	rows    rows.Records // of those that are not stored already
	lastSeq int64        // behind them
}

func (l *TransactionsWriter) newRecordBatch(ctx context.Context, at ledger.HistoryPosition, records []ledger.Transaction) (*recordBatch, error) {
	wanted := names.NewWanted()
	for i := range records {
		if id := records[i].DomainID; id != nil {
			wanted.Synchronizer(*id)
		}
	}
	numbers, err := l.resolve(ctx, wanted)
	if err != nil {
		return nil, err
	}
	b := &recordBatch{
		at: at, records: records, marks: make([]ledger.HistoryMark, len(records)), filter: l.knownIDs.add(records),
		numbers: numbers, rows: rows.NewRecords(),
	}
	for i := range records {
		b.marks[i] = ledger.HistoryMark{EventID: records[i].EventID, Fingerprint: records[i].Fingerprint()}
	}
	return b, nil
}

// number gives the records that have no seq yet the next ones, and makes their rows.
func (b *recordBatch) number() {
	b.lastSeq = b.at.LastSeq
	if !b.at.Rereading { // then hardly any has one
		b.rows.Grow(b.records)
	}
	for i := range b.marks {
		if b.marks[i].Seq == 0 {
			b.lastSeq++
			b.marks[i].Seq = b.lastSeq
			b.rows.Add(b.numbers, &b.marks[i], &b.records[i])
		}
	}
}

// AppendTransactions stores records that follow the last one of the position's window in the service's order
// (interface.md, endpoint 6): their rows, what is derived from them, the checkpoint and the new position, in one
// transaction. While the history is read again, a record with the event id and fingerprint of a stored one that was not
// met since is only noted.
//
// Errors: ErrNotLeader, ErrPositionMoved, or the database's; a *ledger.Problem where it would refuse the same again.
// After any error the outcome is unknown: read HistoryPosition again.
func (l *TransactionsWriter) AppendTransactions(ctx context.Context, at ledger.HistoryPosition, records []ledger.Transaction) (ledger.HistoryPosition, error) {
	if len(records) == 0 {
		return at, nil
	}
	b, err := l.newRecordBatch(ctx, at, records)
	if err != nil {
		return at, err
	}
	position, err := l.moveHistory(ctx, at, writeTimeout, func(ctx context.Context, tx pgx.Tx, orderedFrom int64) (ledger.HistoryPosition, int64, error) {
		if at.Rereading {
			if err := l.findStored(ctx, tx, b.marks); err != nil {
				return at, 0, err
			}
		}
		b.number()
		if err := l.writeRecords(ctx, tx, b); err != nil {
			return at, 0, err
		}
		return l.settleRecords(ctx, tx, b, orderedFrom)
	})
	return l.appended(b, position, err)
}

// AppendBehind is AppendTransactions for records that are written in their turn (nil: there are no others): their rows are written
// while those before them are. at is the position that the others lead to; its window may be cut, to the last 200 records at
// least. The history must not be being read again.
func (l *TransactionsWriter) AppendBehind(
	ctx context.Context, at ledger.HistoryPosition, turn CommitOrder, records []ledger.Transaction,
) (ledger.HistoryPosition, error) {
	if turn == nil || len(records) == 0 {
		return l.AppendTransactions(ctx, at, records)
	}
	if at.Rereading {
		return at, &ledger.Bug{What: "while the transaction history is read again, it is not known what a record leads to"}
	}
	b, err := l.newRecordBatch(ctx, at, records)
	if err != nil {
		return at, err
	}
	b.number()
	position := at
	err = l.writeInTurn(ctx, turn, func(ctx context.Context, tx pgx.Tx) error {
		if !turn.First() {
			if err := l.writeRecords(ctx, tx, b); err != nil {
				return err
			}
			if err := turn.Wait(ctx); err != nil {
				return err
			}
		}
		position, err = l.moveHistoryIn(ctx, tx, at, func(ctx context.Context, tx pgx.Tx, orderedFrom int64) (ledger.HistoryPosition, int64, error) {
			if turn.First() { // not before it holds the position: its twin may be in doubt, with the same rows
				if err := l.writeRecords(ctx, tx, b); err != nil {
					return at, 0, err
				}
			}
			return l.settleRecords(ctx, tx, b, orderedFrom)
		})
		return err
	})
	return l.appended(b, position, refused(err))
}

// writeRecords writes the rows of records, and what is derived from these rows alone.
func (l *TransactionsWriter) writeRecords(ctx context.Context, tx pgx.Tx, b *recordBatch) error {
	if b.lastSeq == b.at.LastSeq {
		return nil
	}
	started := time.Now()
	for _, table := range b.rows.Tables() {
		if err := copyTable(ctx, tx, table); err != nil {
			return err
		}
	}
	if err := l.linkTransfers(ctx, tx, &b.rows); err != nil {
		return err
	}
	l.store.cfg.Observe("copy", time.Since(started))
	return nil
}

// settleRecords does what has to be done in the order of the history, and tells the position behind the records.
func (l *TransactionsWriter) settleRecords(ctx context.Context, tx pgx.Tx, b *recordBatch, orderedFrom int64) (ledger.HistoryPosition, int64, error) {
	next := b.at
	next.LastSeq = b.lastSeq
	if next.LastSeq > b.at.LastSeq {
		if err := l.addToBalances(ctx, tx, &b.rows, b.at.LastSeq, b.lastSeq); err != nil {
			return next, 0, err
		}
	}
	if b.at.Rereading {
		orderedFrom = next.LastSeq + 1
		if err := l.noteSightings(ctx, tx, b.marks); err != nil {
			return next, 0, err
		}
	}
	var err error
	next.Window, err = l.nextWindow(ctx, tx, b.at.Window, b.marks, orderedFrom)
	return next, orderedFrom, err
}

// appended tells how it ended.
func (l *TransactionsWriter) appended(b *recordBatch, position ledger.HistoryPosition, err error) (ledger.HistoryPosition, error) {
	if err != nil {
		return b.at, fmt.Errorf("write %d records of the transaction history after seq %d, from event id %s on: %w",
			len(b.records), b.at.LastSeq, b.records[0].EventID, err)
	}
	l.knownIDs.wrote(position, b.filter)
	for _, table := range b.rows.Tables() {
		if table.Count() > 0 {
			l.store.cfg.Wrote(table.Name, table.Count())
		}
	}
	b.rows.Release()
	return position, nil
}
