package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/pgcopy"
)

// Role is a writing role: at most one process has it at a time, and only it writes the role's streams.
type Role string

// The roles. The snapshot backfill takes RoleUpdates, because it lays the ground the updates stream stands on.
const (
	RoleUpdates      Role = "updates"
	RoleTransactions Role = "transactions"
	RoleHistory      Role = "history"
	RoleRepair       Role = "repair"
)

// What tells the roles' advisory locks apart. See Schemas.roleNumber.
var roleNumbers = map[Role]int32{RoleUpdates: 1, RoleTransactions: 2, RoleHistory: 3, RoleRepair: 4}

const (
	lockClass = 0x4c49 // "LI": keeps clear of other programs' advisory locks in the same database
	// Of the locks, by the roles' numbers too, in whose queue the writers of a role and repairs wait for their turn.
	turnClass = lockClass + 1

	// A leader that is paused or vanished loses its lock connection, and with it the lock, after lockIdleLimit.
	pingEvery     = time.Second
	pingTimeout   = 3 * time.Second
	lockIdleLimit = 5 * time.Second

	// How long raising the epoch waits for the transactions of sessions that were just ended.
	raiseTimeout = 10 * time.Second

	// Two write batches, one shows them, and three are for what is done beside; or four write in turn, and two are for that: what has
	// to wait for a connection holds none.
	writerConnections = 6

	// A batch takes well under a second; one that takes this long has lost its server.
	writeTimeout = 2 * time.Minute
)

// Leader is a role that this process holds, at one epoch. Its writes fail with ErrNotLeader once another process
// has raised the epoch. It is safe for concurrent use. What only the role's holder may do is among the methods of the types that
// have one: UpdatesWriter, TransactionsWriter, BackfillWriter and Repairer.
type Leader struct {
	store    *Store
	role     Role
	epoch    int64
	pool     *pgxpool.Pool // its sessions carry the role and epoch in their name
	lockConn *pgx.Conn
	stop     context.CancelFunc
	stopped  chan struct{}
	lost     chan struct{}
	lostOnce sync.Once
	lostErr  error // valid once lost is closed

	dictionary *names.Dictionary
	partitions *partitions.Set
}

// lead tries once to take the role. ok is false where another process has it.
func (s *Store) lead(ctx context.Context, role Role) (leader *Leader, ok bool, err error) {
	conn, err := s.connect(ctx, s.lockConfig(role))
	if err != nil {
		return nil, false, s.unusable(err)
	}
	defer func() {
		if leader == nil {
			pg.Close(ctx, conn)
		}
	}()
	locked, err := s.queries.LeadershipTryLock(ctx, conn, dbsqlc.LeadershipTryLockParams{Class: lockClass, RoleNumber: s.cfg.Schemas.roleNumber(role)})
	if err != nil {
		return nil, false, s.unusable(fmt.Errorf("lock role %s: %w", role, err))
	}
	if !locked {
		return nil, false, nil
	}
	epoch, err := s.raiseEpoch(ctx, conn, role)
	if err != nil {
		return nil, false, err
	}
	lockSession, err := s.queries.LeadershipLockSession(ctx, conn)
	if err != nil {
		return nil, false, fmt.Errorf("ask for the session that holds the lock of role %s: %w", role, err)
	}
	pool, err := s.writerPool(role, epoch, lockSession)
	if err != nil {
		return nil, false, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Leader{
		store: s, role: role, epoch: epoch, pool: pool, lockConn: conn,
		stop: stop, stopped: make(chan struct{}), lost: make(chan struct{}),
	}
	l.dictionary = names.New(s.queries, pool, l.write)
	l.partitions = partitions.New(s.queries, pool, l.write, s.cfg.Logger)
	go l.keepLock(watch)
	s.cfg.Logger.InfoContext(ctx, "leading", "role", string(role), "epoch", epoch)
	return l, true, nil
}

// Epoch is the term of this leader; a later leader of the role has a greater one.
func (l *Leader) Epoch() int64 { return l.epoch }

// roleNumber is that of the role's locks.
func (l *Leader) roleNumber() int32 { return l.store.cfg.Schemas.roleNumber(l.role) }

// Lost is closed when the role is lost, because its lock connection ended, or because a write found its epoch over. Err
// then says why.
func (l *Leader) Lost() <-chan struct{} { return l.lost }

// Err says why the role was lost; nil while it is held.
func (l *Leader) Err() error {
	select {
	case <-l.lost:
		return l.lostErr
	default:
		return nil
	}
}

// Close gives the role up, after the transactions under way have ended.
func (l *Leader) Close() {
	l.pool.Close()
	l.stop()
	<-l.stopped
}

func (l *Leader) keepLock(ctx context.Context) {
	defer close(l.stopped)
	defer pg.Close(ctx, l.lockConn)
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			l.unlock(ctx)
			return
		case <-ticker.C:
		}
		// Not ended by Close: that would end the connection, and the lock could not be freed over it.
		pingCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
		err := l.lockConn.Ping(pingCtx)
		cancel()
		if err != nil && ctx.Err() == nil {
			l.lose(fmt.Errorf("%w: lost the lock of role %s: %w", ErrNotLeader, l.role, err))
			return
		}
	}
}

