package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

// HistoryPosition is how far the transaction history has been read.
func (l *TransactionsWriter) HistoryPosition(ctx context.Context) (ledger.HistoryPosition, error) {
	var position ledger.HistoryPosition
	tx, err := l.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return position, l.store.unusable(fmt.Errorf("database %s: %w", l.store.Address(), err))
	}
	defer pg.Rollback(ctx, tx)
	row, err := l.store.queries.HistoryPositionGet(ctx, tx)
	if err != nil {
		return position, l.store.unusable(fmt.Errorf("read the position in the transaction history: %w", err))
	}
	window, err := l.historyMarks(ctx, tx, row.WindowSeqs)
	if err != nil {
		return position, err
	}
	position = ledger.HistoryPosition{Revision: row.Revision, LastSeq: row.LastSeq, Window: window, Rereading: row.Rereading}
	l.knownIDs.readAt(position)
	return position, nil
}

// moveHistory runs fn in a transaction that holds the position as the caller saw it, and puts it where fn says. orderedFrom
// is the seq from which on the order of seq is the service's.
func (l *TransactionsWriter) moveHistory(ctx context.Context, at ledger.HistoryPosition, limit time.Duration,
	fn func(ctx context.Context, tx pgx.Tx, orderedFrom int64) (next ledger.HistoryPosition, nextOrderedFrom int64, err error),
) (ledger.HistoryPosition, error) {
	var next ledger.HistoryPosition
	err := l.writeWithin(ctx, limit, func(ctx context.Context, tx pgx.Tx) (err error) {
		next, err = l.moveHistoryIn(ctx, tx, at, fn)
		return err
	})
	if err != nil {
		return at, refused(err)
	}
	return next, nil
}

// moveHistoryIn is moveHistory in a transaction.
func (l *TransactionsWriter) moveHistoryIn(ctx context.Context, tx pgx.Tx, at ledger.HistoryPosition,
	fn func(ctx context.Context, tx pgx.Tx, orderedFrom int64) (next ledger.HistoryPosition, nextOrderedFrom int64, err error),
) (ledger.HistoryPosition, error) {
	q := l.store.queries
	// A writer whose twin is in doubt waits here, and is refused if the twin committed.
	orderedFrom, err := q.HistoryPositionHold(ctx, tx, at.Revision)
	if errors.Is(err, pgx.ErrNoRows) {
		return at, ErrPositionMoved
	}
	if err != nil {
		return at, fmt.Errorf("hold the position in the transaction history: %w", err)
	}
	next, orderedFrom, err := fn(ctx, tx, orderedFrom)
	if err != nil {
		return at, err
	}
	next.Revision = at.Revision + 1
	row := dbsqlc.HistoryPositionMoveParams{
		Revision: next.Revision, LastSeq: next.LastSeq, WindowSeqs: make([]int64, len(next.Window)),
		OrderedFrom: orderedFrom, Rereading: next.Rereading,
	}
	for i := range next.Window {
		row.WindowSeqs[i] = next.Window[i].Seq
	}
	if err := q.HistoryPositionMove(ctx, tx, row); err != nil {
		return at, fmt.Errorf("move the position in the transaction history: %w", err)
	}
	checkpoint := dbsqlc.HistoryCheckpointParams{Stream: StreamTransactions}
	if i := next.Cursor(); i >= 0 {
		checkpoint.EventID = &next.Window[i].EventID
	}
	if err := q.HistoryCheckpoint(ctx, tx, checkpoint); err != nil {
		return at, fmt.Errorf("store the checkpoint of the transaction history: %w", err)
	}
	return next, nil
}

// How much of the window is kept. The service is asked for it again after each error, so it is short; it is longer where
// a shorter one would hold no unique event id, and where it could not be made longer again.
const (
	windowSize  = 200
	windowLimit = 1000
)

// nextWindow is the window behind marks that were just stored or noted. Marks whose event id stands on more than one
// record that the service shows are not unique, those that were so far among them.
func (l *TransactionsWriter) nextWindow(ctx context.Context, tx pgx.Tx, before, marks []ledger.HistoryMark, orderedFrom int64) ([]ledger.HistoryMark, error) {
	marks = marks[max(0, len(marks)-windowLimit):]
	before = before[max(0, len(before)+len(marks)-windowLimit):]
	window := slices.Concat(before, marks) // the caller may need the one before again
	var added map[string]bool
	if len(before) > 0 {
		added = make(map[string]bool, len(marks))
		for i := range marks {
			added[marks[i].EventID] = true
		}
	}
	ordered := window[0].Seq >= orderedFrom // else what came before could not be looked up
	if last := window[max(0, len(window)-windowSize):]; ordered {
		if err := l.countUnique(ctx, tx, last, added); err != nil || cursorOf(last) >= 0 {
			return last, err
		}
	}
	if err := l.countUnique(ctx, tx, window, added); err != nil {
		return nil, err
	}
	cursor := cursorOf(window)
	if cursor < 0 {
		var err error
		if window, err = l.lengthenWindow(ctx, tx, window, orderedFrom); err != nil {
			return nil, err
		}
		cursor = cursorOf(window)
	}
	if !ordered {
		return window, nil
	}
	return window[max(0, min(cursor, len(window)-windowSize)):], nil
}

