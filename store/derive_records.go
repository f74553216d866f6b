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
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
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
	// Reads the dictionary before the transaction. It has the names of what is stored, and records have no others.
	if err := l.term.Resolve(ctx, names.NewReferences()); err != nil {
		return Derived{}, err
	}
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
	extent, err := bounds.Read(ctx, tx)
	if err != nil || !extent.Started {
		return step, err
	}
	d, err := bounds.ReadDerived(ctx, tx, &extent)
	if err != nil {
		return step, err
	}
	step.To, step.LastSeq = max(d.To, extent.HistoryFloor), d.At.LastSeq
	if d.Outdated {
		step.Why = "the rules have changed since"
	} else if d.Any && step.To >= extent.Watermark {
		return step, nil
	}
	if err := holdPosition(ctx, tx, d.At); err != nil {
		return step, err
	}
	if d.Outdated {
		step.To = extent.HistoryFloor
		if d.At, err = writing.RemoveDerived(ctx, tx, &extent, d.At, writing.ReadAgain); err != nil {
			return step, err
		}
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
	updates, to, err := amulets.Window(ctx, tx, step.To, watermark, derivedAtOnce)
	if err != nil {
		return err
	}
	records := amulets.Records(updates)
	wanted := rows.RecordNames(records)
	if err := l.term.Resolve(ctx, wanted); err != nil { // from memory
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
	id, err := queries.ParticipantGet(ctx, tx)
	if err == nil && id != "" {
		err = queries.NetworkRecord(ctx, tx, id)
	}
	if err != nil {
		return fmt.Errorf("record the network of the records: %w", err)
	}
	return nil
}
