package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/amulets"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// derivedAtOnce is how many updates of a network are looked through, in one transaction, for the records that follow
// from them.
const derivedAtOnce = 2_000

// Derived is a step of deriving records from the updates of a network.
type Derived struct {
	To      ledger.Offset // the records of all updates up to here are stored
	LastSeq int64         // of the last one
	Records int           // that the step wrote
	Newest  time.Time     // their latest date; zero: none has one
	More    bool          // there are further updates
	Why     string        // why records are derived again, by the step that began it; else empty

	wrote map[string]int // rows, by table
}

// DeriveRecords derives the records of the transaction history that follow from the next updates up to the watermark,
// and writes them with what follows from them, in one transaction. If those that are stored were derived by other
// rules, it removes them first, except those whose updates were pruned, and begins again.
//
// Errors: ErrNotLeader, ErrPositionMoved, or the database's; a *ledger.Problem where it would refuse the same again.
// After any error the outcome is unknown: call it again.
func (l *UpdatesWriter) DeriveRecords(ctx context.Context) (step Derived, err error) {
	err = l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		step, err = l.deriveRecords(ctx, tx)
		return err
	})
	if err != nil {
		return Derived{}, fmt.Errorf("derive the records of the updates after offset %d: %w", step.To, session.Refused(err))
	}
	for table, n := range step.wrote {
		l.store.db.Config.Wrote(table, n)
	}
	return step, nil
}

func (l *UpdatesWriter) deriveRecords(ctx context.Context, tx pgx.Tx) (step Derived, err error) {
	extent, err := bounds.Read(ctx, l.store.db, tx)
	if err != nil || !extent.Started {
		return step, err
	}
	d, err := bounds.ReadDerived(ctx, l.store.db, tx, &extent)
	if err != nil {
		return step, err
	}
	step.To, step.LastSeq = max(d.To, extent.HistoryFloor), d.At.LastSeq
	if d.Outdated {
		step.Why = "the rules have changed since"
	} else if d.Any && step.To >= extent.Watermark {
		return step, nil
	}
	if d.Outdated {
		step.To = extent.HistoryFloor
		if err := l.RemoveDerived(ctx, tx, &extent, d.At, writing.ReadAgain); err != nil {
			return step, err
		}
		d.At, err = bounds.TransactionsPosition(ctx, l.store.db, tx)
	} else {
		err = (&TransactionsWriter{l.Leader}).holdPosition(ctx, tx, d.At)
	}
	if err != nil {
		return step, err
	}
	if !d.Any {
		if err := l.nameNetwork(ctx, tx); err != nil {
			return step, err
		}
	}
	return step, l.writeDerived(ctx, tx, d.At, extent.Watermark, &step)
}

// writeDerived writes the records that follow from the next updates.
func (l *UpdatesWriter) writeDerived(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition,
	watermark ledger.Offset, step *Derived) error {
	updates, to, err := amulets.Window(ctx, l.store.db.Queries, tx, step.To, watermark, derivedAtOnce)
	if err != nil {
		return err
	}
	records := amulets.Records(updates)
	wanted := rows.RecordNames(records)
	if err := l.term.Resolve(ctx, wanted); err != nil {
		return err
	}
	list := rows.NewRecords()
	list.AddAll(wanted, l.term.Redacted, at.LastSeq, records)
	writer, next := TransactionsWriter{l.Leader}, at.After(records)
	if len(records) > 0 {
		if err := writer.writeRecords(ctx, tx, &list); err != nil {
			return err
		}
		if err := writer.addToBalances(ctx, tx, &list, at); err != nil {
			return err
		}
		for _, record := range records {
			if record.Date.Time.After(step.Newest) {
				step.Newest = record.Date.Time
			}
		}
	}
	step.wrote = map[string]int{}
	for _, table := range list.Tables() {
		if table.Count() > 0 {
			step.wrote[table.Name] = table.Count()
		}
	}
	list.Release()
	step.To, step.LastSeq, step.Records, step.More = to, next.LastSeq, len(records), to < watermark
	return writing.PutPosition(ctx, tx, next, &to)
}

// nameNetwork records of which network the records are: that whose updates are stored.
func (l *UpdatesWriter) nameNetwork(ctx context.Context, tx pgx.Tx) error {
	id, err := l.store.db.Queries.ParticipantGet(ctx, tx)
	if err == nil && id != "" {
		err = l.store.db.Queries.NetworkRecord(ctx, tx, id)
	}
	if err != nil {
		return fmt.Errorf("record the network of the records: %w", err)
	}
	return nil
}

// RemoveDerived removes the derived records, and what follows from them, so that they are derived again; but for those
// of updates that were pruned.
func (l *UpdatesWriter) RemoveDerived(ctx context.Context, tx pgx.Tx, extent *Extent, at ledger.TransactionsPosition,
	reason string) error {
	left, err := bounds.RecordsKept(ctx, l.store.db, tx, extent, at)
	if err != nil {
		return err
	}
	for _, table := range tables.In(tables.Records, tables.Totals) {
		if !table.OfRecords() {
			continue
		}
		if _, err := tx.Exec(ctx, table.Delete("s.seq > $1 OR s.seq <= 0"), left); err != nil {
			return fmt.Errorf("remove the rows of %s of records after seq %d: %w", table.Name, left, err)
		}
	}
	return l.recordsRemoved(ctx, tx, at, left, extent.HistoryFloor, reason)
}

// recordsRemoved moves the position of derived records back, after those beyond a seq were removed, and computes again
// what follows from the others.
func (l *UpdatesWriter) recordsRemoved(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition, left int64,
	to ledger.Offset, reason string) error {
	if err := (&TransactionsWriter{l.Leader}).holdPosition(ctx, tx, at); err != nil {
		return err
	}
	q, last := l.store.db.Queries, at.LastSeq
	at.Revision, at.LastSeq = at.Revision+1, left
	err := writing.PutPosition(ctx, tx, at, &to)
	if err == nil {
		err = q.BalancesForget(ctx, tx)
	}
	if err == nil {
		err = q.BalanceTotalsCompute(ctx, tx)
	}
	if err == nil {
		err = q.BalanceRoundsCompute(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("add up the balance changes of the records up to seq %d: %w", left, err)
	}
	return writing.NoteRewrite(ctx, tx, tables.StreamTransactions, left, last, reason)
}
