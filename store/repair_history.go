package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// onlyHistory is for repairs of the history that leave the dictionaries alone.
var onlyHistory = []Role{RoleTransactions}

// repairHistory runs fn in a transaction that nobody else writes the roles' streams in, the history among them, and puts the
// position where fn leaves it. A writer that remembers another one, or other records in its window, reads it again.
func (r *Repairer) repairHistory(
	ctx context.Context, roles []Role, fn func(ctx context.Context, tx pgx.Tx, p *dbsqlc.HistoryPositionPutParams) error,
) error {
	return r.repair(ctx, roles, func(ctx context.Context, tx pgx.Tx) error {
		q := r.store.queries
		stored, wanted, _, err := r.store.claims(ctx, tx)
		if err != nil {
			return err
		}
		p := stored.position
		if !stored.there {
			p = wanted.position
		}
		if err := fn(ctx, tx, &p); err != nil {
			return refused(err)
		}
		p.Revision++
		if err := q.HistoryPositionPut(ctx, tx, p); err != nil {
			return fmt.Errorf("move the position in the transaction history: %w", err)
		}
		return nil
	})
}

// RewriteRecords makes what is stored under the seqs of records these records, in all tables of the history. What follows
// from them stays.
func (r *Repairer) RewriteRecords(ctx context.Context, records []ledger.NumberedRecord) error {
	if len(records) == 0 {
		return nil
	}
	err := r.repairHistory(ctx, rolesThatRemember, func(ctx context.Context, tx pgx.Tx, _ *dbsqlc.HistoryPositionPutParams) error {
		return r.rewriteRecords(ctx, tx, records)
	})
	if err != nil {
		return fmt.Errorf("write %d records of the transaction history again, from seq %d on: %w", len(records), records[0].Seq, err)
	}
	return nil
}

func (r *Repairer) rewriteRecords(ctx context.Context, tx pgx.Tx, records []ledger.NumberedRecord) error {
	wanted := recordNames(records)
	_, err := r.repairNames(ctx, tx, wanted, func(names.Numbers, votes) error { return nil })
	if err != nil {
		return err
	}
	dictionaries, err := r.store.readDictionaries(ctx, tx)
	if err != nil {
		return err
	}
	numbers, err := dictionaries.resolve(ctx, tx, wanted)
	if err != nil {
		return err
	}
	seqs := make([]int64, len(records))
	for i := range records {
		seqs[i] = records[i].Seq
	}
	for _, table := range tables.In(tables.Records) {
		if _, err := tx.Exec(ctx, `DELETE FROM `+table.SQL()+` s WHERE `+table.Rows(`s.seq = ANY ($1)`), seqs); err != nil {
			return fmt.Errorf("remove rows of %s: %w", table.Name, err)
		}
	}
	var rows rows.Records
	rows.AddNumbered(numbers, records)
	for _, table := range rows.Tables() {
		if err := copyTable(ctx, tx, table); err != nil {
			return err
		}
	}
	slices.Sort(seqs)
	compare := func(found func(ledger.Difference) error) error {
		return r.store.compareRecords(ctx, tx, records, found)
	}
	for len(seqs) > 0 {
		n := 1
		for n < len(seqs) && seqs[n] == seqs[n-1]+1 {
			n++
		}
		if err := r.reseal(ctx, tx, ledger.SealedTransactions, seqs[0]-1, seqs[n-1], compare); err != nil {
			return err
		}
		seqs = seqs[n:]
	}
	return nil
}

