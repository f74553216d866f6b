package audit

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// begun is a repair of a role whose transaction is open until end is called, which gives its error.
func (d *testDB) begun(r *Repairer, roles []store.Lease, last func(context.Context, pgx.Tx) error) (end func() error) {
	d.T.Helper()
	open, finish, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- r.repair(d.T.Context(), roles, func(ctx context.Context, tx pgx.Tx) error {
			close(open)
			<-finish
			return last(ctx, tx)
		})
	}()
	select {
	case <-open:
	case err := <-done:
		d.T.Fatal("the repair ended before it was at work:", err)
	}
	end = sync.OnceValue(func() error {
		close(finish)
		return <-done
	})
	d.T.Cleanup(func() { _ = end() }) // the store waits for its transactions; a test that cares has asked before
	return end
}

func nothingMore(context.Context, pgx.Tx) error { return nil }

// Whatever a repair does: who waits to seal beside it begins again, and seals what the repair has left.
func TestWhoSealsBeginsAgainAfterAnyRepair(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c")
	h.Exec("UPDATE indexer.taps SET amount = 2 WHERE seq = 2")
	end := h.begun(h.repairs(h.l.store), onlyTransactions, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE indexer.taps SET amount = 1 WHERE seq = 2"); err != nil {
			return err
		}
		return writing.Unseal(ctx, tx, tables.StreamTransactions, 0)
	})
	sealed := make(chan error, 1)
	go func() {
		_, err := h.l.SealRecords(t.Context(), 0, storetest.RecordsOf([]string{"a", "b", "c"}))
		sealed <- err
	}()
	h.WaitFor(storetest.Waiting, 1)
	require.NoError(t, end())
	require.NoError(t, <-sealed)
	require.Equal(t, "1", h.Row("SELECT count(*) FROM indexer.verifications"))
	require.Empty(t, h.damaged(h.l.store))
}

// A repair's time is when it had its turn, and not when it began to wait: what was sealed meanwhile waits to be
// compared again.
func TestARepairIsLaterThanWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	d, l, page := sealedUpdates(t)
	r := d.repairs(l.store)
	repaired := make(chan error, 1)
	err := l.term.Write(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		go func() { repaired <- r.RepairUpdates(t.Context(), storetest.Scope, page(2, 3)) }()
		d.WaitFor(storetest.Waiting, 1)
		return l.sealCompared(ctx, tx, tables.StreamUpdates, 0, 10, Comparison{})
	})
	require.NoError(t, err)
	require.NoError(t, <-repaired)
	w, err := l.store.NextWindow(t.Context(), tables.StreamUpdates, 1000, 1000, 0)
	require.NoError(t, err)
	require.Equal(t, &Window{From: 0, To: 10, Full: true, Again: true}, w)
}

// A repair waits for a grant that is under way before it looks what readers may see. Else it would remove what that
// adds.
func TestARepairWaitsForAGrant(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	r := d.repairs(l.store)
	grant := d.Begin(session.LockLists.Alone())
	repaired := make(chan error, 1)
	go func() { repaired <- r.RepairDerived(t.Context(), nil) }()
	d.WaitForLock("%turn_lists%")
	for _, statement := range []string{
		"INSERT INTO readers (reader, all_parties, history) VALUES ('somebody', false, false)", "INSERT INTO reader_parties VALUES ('somebody', 'alice')",
		"INSERT INTO reader_lists SELECT * FROM wanted_reader_lists",
	} {
		_, err := grant.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, grant.Commit(t.Context()))
	require.NoError(t, <-repaired)
	require.Equal(t, "1", d.Row("SELECT count(DISTINCT reader) FROM indexer.reader_lists"))
}

