package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

func TestLeadershipIsOfOneAtATime(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	first := d.leadUpdates(d.store())
	require.NoError(t, first.Err())

	other := d.store()
	l, ok, err := other.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	require.Nil(t, l)
	require.Equal(t, "1", d.Row("SELECT epoch FROM indexer.leadership WHERE lease = 'updates'"), "one who did not get the lease raised the epoch")

	history := d.leadPruning(other) // a lease of its own, beside the other
	require.NoError(t, first.Start(t.Context(), "", storetest.Scope, 0, true))

	first.Close()
	second := d.leadUpdates(other)
	require.Greater(t, second.Epoch(), first.Epoch())
	status, err := other.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, second.Epoch(), status.Leader.Epoch)
	require.Equal(t, "test", status.Leader.Holder)
	require.False(t, status.Leader.Since.IsZero())
	require.NoError(t, history.Err())
}

func TestLeadershipOfACancelledTryIsFree(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.store()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok, err := s.LeadUpdates(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, ok)
	d.leadUpdates(s)
}

// Rule: a leader of the past can commit nothing, whatever it writes.
func TestLeadershipEpochIsOver(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	d := h.testDB
	l := d.started()
	ctx := t.Context()
	outcomes := everyOutcome(t, d, l)
	require.NoError(t, l.term.Partitions.Ensure(ctx, "created", slices.Values([]int64{0})))
	d.Exec("INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref) VALUES (0, 9, 'snapshot', 'a', 1)")
	d.Exec("UPDATE indexer.leadership SET epoch = epoch + 1")
	elsewhere := storetest.Tap("b")
	elsewhere.DomainID = new("sync::new")
	all := func() map[string][]string {
		return d.Dump(d.Rows("SELECT relname FROM pg_class WHERE relnamespace = 'indexer'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1")...)
	}
	before := all()
	for name, call := range map[string]func() error{
		"updates":                func() error { return l.Append(ctx, storetest.Scope, storetest.OneCreation(1, 20)) },
		"nothing":                func() error { return l.Append(ctx, storetest.Scope, []ledger.Page{{From: 1, To: 20}}) },
		"updates of a partition": func() error { return l.Append(ctx, storetest.Scope, storetest.OneCreation(5_000_000, 6_000_000)) },
		"a start":                func() error { return l.Start(ctx, "", storetest.Scope, 0, true) },
		"a snapshot":             func() error { _, err := l.BeginSnapshot(ctx, "", storetest.Scope, 20); return err },
		"no snapshot":            func() error { return l.DropSnapshot(ctx) },
		"a page of a snapshot": func() error {
			_, err := l.WriteSnapshotPage(ctx, ledger.SnapshotProgress{At: 20}, nil, ledger.SnapshotPage{})
			return err
		},
		"wanted look-ups":   func() error { _, err := l.WantedLookups(ctx, 10); return err }, // what is known can't be forgotten
		"look-ups":          func() error { return l.SaveLookups(ctx, outcomes[1:]) },
		"a look-up's names": func() error { return l.SaveLookups(ctx, outcomes[:1]) },
		"vetted packages": func() error {
			_, err := l.SaveVettedPackages(ctx, []ledger.VettedPackages{vettedOn("sync::9", 1, "p")})
			return err
		},
		"no vetted packages": func() error { _, err := l.SaveVettedPackages(ctx, nil); return err },
		"a task":             func() error { return l.RecordTask(ctx, "lookups", "") },
		"a task that failed": func() error { return l.RecordTask(ctx, "lookups", "failed") },
		"a package":          func() error { return l.SavePackage(ctx, packageOf("a", "1")) },
		"no package":         func() error { return l.MissPackage(ctx, "a", "b") },
		"progress":           func() error { return l.RecordProgress(ctx, ledger.Progress{Stream: "updates"}) },
		"records": func() error {
			_, err := h.l.AppendTransactions(ctx, h.at, nil, storetest.RecordsOf([]string{"b"}))
			return err
		},
		"a record's names":    func() error { _, err := h.l.AppendTransactions(ctx, h.at, nil, []ledger.Record{elsewhere}); return err },
		"no records any more": func() error { _, err := h.l.ClearTransactions(ctx, h.at); return err },
		"a network":           func() error { return h.l.RecordNetwork(ctx, "dso::1") },
	} {
		require.ErrorIs(t, call(), ErrNotLeader, name)
	}
	require.Equal(t, before, all())
}

