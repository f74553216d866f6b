package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// How much of offset checkpoints goes into one statement: a page may bring very many, and each row has all that its
// checkpoint says besides the times. The last row may exceed the bytes.
const (
	checkpointRowsAtOnce  = 5_000
	checkpointBytesAtOnce = 8 << 20
)

// keepCheckpoints keeps what the pages' checkpoints say of the synchronizers, unless something later is known of an offset.
func (l *Leader) keepCheckpoints(ctx context.Context, tx pgx.Tx, r refs, pages []ledger.Page) error {
	for rows := range checkpointStatements(latestTimes(r, pages)) {
		if err := l.upsertCheckpoints(ctx, tx, rows); err != nil {
			return err
		}
	}
	return nil
}

// checkpointKey is what a row of offset_checkpoints is of.
type checkpointKey struct {
	offset       int64
	synchronizer int32
}

// checkpointTime is what a checkpoint says of one synchronizer.
type checkpointTime struct {
	key        checkpointKey
	checkpoint *ledger.OffsetCheckpoint
	ordinal    int // in the checkpoint's list
}

func (t *checkpointTime) time() ledger.SynchronizerTime { return t.checkpoint.Times[t.ordinal] }

// latestTimes is what the pages say latest of each synchronizer at each offset, by offset and synchronizer, so that two writers
// never wait for each other's rows. Of the same time it is what is said first, as it is with what is stored.
func latestTimes(r refs, pages []ledger.Page) []checkpointTime {
	var all []checkpointTime
	place := map[checkpointKey]int{}
	for i := range pages {
		for j := range pages[i].Checkpoints {
			checkpoint := &pages[i].Checkpoints[j]
			for ordinal, t := range checkpoint.Times {
				said := checkpointTime{checkpointKey{int64(checkpoint.Offset), r.synchronizer(t.SynchronizerID)}, checkpoint, ordinal}
				at, known := place[said.key]
				switch {
				case !known:
					place[said.key] = len(all)
					all = append(all, said)
				case all[at].time().RecordTime.Time.Before(t.RecordTime.Time):
					all[at] = said
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b checkpointTime) int {
		return cmp.Or(cmp.Compare(a.key.offset, b.key.offset), cmp.Compare(a.key.synchronizer, b.key.synchronizer))
	})
	return all
}

// checkpointRows are the rows of one statement, and what of them the database can't hold as it was sent.
type checkpointRows struct {
	dbsqlc.OffsetCheckpointsUpsertParams
	ids   map[checkpointKey]string // the synchronizers
	exact map[checkpointKey][]dbsqlc.IndexerCheckpointExactPayloads
	bytes int
}

func newCheckpointRows() *checkpointRows {
	return &checkpointRows{ids: map[checkpointKey]string{}, exact: map[checkpointKey][]dbsqlc.IndexerCheckpointExactPayloads{}}
}

// checkpointStatements divides rows among statements, in their order. There is none for no rows.
func checkpointStatements(all []checkpointTime) iter.Seq[*checkpointRows] {
	return func(yield func(*checkpointRows) bool) {
		for len(all) > 0 {
			rows := newCheckpointRows()
			for len(all) > 0 && len(rows.LedgerOffsets) < checkpointRowsAtOnce && rows.bytes < checkpointBytesAtOnce {
				rows.add(all[0])
				all = all[1:]
			}
			if !yield(rows) {
				return
			}
		}
	}
}

func (c *checkpointRows) add(said checkpointTime) {
	t := said.time()
	at := place{offset: said.checkpoint.Offset}
	fields := checkpointFields(t.SynchronizerID)
	var exact exactKeeper
	extra := exact.value(at, fields[0], said.checkpoint.Extra)
	exact.time(at, fields[1], t.RecordTime)
	c.LedgerOffsets = append(c.LedgerOffsets, said.key.offset)
	c.SynchronizerRefs = append(c.SynchronizerRefs, said.key.synchronizer)
	c.RecordTimes = append(c.RecordTimes, timestamp(t.RecordTime))
	c.Ordinals = append(c.Ordinals, int32(said.ordinal))
	c.Extras = append(c.Extras, extra)
	c.ids[said.key] = t.SynchronizerID
	for i := range exact.rows {
		c.exact[said.key] = append(c.exact[said.key], dbsqlc.IndexerCheckpointExactPayloads{
			LedgerOffset: said.key.offset, Field: exact.rows[i].Field, Exact: exact.rows[i].Exact,
		})
	}
	c.bytes += len(extra)
}

// checkpointFields are the names under which checkpoint_exact_payloads keeps what a checkpoint says besides, and a time.
func checkpointFields(synchronizerID string) [2]string {
	return [2]string{"checkpoint_extra " + synchronizerID, "checkpoint_time " + synchronizerID}
}

func (l *Leader) upsertCheckpoints(ctx context.Context, tx pgx.Tx, c *checkpointRows) error {
	kept, err := l.store.queries.OffsetCheckpointsUpsert(ctx, tx, c.OffsetCheckpointsUpsertParams)
	if err != nil {
		return fmt.Errorf("keep offset checkpoints: %w", err)
	}
	if len(kept) == 0 {
		return nil
	}
	var before dbsqlc.CheckpointExactPayloadsForgetParams
	var exact []dbsqlc.IndexerCheckpointExactPayloads
	for _, row := range kept {
		key := checkpointKey{row.LedgerOffset, row.SynchronizerRef}
		for _, field := range checkpointFields(c.ids[key]) {
			before.LedgerOffsets = append(before.LedgerOffsets, row.LedgerOffset)
			before.Fields = append(before.Fields, field)
		}
		exact = append(exact, c.exact[key]...)
	}
	if err := l.store.queries.CheckpointExactPayloadsForget(ctx, tx, before); err != nil {
		return fmt.Errorf("forget the exact values of the checkpoints before: %w", err)
	}
	return copyRows(ctx, tx, "checkpoint_exact_payloads", exact)
}
