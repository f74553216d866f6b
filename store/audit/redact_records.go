package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/amulets"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/redacted"
)

// findRecords derives the records of the updates at some offsets, because what is erased can't be derived from again.
// It returns the event ids of those that say what exercises of the contracts do.
func (t *redactionTargets) findRecords(ctx context.Context, q *dbsqlc.Queries, tx pgx.Tx, updates []string,
	at []int64) (said []string, err error) {
	erased, err := redacted.Read(ctx, q, tx)
	if err != nil {
		return nil, err
	}
	erased, t.records = erased.With(t.report.Contracts, updates), map[string][]ledger.Transaction{}
	named, err := q.RedactionNoted(ctx, tx, t.report.Contracts)
	if err != nil {
		return nil, fmt.Errorf("look for noted records that name the contracts: %w", err)
	}
	for _, n := range named {
		noted, err := ledger.DecodeRecords(n.Records)
		if err != nil {
			return nil, fmt.Errorf("update %s: %w", n.UpdateID, err)
		}
		t.records[n.UpdateID] = erased.Records(&ledger.TransferUpdate{ID: n.UpdateID, Noted: noted})
	}
	slices.Sort(at)
	for _, offset := range slices.Compact(at) {
		list, err := amulets.Updates(ctx, q, tx, ledger.Offset(offset-1), ledger.Offset(offset))
		if err != nil {
			return nil, err
		}
		for i := range list {
			t.records[list[i].ID] = erased.Records(&list[i])
			said = append(said, erased.Said(&list[i])...)
		}
	}
	return said, nil
}

// noteRecords notes the records that were derived, which are what follows from their updates from now on.
func (r *Repairer) noteRecords(ctx context.Context, tx pgx.Tx, t *redactionTargets) error {
	for id, records := range t.records {
		text, err := ledger.EncodeRecords(records)
		if err == nil {
			err = r.stored.db.Queries.RedactionNoteRecords(ctx, tx, dbsqlc.RedactionNoteRecordsParams{UpdateID: id,
				Records: text})
		}
		if err != nil {
			return fmt.Errorf("note the records of update %s: %w", id, err)
		}
	}
	if len(t.records) > 0 { // earlier notes may have had more
		t.touched = append(t.touched, "redacted_records")
	}
	return nil
}
