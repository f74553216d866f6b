package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// running is a daemon that follows the ledger until it is stopped.
type running struct {
	stop context.CancelFunc
	done chan struct{}
	err  error // valid once done is closed
}

func startIndexer(t *testing.T, cfg Indexer) *running {
	t.Helper()
	return startLogged(t, cfg, testLogger(t))
}

func startLogged(t *testing.T, cfg Indexer, logger *slog.Logger) *running {
	t.Helper()
	cfg.UntilCurrent = false
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = RunIndexer(ctx, cfg, logger)
	}()
	t.Cleanup(func() { _ = r.finish() }) // a test that cares has asked before
	return r
}

// finish stops the daemon and returns what it ended with.
func (r *running) finish() error {
	r.stop()
	<-r.done
	return r.err
}

// ended waits until the daemon has ended by itself, and returns with what.
func (r *running) ended(t *testing.T) error {
	t.Helper()
	eventually(t, "the daemon has ended", func() bool {
		select {
		case <-r.done:
			return true
		default:
			return false
		}
	})
	return r.err
}

// waitFor waits until the watermark has reached an offset.
func waitFor(t *testing.T, databaseURL string, offset int64) {
	t.Helper()
	eventuallyIn(t, databaseURL, fmt.Sprint("the watermark at offset ", offset), "coalesce(ledger.latest_offset() >= $1, false)", offset)
}

func count(t *testing.T, databaseURL, relation string) (rows int) {
	t.Helper()
	require.NoError(t, sessions(t, databaseURL).QueryRow(t.Context(), "SELECT count(*) FROM "+relation).Scan(&rows))
	return rows
}

func lastUpdate(l *sandbox.Ledger) int64 { return l.Offset(l.Len() - 1) }

// Updates that come while the daemon follows are indexed, once.
func TestFollowTheLedger(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]sandbox.ServerOptions{
		"pages": {Version: "3.6", CheckpointInterval: 20 * time.Millisecond},
		"lists": {Version: "3.4", CheckpointInterval: 20 * time.Millisecond, ListLimit: 9},
		// More often than the idle gap of its reads, and they would not end before they are full.
		"strict": {StrictInterface: true, CheckpointInterval: 400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l := sandbox.NewLedger(sandbox.Options{Seed: 21})
			l.Grow(50)
			database := throwaway.Migrated(t, migrate)
			daemon := startIndexer(t, indexerFor(database, serve(t, l, options), defaultScope()))
			for range 6 {
				waitFor(t, database, lastUpdate(l))
				l.Grow(30)
			}
			waitFor(t, database, lastUpdate(l))
			eventually(t, "an offset checkpoint of a quiet ledger", func() bool { return count(t, database, "ledger.offset_checkpoints") > 0 })
			require.NoError(t, daemon.finish())
			want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: options.Version}, l.End())
			require.Empty(t, sandbox.Diff(want, relations(t, database)))
			require.Equal(t, 1, count(t, database, "ledger.coverage"), "coverage below the watermark is one row")
		})
	}
}

// An update is indexed when it comes, and not when the participant makes another offset checkpoint: the last one, which
// stands where the long poll begins, is sent before it.
func TestAnUpdateBehindTheLastCheckpoint(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon several times")
	l := sandbox.NewLedger(sandbox.Options{Seed: 21})
	l.Grow(50)
	database := throwaway.Migrated(t, migrate)
	options := sandbox.ServerOptions{StrictInterface: true, CheckpointInterval: 24 * time.Hour}
	daemon := startIndexer(t, indexerFor(database, serve(t, l, options), defaultScope()))
	eventually(t, "an offset checkpoint", func() bool { return count(t, database, "ledger.offset_checkpoints") > 0 })
	l.Grow(1)
	waitFor(t, database, lastUpdate(l))
	require.NoError(t, daemon.finish())
}