// AddRecords stores records that are not stored. They take the seqs that are free, from the lowest on, and then those
// behind the last one. Where that is not their place in the service's order, the order of seq is not the service's any
// more up to there. ok is false, and nothing is stored, where the history has left the revision at which they were missing:
// its writer may have stored them. It must not be repeated where its outcome is not known.
func (r *Repairer) AddRecords(ctx context.Context, revision int64, records []ledger.Transaction) (ok bool, err error) {
	err = r.repairHistory(ctx, rolesThatRemember, func(ctx context.Context, tx pgx.Tx, p *dbsqlc.HistoryPositionPutParams) error {
		if p.Revision != revision {
			return ErrPositionMoved
		}
		holes, err := r.store.queries.HistoryHoles(ctx, tx, dbsqlc.HistoryHolesParams{LastSeq: p.LastSeq, Most: int64(len(records))})
		if err != nil {
			return fmt.Errorf("look for gaps in seq: %w", err)
		}
		var free []int64
		for _, hole := range holes {
			for seq := hole.After + 1; seq < hole.Before && len(free) < len(records); seq++ {
				free = append(free, seq)
			}
		}
		for len(free) < len(records) {
			p.LastSeq++
			free = append(free, p.LastSeq)
		}
		numbered := make([]ledger.NumberedRecord, len(records))
		for i := range records {
			numbered[i] = ledger.NumberedRecord{Seq: free[i], Record: &records[i]}
		}
		if slices.Max(free) >= p.OrderedFrom {
			p.OrderedFrom = p.LastSeq + 1
		}
		return r.rewriteRecords(ctx, tx, numbered)
	})
	if errors.Is(err, ErrPositionMoved) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store %d records of the transaction history that are missing: %w", len(records), err)
	}
	return true, nil
}

// RemoveRecords removes what is stored under some seqs. The records behind them move up, so that seq has no gaps: their
// numbers were wrong by as many as stood before them; what follows from them by number moves with them. It must not be repeated
// where its outcome is not known.
func (r *Repairer) RemoveRecords(ctx context.Context, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	seqs = slices.Clone(seqs)
	slices.Sort(seqs)
	moved := func(seq int64) int64 {
		n, _ := slices.BinarySearch(seqs, seq)
		return seq - int64(n)
	}
	err := r.repairHistory(ctx, onlyHistory, func(ctx context.Context, tx pgx.Tx, p *dbsqlc.HistoryPositionPutParams) error {
		for _, table := range tables.In(tables.Records, tables.Marks) {
			// Through numbers that no row has: PostgreSQL looks at each row for itself whether its number is free.
			for _, sql := range []string{
				`DELETE FROM ` + table.SQL() + ` s WHERE ` + table.Rows(`s.seq = ANY ($1::bigint[])`),
				`UPDATE ` + table.SQL() + ` s SET seq = width_bucket(s.seq, $1::bigint[]) - s.seq WHERE ` + table.Rows(`s.seq > ($1::bigint[])[1]`),
				`UPDATE ` + table.SQL() + ` s SET seq = -s.seq WHERE ` + table.Rows(`s.seq < 0 AND $1::bigint[] IS NOT NULL`),
			} {
				if _, err := tx.Exec(ctx, sql, seqs); err != nil {
					return fmt.Errorf("remove rows of %s: %w", table.Name, err)
				}
			}
		}
		if err := r.followRecords(ctx, tx, func(group []tables.Table) bool { return group[0].OfRecords() }); err != nil {
			return err
		}
		p.WindowSeqs = slices.DeleteFunc(p.WindowSeqs, func(seq int64) bool { return slices.Contains(seqs, seq) })
		for i := range p.WindowSeqs {
			p.WindowSeqs[i] = moved(p.WindowSeqs[i])
		}
		last := p.LastSeq
		p.OrderedFrom, p.LastSeq = moved(p.OrderedFrom), moved(last+1)-1
		return r.store.unseal(ctx, tx, ledger.SealedTransactions, seqs[0]-1)
	})
	if err != nil {
		return fmt.Errorf("remove %d records of the transaction history that are stored twice, from seq %d on: %w", len(seqs), seqs[0], err)
	}
	return nil
}