// countUnique tells of marks whether they are unique, after records with some event ids were added (nil: with all that the marks
// have): of the others nothing has changed.
func (l *TransactionsWriter) countUnique(ctx context.Context, tx pgx.Tx, marks []ledger.HistoryMark, added map[string]bool) error {
	ids := make([]string, 0, len(marks))
	for i := range marks {
		if id := marks[i].EventID; added == nil || added[id] {
			ids = append(ids, id)
		}
	}
	records, err := l.store.countShown(ctx, tx, ids)
	for i := range marks {
		if n, known := records[marks[i].EventID]; known {
			marks[i].Unique = n == 1
		}
	}
	return err
}

func cursorOf(window []ledger.HistoryMark) int {
	position := ledger.HistoryPosition{Window: window}
	return position.Cursor()
}

// lengthenWindow puts what was stored before a window in front of it.
func (l *TransactionsWriter) lengthenWindow(ctx context.Context, tx pgx.Tx, window []ledger.HistoryMark, orderedFrom int64) ([]ledger.HistoryMark, error) {
	var seqs []int64
	for seq := max(orderedFrom, window[0].Seq-int64(windowLimit-len(window))); seq < window[0].Seq; seq++ {
		seqs = append(seqs, seq)
	}
	older, err := l.historyMarks(ctx, tx, seqs)
	return append(older, window...), err
}

// historyMarks reads what recognises stored records, in the order of seqs.
func (l *TransactionsWriter) historyMarks(ctx context.Context, db dbsqlc.DBTX, seqs []int64) ([]ledger.HistoryMark, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	rows, err := l.store.queries.HistoryMarks(ctx, db, seqs)
	if err != nil {
		return nil, fmt.Errorf("read %d records of the transaction history: %w", len(seqs), err)
	}
	bySeq := make(map[int64]ledger.HistoryMark, len(rows))
	for _, row := range rows {
		bySeq[row.Seq] = ledger.HistoryMark{Seq: row.Seq, EventID: row.EventID, Fingerprint: row.Fingerprint}
	}
	marks := make([]ledger.HistoryMark, len(seqs))
	for i, seq := range seqs {
		mark, ok := bySeq[seq]
		if !ok {
			return nil, fmt.Errorf("the transaction history lacks the record with seq %d, which its position names", seq)
		}
		marks[i] = mark
	}
	records, err := l.store.countShown(ctx, db, eventIDs(marks))
	if err != nil {
		return nil, err
	}
	for i := range marks {
		marks[i].Unique = records[marks[i].EventID] == 1
	}
	return marks, nil
}

// countShown tells on how many records that the service shows each event id stands, 2 standing for more: what an id is
// unique by. While the history is read again, those are the records that were met; otherwise all stored ones but those
// that were not met when it was last read again.
func (s *Store) countShown(ctx context.Context, db dbsqlc.DBTX, eventIDs []string) (map[string]int64, error) {
	rows, err := s.queries.TransactionsShownWithIDs(ctx, db, eventIDs)
	if err != nil {
		return nil, fmt.Errorf("count the records with %d event ids: %w", len(eventIDs), err)
	}
	records := make(map[string]int64, len(rows))
	for _, row := range rows {
		records[row.EventID] = row.Records
	}
	return records, nil
}

func eventIDs(marks []ledger.HistoryMark) []string {
	ids := make([]string, len(marks))
	for i := range marks {
		ids[i] = marks[i].EventID
	}
	return ids
}

// HasTransactions tells which of the event ids stand on a stored record.
func (l *TransactionsWriter) HasTransactions(ctx context.Context, eventIDs []string) (map[string]bool, error) {
	rows, err := l.store.queries.TransactionsStoredWithIDs(ctx, l.pool, eventIDs)
	if err != nil {
		return nil, fmt.Errorf("look for %d event ids: %w", len(eventIDs), err)
	}
	stored := make(map[string]bool, len(rows))
	for _, row := range rows {
		stored[row.EventID] = row.Stored
	}
	return stored, nil
}
