package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/config"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(programTests{throwaway.Tests(m)}) }

func migrate(ctx context.Context, url string) error {
	db, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}

func migrateNetwork(ctx context.Context, url string) error {
	db, err := store.Open(config.StoreOf(url, config.NetworkSchemas, nil))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}

// networkDatabase returns a database that has the pair of schemas of a network, and nothing in it.
func networkDatabase(t *testing.T) string {
	t.Helper()
	return throwaway.Migrated(t, migrateNetwork)
}

func migrateBoth(ctx context.Context, url string) error {
	return errors.Join(migrate(ctx, url), migrateNetwork(ctx, url))
}

// databaseOfBoth returns a database that has the pairs of schemas of a participant's ledger and of a network, and
// nothing in them.
func databaseOfBoth(t *testing.T) string {
	t.Helper()
	return throwaway.Migrated(t, migrateBoth)
}

// serve starts a participant and returns its URL.
func serve(t *testing.T, l sandbox.History, options sandbox.ServerOptions) string {
	t.Helper()
	server := httptest.NewServer(sandbox.NewServer(l, options))
	t.Cleanup(server.Close)
	return server.URL
}

// indexerFor is a configuration that indexes a scope until current, without a listener.
func indexerFor(databaseURL, ledgerURL string, scope config.Scope) Indexer {
	return Indexer{
		Database: config.Database{DatabaseURL: databaseURL},
		Sources:  config.Sources{LedgerURL: ledgerURL},
		Scope:    scope,
		Run:      config.Run{Start: "genesis", UntilCurrent: true, Migrate: "auto", ScanHistory: config.ScanTransactions},
	}
}

func defaultScope() config.Scope {
	return config.Scope{Shape: "acs-delta", Reassignments: true, Topology: true}
}

// deltas has a program index in the shape of defaultScope.
const deltas = "INDEXER_SHAPE=acs-delta"

func testLogger(t *testing.T) *slog.Logger {
	t.Helper()
	level := slog.LevelWarn
	if os.Getenv("TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
}

// relations reads every relation of the ledger that the sandbox knows the truth of.
func relations(t *testing.T, databaseURL string) map[string][]sandbox.Row {
	t.Helper()
	return rowsOf(t, databaseURL, sandbox.Relations())
}

// historyRelations reads every relation of the transaction history.
func historyRelations(t *testing.T, databaseURL string) map[string][]sandbox.Row {
	t.Helper()
	return rowsOf(t, databaseURL, sandbox.HistoryRelations())
}

// rowsOf reads relations in an order of its own, so that equal relations are equal lists whatever plan the database
// chooses.
func rowsOf(t *testing.T, databaseURL string, relations []string) map[string][]sandbox.Row {
	t.Helper()
	return rowsAs(t, databaseURL, "row_to_json(r)", relations)
}

func rowsAs(t *testing.T, databaseURL, row string, relations []string) map[string][]sandbox.Row {
	t.Helper()
	return rowsIn(t, databaseURL, "ledger", row, relations)
}

// rowsIn reads relations of a schema.
func rowsIn(t *testing.T, databaseURL, schema, row string, relations []string) map[string][]sandbox.Row {
	t.Helper()
	got := map[string][]sandbox.Row{}
	for _, relation := range relations {
		list := texts(t, databaseURL, "SELECT "+row+"::text FROM "+schema+"."+relation+" r")
		slices.Sort(list) // here it costs less than in the database
		for _, text := range list {
			row, err := sandbox.DecodeRow(relation, []byte(text))
			require.NoError(t, err)
			got[relation] = append(got[relation], row)
		}
	}
	return got
}

// asked is a database that a test asks.
type asked struct {
	t           *testing.T
	databaseURL string
}

var kept = struct {
	mu       sync.Mutex
	sessions map[asked]*pgxpool.Pool
}{sessions: map[asked]*pgxpool.Pool{}}

// sessions returns the connections that a test keeps to a database for its questions: a new one for each would plan
// without a catalog at hand, which costs more than most questions. One that the server ended is opened anew, and no
// plan outlives a change of the schema.
func sessions(t *testing.T, databaseURL string) *pgxpool.Pool {
	t.Helper()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	key := asked{t, databaseURL}
	if pool := kept.sessions[key]; pool != nil {
		return pool
	}
	cfg, err := pgxpool.ParseConfig(databaseURL)
	require.NoError(t, err)
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	kept.sessions[key] = pool
	t.Cleanup(func() {
		kept.mu.Lock()
		delete(kept.sessions, key)
		kept.mu.Unlock()
		pool.Close()
	})
	return pool
}

// eventually waits until something is so. What never comes is a failure here, and not the end of all tests: the limit
// is far beyond what the busiest machine needs.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	const patience = 10 * time.Minute
	for began := time.Now(); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

// eventuallyOf is eventually of a daemon that must not end meanwhile.
func eventuallyOf(t *testing.T, daemon *running, what string, done func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		select {
		case <-daemon.done:
			t.Fatalf("it ended: %v", daemon.err)
		default:
		}
		return done()
	})
}

// eventuallyIn waits until a database says that something is so. The server may be away, which is what some tests are
// about.
func eventuallyIn(t *testing.T, databaseURL, what, condition string, args ...any) {
	t.Helper()
	eventually(t, what, func() (holds bool) {
		return sessions(t, databaseURL).QueryRow(t.Context(), "SELECT "+condition, args...).Scan(&holds) == nil && holds
	})
}

// journal keeps what a daemon logs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(text []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(text)
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, nil))
}

// all is everything that was logged.
func (j *journal) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// lines are those whose message is this one.
func (j *journal) lines(t *testing.T, message string) (lines []map[string]any) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for text := range bytes.Lines(j.text.Bytes()) {
		var line map[string]any
		require.NoError(t, json.Unmarshal(text, &line))
		if line["msg"] == message {
			lines = append(lines, line)
		}
	}
	return lines
}

// wait waits for a message and returns its first line.
func (j *journal) wait(t *testing.T, message string) (line map[string]any) {
	t.Helper()
	eventually(t, "a line "+message, func() bool {
		lines := j.lines(t, message)
		if len(lines) > 0 {
			line = lines[0]
		}
		return line != nil
	})
	return line
}

// switchable is a server that another one can take the place of. As with two servers, a connection is of the one that
// accepted it: one that answered over a connection of the other could not be noticed.
type switchable struct {
	*httptest.Server
	now atomic.Pointer[http.Handler]
}

func newSwitchable(t *testing.T, first http.Handler) *switchable {
	t.Helper()
	type accepted struct{}
	s := &switchable{}
	s.now.Store(&first)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := s.now.Load()
		if r.Context().Value(accepted{}) != now {
			panic(http.ErrAbortHandler) // closes the connection
		}
		(*now).ServeHTTP(w, r)
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, accepted{}, s.now.Load())
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *switchable) turnTo(next http.Handler) {
	s.now.Store(&next)
	s.CloseClientConnections()
}
