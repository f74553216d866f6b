package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// To begin or end a reading takes two or three microseconds for each stored record: minutes where there are very many.
const rereadTimeout = time.Hour

// RereadHistory begins to read the transaction history again from its beginning, because the service's order is not the
// stored one: there is no checkpoint from here on, and nothing was met again yet. What is stored stays, seqs too.
//
// Errors: as AppendTransactions.
func (l *TransactionsWriter) RereadHistory(ctx context.Context, at ledger.HistoryPosition) (ledger.HistoryPosition, error) {
	position, err := l.moveHistory(ctx, at, rereadTimeout, func(ctx context.Context, tx pgx.Tx, _ int64) (ledger.HistoryPosition, int64, error) {
		return ledger.HistoryPosition{LastSeq: at.LastSeq, Rereading: true}, at.LastSeq + 1, l.clearSightings(ctx, tx)
	})
	if err != nil {
		return at, fmt.Errorf("begin to read the transaction history again: %w", err)
	}
	return position, nil
}

// FinishReread ends what RereadHistory began. gone is how many stored records were not met again. They stay, and are
// marked (ledger.transactions.gone) until the history is read again to its end the next time; event ids are unique
// without regard to them.
//
// Errors: as AppendTransactions.
func (l *TransactionsWriter) FinishReread(ctx context.Context, at ledger.HistoryPosition) (position ledger.HistoryPosition, gone int64, err error) {
	if !at.Rereading {
		return at, 0, &ledger.Bug{What: "the transaction history is not being read again, so there is no end of that"}
	}
	position, err = l.moveHistory(ctx, at, rereadTimeout, func(ctx context.Context, tx pgx.Tx, orderedFrom int64) (ledger.HistoryPosition, int64, error) {
		var err error
		if gone, err = l.replaceGone(ctx, tx); err != nil {
			return at, 0, fmt.Errorf("find the records that were not met again: %w", err)
		}
		next := at // its marks, too: the records that were met are those that are not gone
		next.Rereading = false
		return next, orderedFrom, l.clearSightings(ctx, tx)
	})
	if err != nil {
		return at, 0, fmt.Errorf("end reading the transaction history again: %w", err)
	}
	return position, gone, nil
}

// replaceGone keeps which records were not met again, and counts them.
func (l *TransactionsWriter) replaceGone(ctx context.Context, tx pgx.Tx) (int64, error) {
	q := l.store.queries
	if err := q.HistorySightingsAnalyze(ctx, tx); err != nil {
		return 0, err
	}
	if err := q.HistoryGoneClear(ctx, tx); err != nil {
		return 0, err
	}
	return q.HistoryGoneFill(ctx, tx)
}

func (l *TransactionsWriter) clearSightings(ctx context.Context, tx pgx.Tx) error {
	if err := l.store.queries.HistorySightingsClear(ctx, tx); err != nil {
		return fmt.Errorf("forget which records were met again: %w", err)
	}
	return nil
}

// findStored gives marks the seqs of stored records with the same event id and fingerprint that were not met again yet,
// the lowest first, but those that were gone last. Of several equal ones each is given once.
func (l *TransactionsWriter) findStored(ctx context.Context, tx pgx.Tx, marks []ledger.HistoryMark) error {
	type content struct {
		eventID     string
		fingerprint int64
	}
	rows, err := l.store.queries.HistoryNotSighted(ctx, tx, eventIDs(marks))
	if err != nil {
		return fmt.Errorf("look for %d records among the stored ones: %w", len(marks), err)
	}
	stored := make(map[content][]int64, len(rows))
	for _, row := range rows {
		key := content{row.EventID, row.Fingerprint}
		stored[key] = append(stored[key], row.Seq)
	}
	for i := range marks {
		key := content{marks[i].EventID, marks[i].Fingerprint}
		if seqs := stored[key]; len(seqs) > 0 {
			marks[i].Seq, stored[key] = seqs[0], seqs[1:]
		}
	}
	return nil
}

func (l *TransactionsWriter) noteSightings(ctx context.Context, tx pgx.Tx, marks []ledger.HistoryMark) error {
	sightings := make([]dbsqlc.IndexerHistorySightings, len(marks))
	for i := range marks {
		sightings[i].Seq = marks[i].Seq
	}
	return copyRows(ctx, tx, "history_sightings", sightings)
}

// MetTransactions tells which of the event ids stand on a record that was met since the history is read again from its
// beginning; a record that was stored since was met. Where it is not read again, every stored record counts, those that
// are gone too: then it tells what HasTransactions tells. Of most new ids it knows that without asking the database, where this leader has
// stored all records; asked for few ids again and again it forgets them.
func (l *TransactionsWriter) MetTransactions(ctx context.Context, eventIDs []string) (map[string]bool, error) {
	met := map[string]bool{}
	if eventIDs = l.knownIDs.maybe(eventIDs); len(eventIDs) == 0 {
		return met, nil
	}
	rows, err := l.store.queries.TransactionsMetWithIDs(ctx, l.pool, eventIDs)
	if err != nil {
		return nil, fmt.Errorf("look for %d event ids among the records that were met: %w", len(eventIDs), err)
	}
	for _, id := range rows {
		met[id] = true
	}
	return met, nil
}
