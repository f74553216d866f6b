// Package throwaway provides temporary PostgreSQL servers for tests and the sandbox.
//
// The server comes from, in this order: a given URL, PostgreSQL programs on this
// machine (a temporary cluster), a container. If none of the three is available,
// Start's error says what is missing.
//
// A temporary cluster has a folder of its own, is reached through a Unix socket in
// that folder, and ends with this process however this process ends: by Stop in the
// normal case, otherwise by a watching process. It needs a Unix: Linux, macOS, or
// Linux under Windows.
package throwaway

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Kind says where a server comes from.
type Kind string

// The kinds of server. Any is for Options only.
const (
	Any       Kind = ""          // the first of the three that is available
	Given     Kind = "given"     // Options.URL
	Local     Kind = "local"     // a temporary cluster from this machine's PostgreSQL programs
	Container Kind = "container" // a container of Options.Image
)

// DefaultImage is the container image used where Options.Image is empty.
const DefaultImage = "postgres:15"

// MinVersion is the oldest major version of PostgreSQL that is used.
const MinVersion = 15

// startTimeout limits the whole start, with the pull of an image, and answerTimeout
// the time until a started server answers. Usually it answers within a second or two.
const (
	startTimeout  = 5 * time.Minute
	answerTimeout = time.Minute
)

// Options configure Start. The zero value takes the first of local programs and
// container that is available, with the settings for speed.
type Options struct {
	// URL of a server that exists: a postgres:// URL or a libpq keyword string.
	// It is used unless Kind says otherwise, and is never stopped.
	URL string
	// URLFrom is the name of the flag or variable URL is read from. It appears
	// in the error if no server is available. Default: TEST_DATABASE_URL.
	URLFrom string
	// Kind forces one kind of server. Default: Any.
	Kind Kind
	// Programs is the folder of the programs of a local cluster, as Installed gives it. Default: PATH's, else those of the
	// highest version in the usual folders.
	Programs string
	// Image of the container. Default: DefaultImage.
	Image string
	// Durable keeps fsync and full page writes on. By default they are off: a
	// commit then survives the end of the server (Kill), but not the end of the
	// machine.
	Durable bool
	// InMemory puts a local cluster that is not Durable in the machine's memory,
	// if there is enough. A test's database is then made in a hundredth of a second
	// rather than in a tenth or more. Not for data that grows without limit.
	InMemory bool
	// TCP makes a local cluster listen on a free loopback port as well, with a
	// password, and URL name that port. By default there is only the socket. A
	// container always has a loopback port.
	TCP bool
	// Clock gives a local cluster a clock of its own, which SetClock sets. It needs libfaketime.
	Clock bool
	// Settings are server settings (postgresql.conf) beyond or instead of the
	// ones this package sets. They don't apply to a given server.
	Settings map[string]string

	// Tests set these two to simulate another machine: the folders searched for
	// PostgreSQL programs beside PATH, and whether a container engine answers.
	folders []string
	engine  func(ctx context.Context) error
}

// Server is a PostgreSQL server. It is safe for concurrent use; Kill, Restart and
// Stop wait for each other.
type Server struct {
	kind     Kind
	database string // URL of the initial database

	mu        sync.Mutex
	cluster   *cluster   // where kind is Local
	container *container // where kind is Container
	stopped   bool
}

// ErrNotLocal is returned by Kill and Restart for a server that is not a
// temporary cluster of this process.
var ErrNotLocal = errors.New("only a temporary cluster of this process can be killed and restarted")

// Start returns a server that answers. The caller must call Stop.
//
// Cancelling ctx ends the start, not a server that was started.
func Start(ctx context.Context, o Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	switch o.Kind {
	case Given:
		return startGiven(ctx, o)
	case Local:
		programs, why := o.programs(ctx)
		if programs == "" {
			return nil, fmt.Errorf("no PostgreSQL to use: %s", why)
		}
		return startLocal(ctx, programs, o)
	case Container:
		if err := o.engineAnswers(ctx); err != nil {
			return nil, fmt.Errorf("no PostgreSQL to use: no container engine answers: %w", err)
		}
		return startContainer(ctx, o)
	case Any:
		return startAny(ctx, o)
	}
	return nil, fmt.Errorf("unknown kind of PostgreSQL server %q: use local or container", o.Kind)
}

func startAny(ctx context.Context, o Options) (*Server, error) {
	if o.URL != "" {
		return startGiven(ctx, o)
	}
	programs, why := o.programs(ctx)
	if programs != "" {
		return startLocal(ctx, programs, o)
	}
	if err := o.engineAnswers(ctx); err != nil {
		return nil, fmt.Errorf("no PostgreSQL to use: %s is not set, %s, and no container engine answers (%w); provide one "+
			"of the three",
			o.urlFrom(), why, err)
	}
	return startContainer(ctx, o)
}

