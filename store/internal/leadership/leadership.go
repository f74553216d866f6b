// Package leadership gives a process a lease, and lets it write only as long as it has the lease. A transaction of its
// own holds the lease's lock, and each transaction that writes holds the lease's row, at its epoch. Nothing is renewed:
// the lock's session is pinged.
package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/pgcopy"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/session"
)

var queries = dbsqlc.New()

// How soon a leader that fell silent loses its lease, and how long waiting for it takes.
const (
	// A leader that is paused or vanished loses its lock connection, and with it the lock, after lockIdleLimit.
	pingEvery     = time.Second
	lockIdleLimit = 5 * time.Second

	// How long raising the epoch waits for the transactions of sessions that were just ended. NoList pings the lock
	// meanwhile.
	raiseTimeout = 3 * time.Second

	// WriterConnections is the number of connections of a term, beside that of its lock. Catching up takes three (two
	// batches and a projection), writes in order four; the others are for tasks. Nothing that holds a connection waits for
	// another one.
	WriterConnections = 6

	// WriteTimeout is how long a transaction may take. A batch takes well under a second; one that takes this long has
	// lost its server.
	WriteTimeout = 2 * time.Minute
	// LongTimeout is how long a transaction may take that computes again what follows from all the facts, or copies or
	// removes many of them. That grows with the database: pruning may copy the rows of hundreds of millions of updates. A
	// server that is gone is noticed in any case.
	LongTimeout = 24 * time.Hour
)

// Term is a lease that this process holds, at one epoch. Its writes fail with session.ErrNotLeader once another process
// has raised the epoch. It is safe for concurrent use.
type Term struct {
	db      *session.Database
	lease   session.Lease
	epoch   int64
	lock    pgx.Tx // holds the lease's lock
	stop    context.CancelFunc
	stopped chan struct{}
	held    context.Context         // ends when the lease is lost; its cause says why
	lose    context.CancelCauseFunc // ends held; the first cause counts

	Pool       *pgxpool.Pool // its sessions carry the lease and epoch in their name
	Dictionary *names.Dictionary
	Partitions *partitions.Set
	// Redacted is what is not to be written. It holds as long as the term: whoever redacts ends the terms of all other
	// leases.
	Redacted *redacted.Set
}

// Take tries once to take the lease. ok is false if another process has it.
func Take(ctx context.Context, db *session.Database, lease session.Lease) (term *Term, ok bool, err error) {
	conn, err := db.Connect(ctx, LockConfig(db, lease))
	if err != nil {
		return nil, false, db.Unusable(err)
	}
	defer func() {
		if term == nil {
			pg.Close(ctx, conn)
		}
	}()
	// before the lock's transaction, which takes no snapshot
	lockSession, err := queries.LeadershipLockSession(ctx, conn)
	if err != nil {
		return nil, false, fmt.Errorf("ask for the session that is to hold the lock of lease %s: %w", lease, db.Unusable(err))
	}
	lock, locked, err := session.TryHold(ctx, conn, lease.Lead(), lockIdleLimit)
	if err != nil || !locked {
		return nil, false, db.Unusable(err)
	}
	epoch, err := raiseEpoch(ctx, db, lease)
	if err != nil {
		return nil, false, err
	}
	// after the epoch was raised: what is redacted from now on ends the term
	erased, err := redacted.Read(ctx, db.Pool)
	if err != nil {
		return nil, false, db.Unusable(err)
	}
	pool, err := writerPool(db, lease, epoch, lockSession)
	if err != nil {
		return nil, false, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	held, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &Term{
		db: db, lease: lease, epoch: epoch, Pool: pool, lock: lock,
		stop: stop, stopped: make(chan struct{}), held: held, lose: lose, Redacted: erased,
	}
	t.Dictionary = names.New(pool, t.WriteAhead)
	t.Partitions = partitions.New(pool, t.Write, db.Config.Logger, db.Config.OffsetsPerUpdate)
	go t.keepLock(watch)
	db.Config.Logger.InfoContext(ctx, "leading", "lease", string(lease), "epoch", epoch)
	return t, true, nil
}

// Lease returns the lease of the term.
func (t *Term) Lease() session.Lease { return t.lease }

// Epoch returns the number of the term; a later term of the lease has a greater one.
func (t *Term) Epoch() int64 { return t.epoch }

// Lost returns a channel that is closed when the lease is lost, because its lock connection ended, or because a write
// found its epoch over. Err then says why.
func (t *Term) Lost() <-chan struct{} { return t.held.Done() }

// Err returns why the lease was lost; nil while it is held.
func (t *Term) Err() error { return context.Cause(t.held) }

// Close gives the lease up, after the transactions under way have ended.
func (t *Term) Close() {
	t.Pool.Close()
	t.stop()
	<-t.stopped
}

func (t *Term) keepLock(ctx context.Context) {
	defer close(t.stopped)
	defer pg.Close(ctx, t.lock.Conn())
	err := session.Keep(ctx, t.lock, pingEvery, func() { t.watchEpoch(ctx) })
	if ctx.Err() == nil {
		t.lose(fmt.Errorf("%w: lost the lock of lease %s: %w", session.ErrNotLeader, t.lease, err))
	}
}

// watchEpoch marks the lease as lost where a repair has ended the term: the lock is still held, and is given up by
// Close. An error is that of a connection; each write reads the epoch itself.
func (t *Term) watchEpoch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingEvery)
	defer cancel()
	if now, err := queries.LeadershipGet(ctx, t.db.Pool, string(t.lease)); err == nil && now.Epoch != t.epoch {
		t.lose(fmt.Errorf("lease %s, epoch %d: %w", t.lease, t.epoch, session.ErrNotLeader))
	}
}