// PostgreSQL is killed and comes back while a daemon writes both streams and another one stands by.
func TestPostgresGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for sessions that the server has to end, and that takes seconds")
	postgres := throwaway.LocalServer(t, throwaway.Options{})
	require.NoError(t, postgres.CreateDatabase(t.Context(), "ledger"))
	database := postgres.URL("ledger")
	l := sandbox.NewLedger(sandbox.Options{Seed: 23})
	l.Grow(300)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{PageLimit: 20})
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 20}), defaultScope())
	cfg.ScanURL = []string{serveScan(t, scan)}
	daemons := []*running{startIndexer(t, cfg), startIndexer(t, cfg)}
	for range 3 {
		waitFor(t, database, lastUpdate(l)/2)
		l.Grow(200)
		require.NoError(t, postgres.Kill())
		require.NoError(t, postgres.Restart(t.Context()))
		waitFor(t, database, lastUpdate(l))
	}
	waitForHistory(t, database, scan)
	for _, daemon := range daemons {
		require.NoError(t, daemon.finish())
	}
	want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, l.End())
	require.Empty(t, sandbox.Diff(want, relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}

// A participant that was pruned is refused at the beginning, and so is one that lost history.
func TestIndexerRefusals(t *testing.T) {
	t.Parallel()
	grown := func(t *testing.T) *sandbox.Ledger {
		t.Helper()
		l := sandbox.NewLedger(sandbox.Options{Seed: 25})
		l.Grow(60)
		return l
	}
	run := func(t *testing.T, database string, l *sandbox.Ledger, options sandbox.ServerOptions, change func(*Indexer)) error {
		t.Helper()
		cfg := indexerFor(database, serve(t, l, options), defaultScope())
		if change != nil {
			change(&cfg)
		}
		return RunIndexer(t.Context(), cfg, testLogger(t))
	}
	t.Run("pruned, from genesis", func(t *testing.T) {
		t.Parallel()
		l, database := grown(t), throwaway.Migrated(t, migrate)
		require.NoError(t, l.Prune(l.Offset(20)))
		for _, options := range []sandbox.ServerOptions{{}, {Version: "3.4"}, {StrictInterface: true}} {
			requireProblem(t, run(t, database, l, options, nil), "pruned", "backfill")
		}
	})
	t.Run("pruned beyond the checkpoint", func(t *testing.T) {
		t.Parallel()
		l, database := grown(t), throwaway.Migrated(t, migrate)
		require.NoError(t, run(t, database, l, sandbox.ServerOptions{}, nil))
		l.Grow(60)
		require.NoError(t, l.Prune(l.Offset(100)))
		requireProblem(t, run(t, database, l, sandbox.ServerOptions{}, nil), "pruned")
	})
	t.Run("another scope", func(t *testing.T) {
		t.Parallel()
		l := grown(t)
		database := throwaway.Migrated(t, migrate)
		require.NoError(t, run(t, database, l, sandbox.ServerOptions{}, nil))
		requireProblem(t, run(t, database, l, sandbox.ServerOptions{}, func(cfg *Indexer) { cfg.Blobs = true }), "--blobs", "new database")
	})
	t.Run("wrong token", func(t *testing.T) {
		t.Parallel()
		requireProblem(t, run(t, throwaway.Migrated(t, migrate), grown(t), sandbox.ServerOptions{Token: "right"}, nil), "token")
	})
	t.Run("no participant there", func(t *testing.T) {
		t.Parallel()
		requireProblem(t, run(t, throwaway.Migrated(t, migrate), grown(t), sandbox.ServerOptions{}, func(cfg *Indexer) { cfg.LedgerURL += "/elsewhere" }), "--ledger-url")
	})
}

// Where to begin is the operator's choice, and an unknown active set is recorded.
func TestStartSomewhereElse(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	for _, start := range []string{"latest", "100"} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			l := sandbox.NewLedger(sandbox.Options{Seed: 26})
			l.Grow(300)
			from := l.End()
			if start != "latest" {
				from = 100
			}
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
			cfg.Start = start
			require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
			l.Grow(100)
			require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
			conn, err := pgx.Connect(t.Context(), database)
			require.NoError(t, err)
			defer conn.Close(t.Context())
			var oldest, updates int64
			var stateFloor *int64
			require.NoError(t, conn.QueryRow(t.Context(),
				"SELECT ledger.oldest_offset(), ledger.state_floor(), (SELECT count(*) FROM ledger.updates)").Scan(&oldest, &stateFloor, &updates))
			require.Equal(t, from, oldest)
			require.Nil(t, stateFloor)
			var want int64
			for _, row := range l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End())["updates"] {
				if int64Of(t, row["ledger_offset"]) > from {
					want++
				}
			}
			require.Equal(t, want, updates)
		})
	}
}