// lose says that the role is lost, and why; the first time counts.
func (l *Leader) lose(err error) {
	l.lostOnce.Do(func() {
		l.lostErr = err
		close(l.lost)
	})
}

// unlock frees the role for the next leader before Close returns. The end of the connection would do so too, but later:
// the server notices it when it comes to it. So an error here does no harm.
func (l *Leader) unlock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	_, _ = l.store.queries.LeadershipUnlock(ctx, l.lockConn, dbsqlc.LeadershipUnlockParams{Class: lockClass, RoleNumber: l.roleNumber()})
}

func (s *Store) raiseEpoch(ctx context.Context, conn *pgx.Conn, role Role) (int64, error) {
	if _, err := s.queries.LeadershipEndOlder(ctx, conn, s.cfg.Schemas.sessionPrefix(role)); err != nil {
		return 0, fmt.Errorf("end the sessions of earlier leaders of role %s (the database user must be the one they use): %w", role, err)
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", raiseTimeout.Milliseconds())); err != nil {
		return 0, fmt.Errorf("set lock_timeout: %w", err)
	}
	if err := s.endAbandonedRepair(ctx, conn); err != nil {
		return 0, err
	}
	epoch, err := s.queries.LeadershipRaise(ctx, conn, dbsqlc.LeadershipRaiseParams{Role: string(role), Holder: &s.cfg.Holder})
	if pg.HasCode(err, pg.LockNotAvailable) {
		return 0, fmt.Errorf("a repair, or a session of an earlier leader of role %s, holds a transaction open (trying again waits for it): %w", role, err)
	}
	if err != nil {
		return 0, s.unusable(fmt.Errorf("raise the epoch of role %s: %w", role, err))
	}
	return epoch, nil
}

// endAbandonedRepair ends the transaction of a repairer that is paused or has vanished, and so has lost its lock: the writers
// would wait for it without an end. One that holds its lock is at work.
func (s *Store) endAbandonedRepair(ctx context.Context, db dbsqlc.DBTX) error {
	_, err := s.queries.LeadershipEndAbandoned(ctx, db, dbsqlc.LeadershipEndAbandonedParams{
		ApplicationNamePrefix: s.cfg.Schemas.sessionPrefix(RoleRepair), Class: lockClass, RoleNumber: s.cfg.Schemas.roleNumber(RoleRepair),
	})
	if err != nil {
		return fmt.Errorf("end the sessions of a repair that was abandoned (the database user must be the one that it uses): %w", err)
	}
	return nil
}

func (s *Store) lockConfig(role Role) *pgx.ConnConfig {
	config := s.conn.Copy()
	config.RuntimeParams["application_name"] = s.cfg.Schemas.program() + " " + string(role) + " lock"
	config.RuntimeParams["idle_session_timeout"] = fmt.Sprint(lockIdleLimit.Milliseconds())
	return config
}