func TestLeadershipIsLostWithItsLock(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	select {
	case <-l.Lost():
		t.Fatal("lost at once")
	default:
	}
	d.EndLock(LeaseUpdates)
	<-l.Lost()
	require.ErrorIs(t, l.Err(), ErrNotLeader)
	require.ErrorContains(t, l.Err(), "lost the lock of lease updates")
	d.leadUpdates(d.store())
	// The first tries may meet the sessions that the successor ended.
	err := l.Append(t.Context(), storetest.Scope, storetest.OneCreation(0, 10))
	for range 5 {
		if !errors.Is(err, ErrNotLeader) {
			err = l.Append(t.Context(), storetest.Scope, storetest.OneCreation(0, 10))
		}
	}
	require.ErrorIs(t, err, ErrNotLeader)
}

// The server ends the lock session of a process that no longer pings it.
func TestLeadershipLockSessionTimesOut(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.store()
	conn, err := s.db.Connect(t.Context(), leadership.LockConfig(s.db, LeaseUpdates))
	require.NoError(t, err)
	defer pg.Close(t.Context(), conn)
	lock, ok, err := session.TryHold(t.Context(), conn, LeaseUpdates.Lead(), 5*time.Second)
	require.NoError(t, err)
	require.True(t, ok)
	var limit, name string
	require.NoError(t, lock.QueryRow(t.Context(), "SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('application_name')").Scan(&limit, &name))
	require.Equal(t, "5s", limit)
	require.Equal(t, "ledgerindexer updates lock", name)
	_, err = lock.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = 1")
	require.NoError(t, err)
	d.WaitFor("SELECT NOT EXISTS (SELECT FROM indexer.lock_holders('indexer.lead_updates'))")
	d.leadUpdates(s)
}

// The transaction that holds a lock keeps nothing in the database from being cleared away, and takes no part in
// replication.
func TestALockHoldsNothingElseUp(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.started()
	d.WaitFor(`SELECT a.state = 'idle in transaction' AND a.backend_xid IS NULL AND a.backend_xmin IS NULL AND a.application_name = 'ledgerindexer updates lock'
		FROM indexer.lock_holders('indexer.lead_updates') h JOIN pg_stat_activity a USING (pid) WHERE a.query = '-- ping'`)
}

// Who takes a lock looks nothing up in the catalog in the transaction that then holds it: an index that is being built
// concurrently meanwhile would wait for that as long as the lock is held.
func TestAnIndexIsBuiltBesideWhoTakesALock(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	s := d.store()
	d.Exec("CREATE TABLE public.indexed (n integer)")
	conn, err := s.db.Connect(ctx, leadership.LockConfig(s.db, LeaseUpdates))
	require.NoError(t, err)
	defer pg.Close(ctx, conn)
	builder, watcher := d.Connect(), d.Connect()
	// Functions, because views could not be looked up while that table is locked.
	const waits = `SELECT EXISTS (SELECT FROM pg_stat_get_activity(NULL) a JOIN pg_database d ON d.oid = a.datid
		WHERE d.datname = current_database() AND a.wait_event_type = 'Lock' AND a.wait_event = $1 AND a.query LIKE $2)`
	catalog := d.Begin("LOCK TABLE pg_catalog.pg_rewrite IN ACCESS EXCLUSIVE MODE")
	type taken struct {
		lock pgx.Tx
		ok   bool
		err  error
	}
	took, built := make(chan taken, 1), make(chan error, 1)
	go func() {
		lock, ok, err := session.TryHold(ctx, conn, LeaseUpdates.Lead(), 0)
		took <- taken{lock, ok, err}
	}()
	d.WaitOn(watcher, waits, "relation", "%lead_updates%")
	go func() {
		_, err := builder.Exec(ctx, "CREATE INDEX CONCURRENTLY indexed_n ON public.indexed (n)")
		built <- err
	}()
	d.WaitOn(watcher, waits, "virtualxid", "CREATE INDEX CONCURRENTLY%")
	require.NoError(t, catalog.Rollback(ctx))
	held := <-took
	require.NoError(t, held.err)
	require.True(t, held.ok)
	d.WaitFor("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('public.indexed_n')")
	require.NoError(t, <-built)
	require.NoError(t, held.lock.Rollback(ctx))
}