// Another participant behind the same URL is noticed when the connection is made anew: its offsets mean something else.
func TestAnotherParticipantWhileRunning(t *testing.T) {
	t.Parallel()
	first, second := sandbox.NewLedger(sandbox.Options{Seed: 27}), sandbox.NewLedger(sandbox.Options{Seed: 28})
	first.Grow(100)
	second.Grow(400)
	server := newSwitchable(t, sandbox.NewServer(first, sandbox.ServerOptions{}))
	database := throwaway.Migrated(t, migrate)
	daemon := startIndexer(t, indexerFor(database, server.URL, defaultScope()))
	waitFor(t, database, lastUpdate(first))
	server.turnTo(sandbox.NewServer(second, sandbox.ServerOptions{}))
	requireProblem(t, daemon.ended(t), first.ParticipantID(), second.ParticipantID(), "--ledger-url")
	require.Empty(t, sandbox.Diff(first.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, first.End()), relations(t, database)))
}

// A participant that did not say who it is at the start is recorded when it does, and another one is refused then.
func TestIdentityIsLearnedLater(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 29})
	l.Grow(100)
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, sandbox.ServerOptions{StrictInterface: true}), defaultScope()), testLogger(t)))
	require.Zero(t, count(t, database, "indexer.participant"))
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope()), testLogger(t)))
	require.Equal(t, 1, count(t, database, "indexer.participant"))
	other := sandbox.NewLedger(sandbox.Options{Seed: 30})
	other.Grow(300)
	err := RunIndexer(t.Context(), indexerFor(database, serve(t, other, sandbox.ServerOptions{}), defaultScope()), testLogger(t))
	requireProblem(t, err, "belongs to participant", "--ledger-url")
}

// A database that can't be used is said once, with what to do.
func TestUnusableDatabase(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 29})
	l.Grow(10)
	ledgerURL := serve(t, l, sandbox.ServerOptions{})
	missing := func(t *testing.T, database string) string {
		u, err := url.Parse(database)
		require.NoError(t, err)
		u.Path = "/no_such_database"
		return u.String()
	}
	for name, c := range map[string]struct {
		url  func(t *testing.T) string
		says []string
	}{
		"no such database": {func(t *testing.T) string { return missing(t, throwaway.Migrated(t, migrate)) },
			[]string{"no_such_database", "create the database"}},
		"none behind a pooler": {func(t *testing.T) string {
			return missing(t, throwaway.PgBouncer(t, throwaway.Migrated(t, migrate), throwaway.PoolSessions))
		}, []string{"no_such_database", "create the database"}},
		"a user who may not log in": {func(t *testing.T) string {
			database := throwaway.Migrated(t, migrate)
			role, as := throwaway.Login(t, database, "")
			execute(t, database, "ALTER ROLE "+pgx.Identifier{role}.Sanitize()+" NOLOGIN")
			return as
		}, []string{"not permitted to log in", "let the user in"}},
		"a user without rights": {func(t *testing.T) string {
			_, as := throwaway.Login(t, throwaway.Migrated(t, migrate), "")
			return as
		}, []string{"permission denied", "grant"}},
		"no such setting": {func(t *testing.T) string {
			u, err := url.Parse(throwaway.Migrated(t, migrate))
			require.NoError(t, err)
			query := u.Query()
			query.Set("no_such_setting", "on")
			u.RawQuery = query.Encode()
			return u.String()
		}, []string{"no_such_setting"}},
		"a table of that name": {func(t *testing.T) string {
			database := throwaway.Database(t)
			execute(t, database, "CREATE SCHEMA indexer", "CREATE TABLE indexer.participant ()")
			return database
		}, []string{"already exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireProblem(t, RunIndexer(t.Context(), indexerFor(c.url(t), ledgerURL, defaultScope()), testLogger(t)), c.says...)
		})
	}
}

