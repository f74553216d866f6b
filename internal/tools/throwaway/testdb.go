package throwaway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The environment variables that choose the server of the tests.
const (
	urlVariable   = "TEST_DATABASE_URL"   // a server that exists
	kindVariable  = "TEST_POSTGRES"       // local or container: forces one
	imageVariable = "TEST_POSTGRES_IMAGE" // the container's image
)

// testPrefix starts the name of every database made for a test:
// prefix, run, "_", number.
const testPrefix = "ledgerindexer_test_"

// cleanupTimeout limits the cleanup after a test. It has a context of its own, because
// the test's has ended.
const cleanupTimeout = time.Minute

// compile is the setting that lets a server compile queries, which takes longer than
// to run those of a test.
const compile = "jit"

// OptionsFromEnv returns the options that the environment asks for:
// TEST_DATABASE_URL, TEST_POSTGRES (local or container) and TEST_POSTGRES_IMAGE.
// TEST_POSTGRES wins over TEST_DATABASE_URL. A local cluster is in memory. A server
// that is started compiles no queries.
func OptionsFromEnv() Options {
	return Options{
		URL:     os.Getenv(urlVariable),
		URLFrom: urlVariable,
		Kind:    Kind(os.Getenv(kindVariable)),
		Image:   os.Getenv(imageVariable),

		InMemory: true,
		Settings: map[string]string{compile: "off"},
	}
}

// Database returns the URL of a new empty database for one test. It is dropped,
// whoever is connected, when the test and its subtests are done.
//
// The server is started for the first test of the process that asks, as
// OptionsFromEnv says, and shared by all; Main stops it.
func Database(t testing.TB) string {
	t.Helper()
	r := theRun.start(t)
	return r.database(t, func(ctx context.Context, name string) error {
		return r.server.CreateDatabase(ctx, name)
	})
}

// Migrated is Database with a copy of a database that migrate has prepared. That
// is done once in the process for each function, so migrate must be a plain
// function, or a closure that does the same on every call, and must have closed
// its connections when it returns.
func Migrated(t testing.TB, migrate func(ctx context.Context, url string) error) string {
	t.Helper()
	r := theRun.start(t)
	return r.clone(t, r.migrated(migrate))
}

// Prepared is Migrated with a copy of such a database that prepare has prepared further, which is done once in the
// process for each key. It must not depend on the test that asks first, and must have closed its connections, too.
func Prepared(t testing.TB, migrate func(ctx context.Context, url string) error, key any,
	prepare func(ctx context.Context, url string) error) string {
	t.Helper()
	r := theRun.start(t)
	return r.clone(t, r.template(key, func(ctx context.Context, name string) error {
		from := r.migrated(migrate)
		if err := from.make(ctx); err != nil {
			return err
		}
		if err := r.server.CloneDatabase(ctx, name, from.name); err != nil {
			return err
		}
		return prepare(ctx, r.server.URL(name))
	}))
}

// LocalServer starts a temporary cluster for one test alone, for tests that kill and restart it, and stops it when the
// test is done. It is in memory unless Durable, and compiles no queries unless Settings say so. It skips the test on a
// machine without PostgreSQL's programs, or without libfaketime where it is to have a clock of its own.
func LocalServer(t testing.TB, o Options) *Server {
	t.Helper()
	if programs, why := o.programs(t.Context()); programs == "" {
		t.Skipf("this test ends its PostgreSQL server and needs one of its own, but %s", why)
	}
	if o.Clock && clockLibrary() == "" {
		t.Skip("libfaketime is not installed (Debian's package faketime)")
	}
	o.Kind, o.InMemory = Local, true
	settings := map[string]string{compile: "off"}
	maps.Copy(settings, o.Settings)
	o.Settings = settings
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop the test's PostgreSQL server: %v", err)
		}
	})
	return s
}

// Runner is what both testing.M and goleak.VerifyTestMain's argument are.
type Runner interface{ Run() int }

// Main runs a package's tests and then stops the shared server and drops what
// was made on it. Every package that uses Database or Migrated has
//
//	func TestMain(m *testing.M) { os.Exit(throwaway.Main(m)) }
//
// or, to find leaked goroutines,
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }
func Main(m Runner) int { return Tests(m).Run() }

// Tests is Main as a Runner: nothing of this package is left when its Run
// returns. Unless -parallel says otherwise, four tests run at a time where there
// are fewer processors, since much of what they do is to wait: for the server, for a
// lock to be given up, for something to be tried again.
func Tests(m Runner) Runner { return tests{m} }

type tests struct{ m Runner }

func (t tests) Run() int {
	if err := moreAtATime(); err != nil {
		fmt.Fprintf(os.Stderr, "run more tests at a time: %v\n", err)
		return 1
	}
	code := t.m.Run()
	if err := theRun.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the tests' PostgreSQL server: %v\n", err)
		code = max(code, 1)
	}
	return code
}

// moreAtATime sets -parallel where the command line does not.
func moreAtATime() error {
	const parallel = "test.parallel"
	if !flag.Parsed() {
		flag.Parse()
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == parallel })
	if given {
		return nil
	}
	return flag.Set(parallel, strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
}

