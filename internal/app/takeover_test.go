package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// process is a daemon, as a program of its own.
type process struct {
	*journal
	cmd *exec.Cmd
}

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal), "it has ended")
}

// stage is a database with its sources, and daemons that read them.
type stage struct {
	t        *testing.T
	program  string
	ledger   *sandbox.Ledger
	scan     *sandbox.Scan
	database string
	conn     *pgx.Conn // to look at the database
	env      []string
	daemons  map[int]*process // by process id
}

func newStage(t *testing.T, program string, pooled bool) *stage {
	t.Helper()
	s := &stage{t: t, program: program, ledger: sandbox.NewLedger(sandbox.Options{Seed: 71}), daemons: map[int]*process{}}
	s.ledger.Grow(100)
	s.scan = sandbox.NewScan(s.ledger, sandbox.ScanOptions{})
	s.database = throwaway.Migrated(t, migrate)
	s.conn = s.connect()
	url := s.database
	if pooled {
		url = throwaway.PgBouncer(t, s.database, throwaway.PoolSessions)
	}
	s.env = append(os.Environ(), "INDEXER_DATABASE_URL="+url, "INDEXER_LISTEN=127.0.0.1:0", "INDEXER_LOG_FORMAT=json", deltas,
		"INDEXER_LEDGER_URL="+serve(t, s.ledger, sandbox.ServerOptions{}), "INDEXER_SCAN_URL="+serveScan(t, s.scan), "INDEXER_SCAN_HISTORY=transactions")
	return s
}

func (s *stage) connect() *pgx.Conn {
	conn, err := pgx.Connect(s.t.Context(), s.database)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *stage) start() *process {
	p := &process{journal: &journal{}, cmd: exec.Command(s.program, "run")}
	p.cmd.Env, p.cmd.Stderr = s.env, p.journal
	require.NoError(s.t, p.cmd.Start())
	s.daemons[p.cmd.Process.Pid] = p
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		require.NotContains(s.t, p.journal.all(), "DATA RACE")
	})
	return p
}

// leader is the daemon that has a lease; nil: nobody has had it yet.
func (s *stage) leader(lease store.Lease) *process {
	var holder *string
	err := s.conn.QueryRow(s.t.Context(), "SELECT holder FROM indexer.leadership WHERE lease = $1", string(lease)).Scan(&holder)
	require.NoError(s.t, err)
	if holder == nil {
		return nil
	}
	var pid int
	_, err = fmt.Sscanf((*holder)[strings.LastIndex(*holder, "pid "):], "pid %d", &pid)
	require.NoError(s.t, err, *holder)
	return s.daemons[pid]
}

// standing waits until a daemon leads neither stream and says so, and is ready.
func (s *stage) standing(p *process) {
	s.t.Helper()
	eventually(s.t, "standing by", func() bool {
		status, body := readiness(s.t, p.journal)
		return status == http.StatusOK && strings.Count(body, "standing by: another process leads") == 2
	})
}

// taken waits until nobody but one of the others leads what a daemon led, and says how long that took.
func (s *stage) taken(from *process, leases ...store.Lease) time.Duration {
	s.t.Helper()
	began := time.Now()
	for _, lease := range leases {
		eventually(s.t, "taking over "+string(lease), func() bool { return s.leader(lease) != from })
	}
	return time.Since(began)
}

// followed waits until everything there is was indexed.
func (s *stage) followed() {
	s.t.Helper()
	waitFor(s.t, s.database, lastUpdate(s.ledger))
	waitForHistory(s.t, s.database, s.scan)
}

// blocked lets a daemon come to where it needs a table, does something to it there, and lets the table go.
func (s *stage) blocked(lease store.Lease, relation string, then func()) {
	s.t.Helper()
	holder := s.connect()
	tx, err := holder.Begin(s.t.Context())
	require.NoError(s.t, err)
	_, err = tx.Exec(s.t.Context(), "LOCK TABLE "+relation+" IN SHARE MODE")
	require.NoError(s.t, err)
	s.ledger.Grow(40)
	eventually(s.t, "waiting for "+relation, func() bool {
		var waits bool
		err := s.conn.QueryRow(s.t.Context(), `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE a.datname = current_database() AND NOT l.granted AND l.relation = $1::regclass AND a.application_name LIKE $2)`,
			relation, "ledgerindexer "+string(lease)+" epoch %").Scan(&waits)
		require.NoError(s.t, err)
		return waits
	})
	then()
	require.NoError(s.t, tx.Rollback(s.t.Context()))
}

// Of two daemons one leads each stream, and the other takes over when it is killed or paused, wherever in a batch it is
// then. Paused and woken it commits nothing, holds nobody up, stands by, and takes over in its turn.
func TestTheOtherDaemonTakesOver(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for sessions that the server has to end, and that takes seconds")
	var flags []string
	if brief.Race {
		flags = []string{"-race"}
	}
	program := build(t, "indexer", flags...)
	for name, c := range map[string]struct {
		signal   syscall.Signal
		lease    store.Lease
		relation string // where it waits for this one when the signal comes
		pooled   bool   // the daemons connect through PgBouncer
	}{
		"killed in a COPY":              {syscall.SIGKILL, store.LeaseUpdates, "indexer.created", false},
		"paused before the COMMIT":      {syscall.SIGSTOP, store.LeaseUpdates, "indexer.checkpoints", false},
		"paused in a COPY of a history": {syscall.SIGSTOP, store.LeaseTransactions, "indexer.transactions", false},
		"paused behind a pooler":        {syscall.SIGSTOP, store.LeaseUpdates, "indexer.created", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, program, c.pooled)
			s.start()
			eventually(s.t, "leading", func() bool { return s.leader(store.LeaseUpdates) != nil && s.leader(store.LeaseTransactions) != nil })
			s.followed()
			first := s.leader(c.lease)
			second := s.start()
			s.standing(second)

			s.blocked(c.lease, c.relation, func() { first.signal(t, c.signal) })
			t.Logf("%s: taken over after %v", name, s.taken(first, store.LeaseUpdates, store.LeaseTransactions).Round(10*time.Millisecond))
			s.ledger.Grow(40)
			s.followed()

			third := first // takes over next
			if c.signal == syscall.SIGSTOP {
				first.signal(t, syscall.SIGCONT)
			} else {
				third = s.start()
			}
			s.standing(third)
			s.ledger.Grow(40)
			s.followed()
			require.Same(t, second, s.leader(store.LeaseUpdates))

			second.signal(t, syscall.SIGKILL)
			s.taken(second, store.LeaseUpdates, store.LeaseTransactions)
			require.Same(t, third, s.leader(store.LeaseUpdates))
			s.ledger.Grow(40)
			s.followed()
			require.Empty(t, sandbox.Diff(s.ledger.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, s.ledger.End()), relations(t, s.database)))
			require.Empty(t, sandbox.Diff(s.scan.Truth(), historyRelations(t, s.database)))
		})
	}
}