// MarkGone notes that the service shows some stored records no more, and others again. The order of seq is not the
// service's up to here if one is gone.
func (r *Repairer) MarkGone(ctx context.Context, gone, shown []int64) error {
	err := r.repairHistory(ctx, onlyHistory, func(ctx context.Context, tx pgx.Tx, p *dbsqlc.HistoryPositionPutParams) error {
		if err := r.store.queries.HistoryGoneUnmark(ctx, tx, shown); err != nil {
			return err
		}
		if len(gone) == 0 {
			return nil
		}
		p.OrderedFrom = p.LastSeq + 1
		p.WindowSeqs = slices.DeleteFunc(p.WindowSeqs, func(seq int64) bool { return slices.Contains(gone, seq) })
		return r.store.queries.HistoryGoneMark(ctx, tx, gone)
	})
	if err != nil {
		return fmt.Errorf("mark %d records of the transaction history as gone, and %d as not gone: %w", len(gone), len(shown), err)
	}
	return nil
}

// RepairPosition makes what is claimed of the history follow from its records, and removes rows that belong to no record
// and records that no position claims. Records that are missing stay so.
func (r *Repairer) RepairPosition(ctx context.Context, step func(what string)) error {
	step("writing the position in the transaction history again")
	err := r.repairHistory(ctx, onlyHistory, func(ctx context.Context, tx pgx.Tx, p *dbsqlc.HistoryPositionPutParams) error {
		_, wanted, surplus, err := r.store.claims(ctx, tx)
		if err != nil {
			return err
		}
		if err := r.removeStray(ctx, tx, wanted.position.LastSeq, surplus); err != nil {
			return err
		}
		if !wanted.position.Rereading {
			if err := r.store.queries.HistoryGoneUnmark(ctx, tx, wanted.position.WindowSeqs); err != nil {
				return fmt.Errorf("forget that the last records are gone: %w", err)
			}
		}
		// Once more: what is gone, or was removed, decides which event ids are unique.
		if _, wanted, _, err = r.store.claims(ctx, tx); err != nil {
			return err
		}
		*p = wanted.position
		return r.putCheckpoint(ctx, tx, &wanted.checkpoint)
	})
	if err != nil {
		return fmt.Errorf("write the position in the transaction history again: %w", err)
	}
	return nil
}

// removeStray removes rows that belong to no record, and records outside of what is claimed.
func (r *Repairer) removeStray(ctx context.Context, tx pgx.Tx, last int64, surplus bool) error {
	_, err := tx.Exec(ctx, `DELETE FROM indexer.transactions x WHERE x.seq < 1 OR x.seq > $1`, last)
	if err != nil {
		return fmt.Errorf("remove records that the position does not claim: %w", err)
	}
	for _, table := range tables.In(tables.Records, tables.Marks) {
		if table.Name == "transactions" {
			continue
		}
		if _, err := tx.Exec(ctx, `DELETE FROM `+table.SQL()+` s WHERE `+strayRows(&table, surplus), last); err != nil {
			return fmt.Errorf("remove rows of %s that belong to no record: %w", table.Name, err)
		}
	}
	return nil
}

func (r *Repairer) putCheckpoint(ctx context.Context, tx pgx.Tx, c *historyCheckpoint) error {
	q := r.store.queries
	err := q.HistoryCheckpointsElsewhereRemove(ctx, tx, checkpointStreams)
	switch {
	case err != nil:
	case c.there:
		err = q.HistoryCheckpointPut(ctx, tx, dbsqlc.HistoryCheckpointPutParams{Stream: StreamTransactions, EventID: c.eventID})
	default:
		err = q.HistoryCheckpointRemove(ctx, tx, StreamTransactions)
	}
	if err != nil {
		return fmt.Errorf("store the checkpoint of the transaction history: %w", err)
	}
	return nil
}

// RepairNetwork records the network whose transaction history this is.
func (r *Repairer) RepairNetwork(ctx context.Context, networkID string) error {
	err := r.repairHistory(ctx, onlyHistory, func(ctx context.Context, tx pgx.Tx, _ *dbsqlc.HistoryPositionPutParams) error {
		return r.store.queries.NetworkPut(ctx, tx, networkID)
	})
	if err != nil {
		return fmt.Errorf("record network %s: %w", networkID, err)
	}
	return nil
}