// raiseEpoch ends the terms of earlier leaders. It does so beside the transaction that holds the lock, which stays
// open.
func raiseEpoch(ctx context.Context, db *session.Database, lease session.Lease) (epoch int64, err error) {
	if _, err := queries.LeadershipEndOlder(ctx, db.Pool, db.Config.Schemas.SessionPrefix(lease)); err != nil {
		return 0, fmt.Errorf("end the sessions of earlier leaders of lease %s: %w", lease, err)
	}
	if err := endAbandonedRepair(ctx, db); err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error {
		if err := pg.WaitAtMost(ctx, tx, raiseTimeout); err != nil {
			return err
		}
		epoch, err = queries.LeadershipRaise(ctx, tx, dbsqlc.LeadershipRaiseParams{Lease: string(lease),
			Holder: &db.Config.Holder})
		return err
	})
	if pg.HasCode(err, pg.LockNotAvailable) {
		return 0, fmt.Errorf("a repair, or a session of an earlier leader of lease %s, of which the database user may be "+
			"another one, holds a transaction open (trying again waits for it): %w", lease, err)
	}
	if err != nil {
		return 0, db.Unusable(fmt.Errorf("raise the epoch of lease %s: %w", lease, err))
	}
	return epoch, nil
}

// endAbandonedRepair ends the transaction of a repairer that is paused or has vanished, and so has lost its lock: the
// writers would wait for it without an end. One that holds its lock is at work.
func endAbandonedRepair(ctx context.Context, db *session.Database) (err error) {
	defer pg.Wrap(&err, "end the sessions of a repair that was abandoned")
	prefix := db.Config.Schemas.SessionPrefix(session.LeaseRepair)
	there, err := queries.LeadershipSessions(ctx, db.Pool, prefix)
	if err != nil || !there {
		return err
	}
	// so that no other process takes it meanwhile
	lock, ok, err := session.TryHold(ctx, db.Pool, session.LeaseRepair.Lead(), lockIdleLimit)
	if err != nil || !ok {
		return err
	}
	defer pg.Rollback(ctx, lock)
	_, err = queries.LeadershipEndOlder(ctx, db.Pool, prefix)
	return err
}

// LockConfig configures the connection that holds a lease's lock. Its statements leave no portal behind, which would
// keep a snapshot.
func LockConfig(db *session.Database, lease session.Lease) *pgx.ConnConfig {
	config := db.Conn.Copy()
	config.RuntimeParams["application_name"] = db.Config.Schemas.Program() + " " + string(lease) + " lock"
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return config
}

func writerPool(db *session.Database, lease session.Lease, epoch int64, lockSession int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(db.Config.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	config.ConnConfig = db.Conn.Copy()
	config.ConnConfig.RuntimeParams["application_name"] = db.Config.Schemas.SessionPrefix(lease) + fmt.Sprint(epoch)
	// ms; an earlier transaction of unknown outcome is waited for, but not for ever
	config.ConnConfig.RuntimeParams["lock_timeout"] = "30000"
	// ms; frees the locks of a vanished client
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	if lease == session.LeaseTransactions {
		// A plan that was made while few records were stored reads all of them for each look-up of event ids; it must not be
		// kept while they grow.
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	}
	config.ConnConfig = db.Settled(config.ConnConfig)
	config.MaxConns = WriterConnections
	config.PingTimeout = session.PingTimeout
	// A server that crashed, or another one in its place, may have lost its last commits (synchronous_commit = off, an
	// asynchronous replica). Then the numbers of names and the partitions that the leader remembers may be wrong. The
	// session with the lock is gone then too.
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		pgcopy.RegisterArrays(conn.TypeMap())
		locked, err := queries.LeadershipLocked(ctx, conn, dbsqlc.LeadershipLockedParams{
			Pid: lockSession, Lock: string(lease.Lead()),
		})
		if err == nil && !locked {
			err = fmt.Errorf("lease %s, epoch %d: the session that holds its lock has ended: %w", lease, epoch,
				session.ErrNotLeader)
		}
		return err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return pool, nil
}

// Write runs fn in a transaction that holds the leadership row at this leader's epoch until it ends.
func (t *Term) Write(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	return t.WriteWithin(ctx, WriteTimeout, fn)
}

// WriteInOrder is like Write, for one of several concurrent writes that commit in an order; a nil order means that
// there are no others. Their transactions begin in this order too. Else one could wait, with its transaction open, for
// a write before it that can't begin, because a repair waits for the open one, and new transactions wait for the
// repair.
func (t *Term) WriteInOrder(ctx context.Context, order CommitOrder, fn func(context.Context, pgx.Tx) error) error {
	if order == nil {
		return t.Write(ctx, fn)
	}
	if err := order.Begin(ctx); err != nil {
		return err
	}
	return t.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		order.Began()
		return fn(ctx, tx)
	})
}

