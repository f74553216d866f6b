package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"ledgerindexer/store/internal/pg"
)

// indexTimeout is how long building the indexes of a snapshot, after its last page, may take.
const indexTimeout = time.Hour

// lateIndexes are those of creation events and active contracts that are not needed before there is a watermark. A
// snapshot is written without them, and they are built when it is finished: building them once takes a fraction of the
// work of adding to them row by row.
var lateIndexes = []lateIndex{
	{"created_contract_id", "ON created USING hash (contract_id)"},
	{"created_moved", "ON created (ledger_offset) WHERE reassignment_counter > 0"},
	{"active_contracts_contract_id", "ON active_contracts USING hash (contract_id)"},
	{"active_contracts_template", "ON active_contracts (template_ref, activated_offset) INCLUDE (activated_node_id, " +
		"synchronizer_ref, stakeholders_ref)"},
	{"active_contracts_position", "ON active_contracts (position_id) INCLUDE (amount, locked, activated_offset, " +
		"activated_node_id, stakeholders_ref) WHERE position_id IS NOT NULL"},
	{"active_contracts_moved", "ON active_contracts (activated_offset) INCLUDE (activated_node_id, contract_id) WHERE " +
		"position_id IS NOT NULL AND reassignment_counter > 0"},
}

type lateIndex struct{ name, definition string }

// readerPatience is how long the beginning of a snapshot waits for readers: while it waits for one, all others wait for
// it.
const readerPatience = time.Second

// dropLateIndexes drops them, before the first rows of a snapshot. They stay, and the snapshot takes longer, if a
// session that has read the empty tables keeps a transaction open. The limit on waiting for locks holds for the rest of
// the transaction too.
func (l *UpdatesWriter) dropLateIndexes(ctx context.Context, tx pgx.Tx) error {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if err := pg.WaitAtMost(ctx, tx, readerPatience); err != nil {
			return err
		}
		for _, index := range lateIndexes {
			if _, err := tx.Exec(ctx, "DROP INDEX IF EXISTS "+index.name); err != nil {
				return fmt.Errorf("drop index %s, which is built when the snapshot is finished: %w", index.name, err)
			}
		}
		return nil
	})
	if pg.HasCode(err, pg.LockNotAvailable) {
		l.store.db.Config.Logger.WarnContext(ctx, "another session holds a transaction open in which it has read the "+
			"tables: the snapshot is written with all their indexes, which takes longer", "error", err)
		return nil
	}
	return err
}

// buildIndexes builds those of some indexes that are missing, however long that takes.
func (l *Leader) buildIndexes(ctx context.Context, tx pgx.Tx, indexes ...lateIndex) error {
	if err := queries.TimeoutsOff(ctx, tx); err != nil {
		return fmt.Errorf("switch the limits on time off: %w", err)
	}
	for _, index := range indexes {
		if _, err := tx.Exec(ctx, "CREATE INDEX IF NOT EXISTS "+index.name+" "+index.definition); err != nil {
			return fmt.Errorf("build index %s: %w", index.name, err)
		}
	}
	return nil
}

// buildMissingIndexes builds those that are missing, before a database gets its first watermark. They may be missing
// also where no snapshot is finished by its last page: where indexing begins otherwise after a snapshot that brought
// nothing, and where a repair finishes one.
func (l *Leader) buildMissingIndexes(ctx context.Context, tx pgx.Tx) error {
	return l.buildIndexes(ctx, tx, lateIndexes...)
}

// buildLateIndexes builds them at the same time, each in a transaction of its own, unless the lease is lost. No rows
// may be being written.
func (l *UpdatesWriter) buildLateIndexes(ctx context.Context, entries int64) error {
	l.store.db.Config.Logger.InfoContext(ctx, "building the snapshot's indexes", "entries", entries)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	var group errgroup.Group // one that fails does not end the others: what they build stays
	for _, index := range lateIndexes {
		group.Go(func() error {
			err := l.term.WriteWithin(ctx, indexTimeout,
				func(ctx context.Context, tx pgx.Tx) error { return l.buildIndexes(ctx, tx, index) })
			if pg.HasCode(err, pg.UniqueViolation, pg.DuplicateTable) { // an earlier try has built it
				return nil
			}
			return err
		})
	}
	return group.Wait()
}