// Transactions of writers that overlap with one another without an end do not keep a repair waiting.
func TestWritersDoNotPassByARepair(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	r := d.repairs(l.store)
	order := make(chan string, 2)
	var wrote, repaired chan error
	err := l.term.Write(t.Context(), func(context.Context, pgx.Tx) error {
		repaired, wrote = make(chan error, 1), make(chan error, 1)
		go func() {
			repaired <- r.repair(t.Context(), []store.Lease{store.LeaseUpdates}, func(context.Context, pgx.Tx) error { order <- "repair"; return nil })
		}()
		d.WaitFor(storetest.Waiting, 1)
		go func() {
			wrote <- l.term.Write(t.Context(), func(context.Context, pgx.Tx) error { order <- "writer"; return nil })
		}()
		d.WaitFor(storetest.Waiting, 2)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, <-repaired)
	require.NoError(t, <-wrote)
	require.Equal(t, "repair", <-order)
}

// Of two writes in order the later one opens no transaction before the earlier one has: a repair that queues then would
// wait for it, and the earlier one, that it waits for itself, for the repair. So repairs pass before and between them,
// and both are stored.
func TestARepairPassesWritesInTurn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	s, term := l.store, l.term
	at, err := l.BeginSnapshot(t.Context(), "", storetest.Scope, 100)
	require.NoError(t, err)
	one := ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(1, 0, "a", "sync::1", 0)}}
	two := ledger.SnapshotPage{Next: storetest.Token("t2"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(2, 0, "b", "sync::1", 0)}}
	first := func(order store.CommitOrder) error {
		_, err := l.WriteSnapshotPage(t.Context(), at, order, one)
		return err
	}
	second := func(order store.CommitOrder) error {
		_, err := l.WriteSnapshotPage(t.Context(), at.After(&one), order, two)
		return err
	}
	r := d.repairs(s)
	asked, begun, stored := make(chan struct{}), make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(stored) })
	t.Cleanup(finish) // the leader waits for the later one's transaction
	wrote, repaired := make(chan error, 1), make(chan error, 1)
	go func() {
		wrote <- second(storetest.CommitOrder{
			OnBegin: func() error { close(asked); <-begun; return nil },
			OnWait: func() error {
				select {
				case <-begun:
				default:
					return errors.New("it waits for its turn with its transaction open, and the one before it has not begun")
				}
				<-stored
				return nil
			},
		})
	}()
	select {
	case <-asked:
	case err := <-wrote:
		t.Fatal(err)
	}
	require.NoError(t, r.repair(t.Context(), []store.Lease{term.Lease()}, nothingMore), "the later one has no transaction open")
	require.NoError(t, first(storetest.CommitOrder{IsFirst: true, OnBegan: func() {
		go func() { repaired <- r.repair(t.Context(), []store.Lease{term.Lease()}, nothingMore) }()
		d.WaitFor(storetest.Waiting, 1) // the earlier one has
		close(begun)
	}}))
	finish()
	require.NoError(t, <-repaired)
	require.NoError(t, <-wrote)
}

// impatient has a leader's sessions wait for locks for a moment only.
func impatient(t *testing.T, term *leadership.Term) {
	t.Helper()
	config := term.Pool.Config()
	asWriter := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := asWriter(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "SET lock_timeout = 50")
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	term.Pool.Close()
	term.Pool = pool
}

// A repair that has lost its lock, because it is paused or was cut off, holds nobody up: neither a writer nor a new
// leader. One that has its lock is waited for.
func TestAnAbandonedRepairIsEnded(t *testing.T) {
	t.Parallel()
	for name, role := range map[string]store.Lease{"a writer": store.LeaseUpdates, "a new leader": store.LeasePruning} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			s := d.store()
			l := d.leadUpdates(s)
			impatient(t, l.term)
			end := d.begun(d.repairs(d.store()), leasesThatRemember, nothingMore)
			write := func() error { return l.term.Write(t.Context(), nothingMore) }
			require.True(t, pg.HasCode(write(), pg.LockNotAvailable), "it is at work")
			d.EndLock(store.LeaseRepair)
			if role == store.LeaseUpdates {
				require.True(t, pg.HasCode(write(), pg.LockNotAvailable))
				require.NoError(t, write(), "the repair was ended")
			} else {
				d.leadPruning(s)
			}
			require.Error(t, end())
		})
	}
}
