package store

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ledgerindexer/store/internal/dbsqlc"
)

// StreamUpdates is the stream of updates, as checkpoints and coverage name it.
const StreamUpdates = "updates"

// Config says how to reach the database.
type Config struct {
	URL    string // postgres://… or keyword=value; the usual PG* variables and pgpass file fill in what is missing
	Logger *slog.Logger
	// Holder names this process in indexer.leadership, for people to read, such as "host pid 123".
	Holder string
	// Observe, if set, is told how long each phase of a written batch took: "copy", "project", "commit". It and Wrote may be
	// called by several goroutines at the same time.
	Observe func(phase string, d time.Duration)
	// Wrote, if set, is told of the rows of each relation that a committed batch wrote.
	Wrote func(relation string, rows int)
}

// Store reads the database and becomes leader to write it. It is safe for concurrent use.
type Store struct {
	cfg     Config
	conn    *pgx.ConnConfig
	pool    *pgxpool.Pool // reading and migrating
	queries *dbsqlc.Queries
}

// Open connects lazily: an unreachable server is reported by the first use. A URL that cannot be understood is an
// error, which never repeats the URL's password.
func Open(cfg Config) (*Store, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string, time.Duration) {}
	}
	if cfg.Wrote == nil {
		cfg.Wrote = func(string, int) {}
	}
	poolConfig, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err) // pgx redacts the password
	}
	poolConfig.MaxConns = 4
	poolConfig.ConnConfig.ConnectTimeout = connectTimeout
	poolConfig.ConnConfig.RuntimeParams["application_name"] = "ledgerindexer"
	poolConfig.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pool, err := pgxpool.NewWithConfig(context.Background(), poolConfig) // connects only when used
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return &Store{cfg: cfg, conn: poolConfig.ConnConfig, pool: pool, queries: dbsqlc.New()}, nil
}

// A server that does not answer within this time is down: the caller tries again.
const connectTimeout = 10 * time.Second

// Close releases the connections. Leaders have to be closed before.
func (s *Store) Close() { s.pool.Close() }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("database %s: %w", s.Address(), err)
	}
	return nil
}

// Address names the database for people, without user and password.
func (s *Store) Address() string {
	host := s.conn.Host
	if !strings.HasPrefix(host, "/") {
		host = fmt.Sprintf("%s:%d", host, s.conn.Port)
	}
	return host + " " + s.conn.Database
}