// Rights that are taken away while daemons run end them, the leader and who stands by.
func TestDatabaseThatIsTakenAwayFromDaemons(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates a database from nothing, which takes a second or more")
	l := sandbox.NewLedger(sandbox.Options{Seed: 46})
	l.Grow(50)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{})
	database := throwaway.Database(t)
	role, as := throwaway.Login(t, database, "")
	execute(t, database, "GRANT CREATE ON DATABASE "+pgx.Identifier{strings.TrimSuffix(role, "_login")}.Sanitize()+" TO "+pgx.Identifier{role}.Sanitize())
	cfg := indexerFor(as, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	updates := startIndexer(t, cfg)
	waitFor(t, database, lastUpdate(l))
	standby := startIndexer(t, cfg)
	alone := cfg
	alone.LedgerURL, alone.ScanURL = "", []string{serveScan(t, scan)}
	history := startIndexer(t, alone)
	waitForHistory(t, database, scan)

	execute(t, database, "REVOKE ALL ON indexer.leadership FROM "+pgx.Identifier{role}.Sanitize())
	l.Grow(10)
	for _, daemon := range []*running{updates, standby, history} {
		requireProblem(t, daemon.ended(t), "permission denied for table leadership")
	}
}

// A user who is locked out while the daemon runs is waited for.
func TestUserWhoIsLetInAgain(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 47})
	l.Grow(50)
	database := throwaway.Database(t)
	name, as := throwaway.Login(t, database, "")
	role := pgx.Identifier{name}.Sanitize()
	execute(t, database, "GRANT CREATE ON DATABASE "+pgx.Identifier{strings.TrimSuffix(name, "_login")}.Sanitize()+" TO "+role)
	log := &journal{}
	daemon := startLogged(t, indexerFor(as, serve(t, l, sandbox.ServerOptions{}), defaultScope()), log.logger())
	waitFor(t, database, lastUpdate(l))
	execute(t, database, "ALTER ROLE "+role+" NOLOGIN", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+name+"'")
	require.Eventually(t, func() bool { return strings.Contains(log.all(), "not permitted to log in") }, 3*time.Minute, 20*time.Millisecond)
	execute(t, database, "ALTER ROLE "+role+" LOGIN")
	l.Grow(50)
	waitFor(t, database, lastUpdate(l))
	require.NoError(t, daemon.finish())
}

// Rows that the database will never take end the daemon with what it said, instead of being tried for ever.
func TestRowsThatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 12})
	l.Grow(200)
	database := throwaway.Migrated(t, migrate)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "ALTER TABLE indexer.updates ADD CONSTRAINT short CHECK (ledger_offset < 100)")
	require.NoError(t, err)
	err = RunIndexer(t.Context(), indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope()), testLogger(t))
	requireProblem(t, err, "the database refuses the rows", "short", "report it")
}

// A database that takes no writes is waited for, whether it is found so at the start or becomes so, and the log says
// why.
func TestADatabaseThatTakesNoWritesIsWaitedFor(t *testing.T) {
	t.Parallel()
	database := throwaway.Migrated(t, migrate)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	readOnly := func(now string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %q SET default_transaction_read_only = %s", conn.Config().Database, now))
		require.NoError(t, err)
		if now == "off" { // sessions that are open keep what was set when they began, as after an operator's correction
			return
		}
		_, err = conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		require.NoError(t, err)
	}
	readOnly("on")
	l := sandbox.NewLedger(sandbox.Options{Seed: 104})
	l.Grow(50)
	var log journal
	daemon := startLogged(t, indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope()), log.logger())
	const refused = "takes no writes, because it is a standby, or default_transaction_read_only is on"
	for _, grown := range []int{0, 20} {
		l.Grow(grown)
		said := strings.Count(log.all(), refused)
		eventually(t, "a line that says why", func() bool { return strings.Count(log.all(), refused) > said })
		readOnly("off")
		waitFor(t, database, lastUpdate(l))
		readOnly("on")
	}
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
}