// run is what the tests of one process share. There is one, theRun: the testing
// package has no other state for all tests of a process.
type run struct {
	options func() Options

	once   sync.Once
	err    error // of the start
	server *Server
	name   string    // in the names of the run's databases
	lock   *pgx.Conn // holds the run's advisory lock

	mu        sync.Mutex
	databases int
	templates map[any]*template
}

var theRun = run{options: OptionsFromEnv}

// template is a database that others are copies of.
type template struct {
	name    string
	prepare func(ctx context.Context, name string) error // makes it

	once sync.Once
	err  error
}

// make makes the database, if nobody has.
func (tmpl *template) make(ctx context.Context) error {
	// The other tests that wait for it must not fail with this test's context.
	tmpl.once.Do(func() { tmpl.err = tmpl.prepare(context.WithoutCancel(ctx), tmpl.name) })
	return tmpl.err
}

// start returns the run with its server started.
func (r *run) start(t testing.TB) *run {
	t.Helper()
	r.once.Do(func() { r.err = r.open() })
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r
}

func (r *run) open() error {
	// Not the context of the test that happens to be first.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := Start(ctx, r.options())
	if err != nil {
		return err
	}
	r.server = server
	r.templates = map[any]*template{}
	var random [5]byte
	rand.Read(random[:])
	r.name = hex.EncodeToString(random[:])
	if r.lock, err = pgx.Connect(ctx, server.URL("")); err != nil {
		return fmt.Errorf("connect to the tests' PostgreSQL server: %w", err)
	}
	// Holding the lock of the run's name shows that the run is alive.
	if _, err := r.lock.Exec(ctx, "SELECT pg_advisory_lock($1)", lockKey(r.name)); err != nil {
		return fmt.Errorf("lock the name of this test run: %w", err)
	}
	if err := r.sweep(ctx); err != nil {
		return fmt.Errorf("drop the databases of test runs that were killed: %w", err)
	}
	return nil
}

// sweep drops the databases of runs that were killed, which a server that outlives
// the run would otherwise keep.
func (r *run) sweep(ctx context.Context) error {
	if r.server.Kind() != Given {
		return nil
	}
	rows, err := r.lock.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", testPrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		owner, _, _ := strings.Cut(strings.TrimPrefix(name, testPrefix), "_")
		if owner == r.name {
			continue
		}
		var dead bool
		if err := r.lock.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", lockKey(owner)).Scan(&dead); err != nil {
			return err
		}
		if !dead {
			continue
		}
		err := r.server.DropDatabase(ctx, name)
		if _, unlockErr := r.lock.Exec(ctx, "SELECT pg_advisory_unlock($1)", lockKey(owner)); err != nil || unlockErr != nil {
			return errors.Join(err, unlockErr)
		}
	}
	return nil
}

// lockKey is the advisory lock key of a run.
func lockKey(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(testPrefix + name))
	return int64(h.Sum64())
}

// next returns the name of a database that does not exist yet.
func (r *run) next() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.databases++
	return r.nameOf(r.databases)
}

func (r *run) nameOf(number int) string { return fmt.Sprintf("%s%s_%d", testPrefix, r.name, number) }

// database makes a database for a test and drops it afterwards.
func (r *run) database(t testing.TB, create func(ctx context.Context, name string) error) string {
	t.Helper()
	name := r.next()
	if err := create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := r.server.DropDatabase(ctx, name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return r.server.URL(name)
}

// template returns the template of a key, which prepare makes.
func (r *run) template(key any, prepare func(ctx context.Context, name string) error) *template {
	r.mu.Lock()
	defer r.mu.Unlock()
	tmpl := r.templates[key]
	if tmpl == nil {
		r.databases++
		tmpl = &template{name: r.nameOf(r.databases), prepare: prepare}
		r.templates[key] = tmpl
	}
	return tmpl
}

// migrated is the template that a function has migrated.
func (r *run) migrated(migrate func(context.Context, string) error) *template {
	return r.template(reflect.ValueOf(migrate).Pointer(), func(ctx context.Context, name string) error {
		if err := r.server.CreateDatabase(ctx, name); err != nil {
			return err
		}
		return migrate(ctx, r.server.URL(name))
	})
}

// clone makes a copy of a template for a test.
func (r *run) clone(t testing.TB, tmpl *template) string {
	t.Helper()
	if err := tmpl.make(t.Context()); err != nil {
		t.Fatalf("prepare the template database: %v", err)
	}
	return r.database(t, func(ctx context.Context, name string) error {
		return r.server.CloneDatabase(ctx, name, tmpl.name)
	})
}

// stop drops the templates and stops the server. Without a server it does
// nothing.
func (r *run) stop() error {
	if r.server == nil {
		return nil
	}
	var err error
	if r.lock != nil {
		defer closeConn(r.lock)
	}
	if r.server.Kind() == Given {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		for _, tmpl := range r.templates {
			err = errors.Join(err, r.server.DropDatabase(ctx, tmpl.name))
		}
	}
	return errors.Join(err, r.server.Stop())
}
