package store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// The streams, as the database names them.
const (
	StreamUpdates      = tables.StreamUpdates
	StreamTransactions = tables.StreamTransactions
)

// Config says how to reach the database.
type Config struct {
	URL     string  // postgres://… or keyword=value; the usual PG* variables and pgpass file fill in what is missing
	Schemas Schemas // those it works on
	Logger  *slog.Logger
	// Holder names this process in table leadership, for people to read, such as "host pid 123".
	Holder string
	// Observe, if set, is told how long each phase of a written batch took: "copy", "project", "commit". It and the others may be
	// called by several goroutines at the same time.
	Observe func(phase string, d time.Duration)
	// Wrote, if set, is told of the rows of each relation that a committed batch wrote.
	Wrote func(relation string, rows int)
	// Shown, if set, is told the record time of the last update up to the watermark, when that has moved.
	Shown func(recordTime time.Time)
}

// Store reads the database and becomes leader to write it. It is safe for concurrent use.
type Store struct {
	cfg     Config
	conn    *pgx.ConnConfig // connect and settled make connections of it
	pool    *pgxpool.Pool   // reading and migrating
	queries *dbsqlc.Queries

	refusals refusals
}

// textForms are what texts look like in our sessions, whatever is set for the database or the role. With another encoding
// than the program's, other characters would be stored.
var textForms = map[string]string{
	"client_encoding": "UTF8", "datestyle": "ISO", "timezone": "UTC", "standard_conforming_strings": "on",
}

// Open connects lazily: an unreachable server is reported by the first use. A URL that cannot be understood is an
// error, which never repeats the URL's password, as are schemas that can't be.
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
	if cfg.Shown == nil {
		cfg.Shown = func(time.Time) {}
	}
	if err := cfg.Schemas.Validate(); err != nil {
		return nil, err
	}
	cfg.Schemas = cfg.Schemas.orDefault()
	poolConfig, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err) // pgx redacts the password
	}
	poolConfig.MaxConns = 4
	poolConfig.ConnConfig.ConnectTimeout = connectTimeout
	poolConfig.ConnConfig.RuntimeParams["application_name"] = cfg.Schemas.program()
	poolConfig.ConnConfig.RuntimeParams["search_path"] = cfg.Schemas.searchPath()
	maps.Copy(poolConfig.ConnConfig.RuntimeParams, textForms)
	s := &Store{cfg: cfg, conn: poolConfig.ConnConfig, queries: dbsqlc.New(), refusals: refusals{patience: refusalPatience}}
	poolConfig.ConnConfig = s.settled(s.conn)
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), poolConfig); err != nil { // connects only when used
		return nil, fmt.Errorf("database: %w", err)
	}
	return s, nil
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