func (s *Store) writerPool(role Role, epoch int64, lockSession int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	config.ConnConfig = s.conn.Copy()
	config.ConnConfig.RuntimeParams["application_name"] = s.cfg.Schemas.sessionPrefix(role) + fmt.Sprint(epoch)
	config.ConnConfig.RuntimeParams["lock_timeout"] = "30000"                        // ms; a twin in doubt is waited for, but not for ever
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "60000" // ms; frees the locks of a vanished client
	// Writers' statements are short, and those over tables that have no statistics yet look dear: compiling one takes longer
	// than running it.
	config.ConnConfig.RuntimeParams["jit"] = "off"
	if role == RoleTransactions {
		// A plan that was made while few records were stored reads all of them for each look-up of event ids; it must not be
		// kept while they grow.
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	}
	config.ConnConfig = s.settled(config.ConnConfig)
	config.MaxConns = writerConnections
	// A server that crashed, or another one in its place, may have lost its last commits (synchronous_commit = off, an asynchronous
	// replica), and so what the leader remembers of them: the numbers of names, which partitions there are. It has lost the lock's
	// session too.
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		pgcopy.RegisterArrays(conn.TypeMap())
		locked, err := s.queries.LeadershipLocked(ctx, conn, dbsqlc.LeadershipLockedParams{
			Pid: lockSession, Class: lockClass, RoleNumber: int64(s.cfg.Schemas.roleNumber(role)),
		})
		if err == nil && !locked {
			err = fmt.Errorf("role %s, epoch %d: the session that holds its lock has ended: %w", role, epoch, ErrNotLeader)
		}
		return err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return pool, nil
}

// write runs fn in a transaction that holds the leadership row at this leader's epoch until it ends.
func (l *Leader) write(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	return l.writeWithin(ctx, writeTimeout, fn)
}

// writeInTurn is write for one of several that are written at the same time and stored in their order; a turn of nil is that of one
// that is alone. Their transactions begin in this order too: else one could wait, with its transaction open, for one that can't begin,
// because a repair that has queued between them waits for the open one.
func (l *Leader) writeInTurn(ctx context.Context, turn CommitOrder, fn func(context.Context, pgx.Tx) error) error {
	if turn == nil {
		return l.write(ctx, fn)
	}
	if err := turn.Begin(ctx); err != nil {
		return err
	}
	return l.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		turn.Began()
		return fn(ctx, tx)
	})
}

func (l *Leader) writeWithin(ctx context.Context, limit time.Duration, fn func(context.Context, pgx.Tx) error) error {
	return l.transact(ctx, limit, pgx.TxOptions{}, fn)
}

func (l *Leader) transact(ctx context.Context, limit time.Duration, options pgx.TxOptions, fn func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tx, err := l.pool.BeginTx(ctx, options)
	if err != nil {
		err = l.store.unusable(fmt.Errorf("begin transaction: %w", err))
		if errors.Is(err, ErrNotLeader) {
			l.lose(err)
		}
		return err
	}
	defer pg.Rollback(ctx, tx)
	_, err = l.store.queries.LeadershipHold(ctx, tx, dbsqlc.LeadershipHoldParams{
		Role: string(l.role), Epoch: l.epoch, TurnClass: turnClass, RoleNumber: l.roleNumber(),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("role %s, epoch %d: %w", l.role, l.epoch, ErrNotLeader)
		l.lose(err) // a repair may have ended the term: the lock is still held, and has to be taken anew
		return err
	}
	if pg.HasCode(err, pg.LockNotAvailable) {
		err = errors.Join(fmt.Errorf("a repair, or a new leader, holds a transaction open (trying again waits for it): %w", err),
			l.store.endAbandonedRepair(ctx, l.store.pool))
	}
	if err != nil {
		return l.store.unusable(fmt.Errorf("hold leadership of role %s: %w", l.role, err))
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	started := time.Now()
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit (its outcome is unknown until the watermark is read again): %w", err)
	}
	l.store.cfg.Observe("commit", time.Since(started))
	return nil
}

// resolve gives names their numbers, and adds those that are new. What a batch is made of is not looked for any longer than it is
// written.
func (l *Leader) resolve(ctx context.Context, wanted names.Wanted) (names.Numbers, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return l.dictionary.Resolve(ctx, wanted)
}