// programs returns the folder of the programs to use; where there is none, why not.
func (o Options) programs(ctx context.Context) (folder, why string) {
	if o.Programs != "" {
		return o.Programs, ""
	}
	return findPrograms(ctx, o.folders)
}

func (o Options) inMemory() bool { return o.InMemory && !o.Durable }

func (o Options) urlFrom() string {
	if o.URLFrom != "" {
		return o.URLFrom
	}
	return "TEST_DATABASE_URL"
}

func (o Options) engineAnswers(ctx context.Context) error {
	if o.engine != nil {
		return o.engine(ctx)
	}
	return engineAnswers(ctx)
}

func startGiven(ctx context.Context, o Options) (*Server, error) {
	if o.URL == "" {
		return nil, fmt.Errorf("no PostgreSQL to use: %s is not set", o.urlFrom())
	}
	if err := ping(ctx, o.URL); err != nil {
		// The error of pgx names host, user and database, never the password.
		return nil, fmt.Errorf("connect to the PostgreSQL that %s names: %w", o.urlFrom(), err)
	}
	return &Server{kind: Given, database: o.URL}, nil
}

// Kind returns where the server came from: Given, Local or Container.
func (s *Server) Kind() Kind { return s.kind }

// URL returns the connection URL of a database of the server; with an empty
// name, of the initial database (the given one, else "postgres"). The database
// need not exist. The URL contains the password, if there is one.
func (s *Server) URL(database string) string {
	if database == "" {
		return s.database
	}
	return withDatabase(s.database, database)
}

// withDatabase returns the connection string with another database name.
func withDatabase(connection, database string) string {
	u, err := url.Parse(connection)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		// A keyword string: of two equal keywords the later one counts.
		value := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database)
		return connection + " dbname='" + value + "'"
	}
	u.Path, u.RawPath = "/"+database, ""
	q := u.Query()
	if q.Has("dbname") || q.Has("database") {
		// As a parameter it would win over the path.
		q.Del("dbname")
		q.Del("database")
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// CreateDatabase creates an empty database, encoded in UTF-8.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	return s.exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE template0 ENCODING 'UTF8'")
}

// CloneDatabase creates a database as a copy of another one, to which nobody
// may be connected.
func (s *Server) CloneDatabase(ctx context.Context, name, template string) error {
	return s.exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)+" STRATEGY file_copy")
}

// DropDatabase drops a database if it exists, and ends its sessions.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	for {
		err := s.exec(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)")
		// The server waits 5 seconds for the sessions that it ends, and on a busy machine one may take longer.
		if !inUse(err) || ctx.Err() != nil {
			return err
		}
	}
}

func inUse(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55006" // object_in_use
}

// exec runs one statement on a connection of its own, so that callers need not
// wait for each other and a cancelled one breaks nobody else's connection.
func (s *Server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return fmt.Errorf("connect to run %q: %w", sql, err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("run %q: %w", sql, err)
	}
	return nil
}

// Kill ends the server at once, as a crash does: no session is warned,
// no transaction is finished, no checkpoint is written, and the next start
// recovers from the log. It returns when every process of the server has ended.
// ErrNotLocal where the server is not Local.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return fmt.Errorf("kill a %s PostgreSQL server: %w", s.kind, ErrNotLocal)
	}
	return s.cluster.kill()
}

// Restart starts a killed server again on the same data and the same URL, and
// returns when it answers. A server that runs is killed first. ErrNotLocal where
// the server is not Local.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return fmt.Errorf("restart a %s PostgreSQL server: %w", s.kind, ErrNotLocal)
	}
	if s.stopped {
		return errors.New("restart a PostgreSQL server that was stopped: its data is gone")
	}
	if err := s.cluster.kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return s.cluster.run(ctx, s.database)
}

// Stop ends the server and removes its data; a given server is left alone. It
// may be called more than once.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	switch {
	case s.cluster != nil:
		return s.cluster.remove()
	case s.container != nil:
		return s.container.remove()
	}
	return nil
}

// ping connects once.
func ping(ctx context.Context, connection string) error {
	conn, err := pgx.Connect(ctx, connection)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	return conn.Ping(ctx)
}

// awaitAnswer pings until the server answers, gone is closed (the server ended
// by itself) or ctx ends.
func awaitAnswer(ctx context.Context, connection string, gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		err := ping(ctx, connection)
		if err == nil {
			return nil
		}
		select {
		case <-gone:
			return errors.New("the server ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("the server did not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// closeConn closes a connection and ignores errors.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// quote quotes an SQL identifier.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