// A leader that met a database without writes in its own sessions writes as soon as the setting is corrected, in the
// same term.
func TestALeaderGivesSessionsUpThatTakeNoWrites(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	readOnly := func(now string) {
		d.Exec(fmt.Sprintf("ALTER DATABASE %q SET default_transaction_read_only = %s", d.Conn.Config().Database, now))
	}
	readOnly("on")
	l.term.Pool.Reset() // as at the end of a connection's lifetime
	require.ErrorContains(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(0, 10)), "takes no writes")
	d.Exec("SET default_transaction_read_only = off")
	readOnly("off")
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(0, 10)))
}

// A paused leader may hold a transaction open, in the middle of a batch or between two statements. Its successor ends
// the session and is not held up.
func TestLeadershipSuccessorEndsOlderSessions(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	history := d.leadPruning(d.store())
	historyTx, err := history.term.Pool.Begin(ctx)
	require.NoError(t, err)
	defer pg.Rollback(ctx, historyTx)
	_, err = queries.LeadershipHold(ctx, historyTx, dbsqlc.LeadershipHoldParams{Lease: string(LeasePruning), Epoch: history.term.Epoch()})
	require.NoError(t, err)

	idle, err := l.term.Pool.Begin(ctx)
	require.NoError(t, err)
	defer pg.Rollback(ctx, idle)
	_, err = queries.LeadershipHold(ctx, idle, dbsqlc.LeadershipHoldParams{Lease: string(LeaseUpdates), Epoch: l.term.Epoch()})
	require.NoError(t, err)
	blocker := d.Begin("LOCK TABLE indexer.unknown_elements IN SHARE MODE")
	batch := make(chan error, 1)
	go func() { batch <- l.Append(ctx, storetest.Scope, storetest.EveryKind(0)) }()
	d.WaitForLock("COPY%unknown_elements%")

	d.EndLock(LeaseUpdates)
	successor := d.leadUpdates(d.store())
	require.Error(t, <-batch)
	require.Error(t, idle.Commit(ctx))
	require.NoError(t, blocker.Rollback(ctx))
	require.Empty(t, d.Facts(0, 100))
	require.Empty(t, d.Coverage())
	require.NoError(t, successor.Append(ctx, storetest.Scope, storetest.EveryKind(0)))
	require.Equal(t, "4", d.Watermark())
	require.NoError(t, historyTx.Commit(ctx), "a session of another lease was ended")
}

// Close gives the lease up after the batch under way, which is not lost.
func TestLeadershipCloseLetsABatchEnd(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	blocker := d.Begin("LOCK TABLE indexer.unknown_elements IN SHARE MODE")
	batch, closed := make(chan error, 1), make(chan struct{})
	go func() { batch <- l.Append(ctx, storetest.Scope, storetest.EveryKind(0)) }()
	d.WaitForLock("COPY%unknown_elements%")
	go func() {
		l.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Fatal("closed while a batch was under way")
	case err := <-batch:
		t.Fatalf("the batch ended: %v", err)
	default:
	}
	require.NoError(t, blocker.Rollback(ctx))
	require.NoError(t, <-batch)
	<-closed
	require.Equal(t, "4", d.Watermark())
	require.NoError(t, l.Err(), "given up is not lost")
	d.leadUpdates(d.store())
}
