package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// HistoryStanding is what the database claims of its transaction history.
func (s *Store) HistoryStanding(ctx context.Context) (ledger.HistoryStanding, error) {
	standing, _, err := s.FindRecords(ctx, nil, nil)
	return standing, err
}

// FindRecords tells which records are stored with one of some event ids, and which under some seqs, by seq; and what is
// claimed of the history at the same moment.
func (s *Store) FindRecords(ctx context.Context, eventIDs []string, seqs []int64) (standing ledger.HistoryStanding, records []ledger.StoredRecord, err error) {
	err = s.readOnly(ctx, func(tx pgx.Tx) (err error) {
		if standing, err = s.historyStanding(ctx, tx); err != nil {
			return err
		}
		records, err = s.findRecords(ctx, tx, eventIDs, seqs)
		return err
	})
	return standing, records, err
}

// historyStanding reads what is claimed. Where the one row is missing nothing is claimed.
func (s *Store) historyStanding(ctx context.Context, db dbsqlc.DBTX) (ledger.HistoryStanding, error) {
	row, err := s.queries.HistoryStandingGet(ctx, db)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.HistoryStanding{OrderedFrom: 1}, nil
	}
	if err != nil {
		return ledger.HistoryStanding{}, fmt.Errorf("read how far the transaction history has been read: %w", err)
	}
	return ledger.HistoryStanding{
		Revision: row.Revision, LastSeq: row.LastSeq, OrderedFrom: row.OrderedFrom, Window: row.WindowSeqs, Rereading: row.Rereading, NetworkID: row.NetworkID,
	}, nil
}

func (s *Store) findRecords(ctx context.Context, db dbsqlc.DBTX, eventIDs []string, seqs []int64) ([]ledger.StoredRecord, error) {
	if len(eventIDs)+len(seqs) == 0 {
		return nil, nil
	}
	rows, err := s.queries.HistoryRecordsFind(ctx, db, dbsqlc.HistoryRecordsFindParams{EventIds: eventIDs, Seqs: seqs})
	if err != nil {
		return nil, fmt.Errorf("look for the records with %d event ids and %d seqs: %w", len(eventIDs), len(seqs), err)
	}
	records := make([]ledger.StoredRecord, len(rows))
	for i, row := range rows {
		records[i] = ledger.StoredRecord{Seq: row.Seq, EventID: row.EventID, Fingerprint: row.Fingerprint, Gone: row.Gone}
	}
	return records, nil
}
