package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// The server frees the lock of an export that has vanished after exportLockIdle. One that is at work shows itself every
// exportLockPing.
const (
	exportLockPing = time.Second
	exportLockIdle = 10 * time.Second
)

// LockExport keeps other exports of this database out of a place until unlock is called. If one is at work there the
// error is a *ledger.Problem. locked ends when the lock is lost, with the reason as its cause. An export from a standby
// server does not keep out one from the primary.
func (s *Store) LockExport(ctx context.Context, place string) (locked context.Context, unlock func(), err error) {
	config := s.db.Conn.Copy()
	config.RuntimeParams["application_name"] = s.db.Config.Schemas.Program() + " export lock"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(exportLockIdle.Milliseconds(), 10)
	conn, err := s.db.Connect(ctx, config)
	if err != nil {
		return nil, nil, s.db.Unusable(err)
	}
	tx, err := s.holdExport(ctx, conn, place)
	if err != nil {
		pg.Close(ctx, conn)
		return nil, nil, err
	}
	locked, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		defer pg.Close(watch, conn)
		err := session.Keep(watch, tx, exportLockPing, nil)
		if watch.Err() == nil {
			err = fmt.Errorf("the lock of the export to %s was lost with its session: %w", place, err)
		}
		lose(err)
	}()
	return locked, func() { stop(); <-stopped }, nil
}

// holdExport takes the lock in a transaction that has neither a snapshot nor an id.
func (s *Store) holdExport(ctx context.Context, conn *pgx.Conn, place string) (pgx.Tx, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err == nil {
		err = queries.TimeoutsOff(ctx, tx)
	}
	free := false
	if err == nil {
		free, err = queries.ExportLock(ctx, tx, place)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s in database %s: %w", place, s.Address(), s.db.Unusable(err))
	}
	if !free {
		return nil, &ledger.Problem{
			What: fmt.Sprintf("another export of database %s writes to %s", s.Address(), place),
			Do:   "wait until it is done, or stop it",
		}
	}
	return tx, nil
}