// WriteWithin is like Write, with another time limit.
func (t *Term) WriteWithin(ctx context.Context, limit time.Duration, fn func(context.Context, pgx.Tx) error) error {
	return t.Transact(ctx, limit, "BEGIN", fn)
}

// WriteAhead is like Write, for rows that nobody uses before a later transaction of this term commits: names, and facts
// above the watermark. Its commit does not wait for the disk, because the later one does, and makes all earlier commits
// durable. A crash of the server ends the term (see writerPool).
func (t *Term) WriteAhead(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	return t.Transact(ctx, WriteTimeout, "BEGIN; SET LOCAL synchronous_commit = off", fn)
}

// Transact is like WriteWithin, for a transaction that begins with these statements.
func (t *Term) Transact(ctx context.Context, limit time.Duration, begin string,
	fn func(context.Context, pgx.Tx) error) (err error) {
	ctx, end := t.within(ctx, limit)
	defer func() {
		if pg.HasCode(err, pg.ReadOnly) { // see session.Database.Unusable: the term goes on, and so would its sessions
			t.Pool.Reset()
		}
		err = end(err)
	}()
	tx, err := t.Pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + "; " + t.lease.Turn().Shared()})
	if pg.HasCode(err, pg.LockNotAvailable) {
		return t.heldUp(ctx, err)
	}
	if err != nil {
		err = t.db.Unusable(fmt.Errorf("begin transaction: %w", err))
		if errors.Is(err, session.ErrNotLeader) {
			t.lose(err)
		}
		return err
	}
	defer pg.Rollback(ctx, tx)
	_, err = queries.LeadershipHold(ctx, tx, dbsqlc.LeadershipHoldParams{Lease: string(t.lease), Epoch: t.epoch})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("lease %s, epoch %d: %w", t.lease, t.epoch, session.ErrNotLeader)
		t.lose(err) // a repair may have ended the term: the lock is still held, and has to be taken again
		return err
	}
	if pg.HasCode(err, pg.LockNotAvailable) {
		return t.heldUp(ctx, err)
	}
	if err != nil {
		return t.db.Unusable(fmt.Errorf("hold leadership of lease %s: %w", t.lease, err))
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	started := time.Now()
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit (its outcome is unknown until the watermark is read again): %w", err)
	}
	t.db.Config.Observe(ctx, "commit", time.Since(started))
	return nil
}

// heldUp returns the error of a transaction that waited too long for its lock. It ends the session of an abandoned
// repair that holds it up.
func (t *Term) heldUp(ctx context.Context, err error) error {
	return t.db.Unusable(errors.Join(
		fmt.Errorf("hold leadership of lease %s: a repair, or a new leader, holds a transaction open (trying again waits "+
			"for it): %w", t.lease, err), endAbandonedRepair(ctx, t.db)))
}

// Resolve gives names their numbers, and adds those that are new. It takes at most WriteTimeout.
func (t *Term) Resolve(ctx context.Context, wanted *names.References) error {
	ctx, end := t.within(ctx, WriteTimeout)
	return end(t.Dictionary.Resolve(ctx, wanted))
}

// within returns a context that ends after a time, or when the lease is lost: nothing may be written then, and a server
// that is gone would never answer. end ends the context, and returns the error of the work, or that of the lost lease
// if this is why the work failed.
func (t *Term) within(ctx context.Context, limit time.Duration) (_ context.Context, end func(error) error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(t.held, cancel)
	return ctx, func(err error) error {
		stop()
		cancel()
		if lost := t.Err(); err != nil && lost != nil && !errors.Is(err, session.ErrNotLeader) {
			return fmt.Errorf("%w (%s)", lost, err.Error()) // not wrapped: the work was not cancelled by its caller
		}
		return err
	}
}

// Exclude waits for the writers of other leases, and keeps them from writing until the transaction ends. Every caller
// names leases in the order of session.Leases, so that no two wait for one another.
func (t *Term) Exclude(ctx context.Context, tx pgx.Tx, leases ...session.Lease) error {
	for _, lease := range leases {
		_, err := tx.Exec(ctx, lease.Turn().Alone())
		if err == nil {
			_, err = queries.LeadershipExclude(ctx, tx, string(lease))
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("the database has no lease %s", lease)
		}
		if err != nil {
			return fmt.Errorf("wait for the writer of lease %s: %w", lease, err)
		}
	}
	return nil
}

// EndTerms makes the leaders of the leases begin a new term, because what they remember of the dictionaries or of their
// place may be wrong after this transaction.
func (t *Term) EndTerms(ctx context.Context, tx pgx.Tx, leases ...session.Lease) error {
	for _, lease := range leases {
		if err := queries.LeadershipEndTerm(ctx, tx, string(lease)); err != nil {
			return fmt.Errorf("end the term of the leader of lease %s: %w", lease, err)
		}
	}
	return nil
}
