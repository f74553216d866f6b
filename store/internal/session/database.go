package session

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

var queries = dbsqlc.New()

// Config says how to reach the database.
type Config struct {
	URL     string  // postgres://… or keyword=value; the usual PG* variables and pgpass file fill in what is missing
	Schemas Schemas // those it works on
	Logger  *slog.Logger
	// OffsetsPerUpdate is about how many offsets go by from one update of the ledger to the next; 0: 1. Partitions are
	// that many times as wide.
	OffsetsPerUpdate int64
	// Backfill is the command that seeds these schemas from a snapshot; by default the one for a participant.
	Backfill string
	// Holder names this process in table leadership, for people to read, such as "host pid 123".
	Holder string
	// Observe, if set, is called with how long each phase of a written batch took: "copy", "project", "commit". It and the
	// others may be called by several goroutines at the same time.
	Observe func(ctx context.Context, phase string, d time.Duration)
	// Wrote, if set, is called with the number of rows of each relation that a committed batch wrote.
	Wrote func(relation string, rows int)
	// Shown, if set, is called with the record time of the last update up to the watermark, when that has moved.
	Shown func(recordTime time.Time)
}

// Database is a way to the database, and what all work on it shares. It is safe for concurrent use.
type Database struct {
	Config Config          // with no field unset
	Conn   *pgx.ConnConfig // Connect and Settled make connections of it
	Pool   *pgxpool.Pool   // for reading and migrating

	// Patience is how long a user that was let in before, and is refused now, is waited for. It is not changed while the
	// Database is used.
	Patience time.Duration
	refusals refusals
}

// textForms are what texts look like in our sessions, whatever is set for the database or the role. With another
// encoding than the program's, other characters would be stored.
var textForms = map[string]string{
	"client_encoding": "UTF8", "datestyle": "ISO", "timezone": "UTC", "standard_conforming_strings": "on",
}

// Open connects lazily: an unreachable server is reported by the first use. A URL that cannot be understood is an
// error, which never repeats the URL's password, as are schemas that can't be.
func Open(cfg Config) (*Database, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Backfill = cmp.Or(cfg.Backfill, "backfill")
	if cfg.Observe == nil {
		cfg.Observe = func(context.Context, string, time.Duration) {}
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
	cfg.Schemas = cfg.Schemas.OrDefault()
	poolConfig, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err) // pgx redacts the password
	}
	poolConfig.MaxConns = 4
	poolConfig.PingTimeout = PingTimeout
	poolConfig.ConnConfig.DialFunc = dial(poolConfig.ConnConfig.ConnectTimeout) // that of the URL, if it has one
	poolConfig.ConnConfig.ConnectTimeout = connectTimeout
	poolConfig.ConnConfig.RuntimeParams["application_name"] = cfg.Schemas.Program()
	poolConfig.ConnConfig.RuntimeParams["search_path"] = cfg.Schemas.SearchPath()
	// Comparing and listing must see all rows: what policies would leave out is an error.
	poolConfig.ConnConfig.RuntimeParams["row_security"] = "off"
	// Compiling a query takes longer than almost any of them: ten times as long as adding up the amulets of 10,000
	// updates.
	poolConfig.ConnConfig.RuntimeParams["jit"] = "off"
	maps.Copy(poolConfig.ConnConfig.RuntimeParams, textForms)
	d := &Database{Config: cfg, Conn: poolConfig.ConnConfig, Patience: patience}
	poolConfig.ConnConfig = d.Settled(d.Conn)
	if d.Pool, err = pgxpool.NewWithConfig(context.Background(), poolConfig); err != nil { // connects only when used
		return nil, fmt.Errorf("database: %w", err)
	}
	return d, nil
}

const (
	// A server that does not answer within this time is down: the caller tries again.
	connectTimeout = 10 * time.Second
	// PingTimeout is how long a connection that was idle may take to show that there is still a server. Where it was taken
	// over by another one, and the network says nothing, TCP would wait for a quarter of an hour.
	PingTimeout = 3 * time.Second
)

// Close closes the connections. Terms of leaders have to be closed before.
func (d *Database) Close() { d.Pool.Close() }

// Ping returns an error if the database does not answer.
func (d *Database) Ping(ctx context.Context) (err error) {
	defer pg.Wrap(&err, "database %s", d.Address())
	return d.Pool.Ping(ctx)
}

// Address names the database for people, without user and password.
func (d *Database) Address() string {
	hosts := []string{hostOf(d.Conn.Host, d.Conn.Port)}
	for _, other := range d.Conn.Fallbacks { // the same host once more without TLS, and other hosts
		if host := hostOf(other.Host, other.Port); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return strings.Join(hosts, ",") + " " + d.Conn.Database
}

func hostOf(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// ReadOnly calls fn with a transaction that reads one snapshot of the database. It first waits for transactions that
// move the floors, above all pruning, and keeps later ones waiting: a query takes its snapshot before it waits for a
// table, so it would see the floors from before pruning, and rows from after it.
func (d *Database) ReadOnly(ctx context.Context, fn func(tx pgx.Tx) error) error {
	tx, err := d.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return d.Unusable(fmt.Errorf("database %s: %w", d.Address(), err))
	}
	defer pg.Rollback(ctx, tx)
	if _, err := tx.Exec(ctx, "LOCK TABLE floors, checkpoints IN ACCESS SHARE MODE"); err != nil {
		return d.Unusable(fmt.Errorf("wait for the floors: %w", err))
	}
	return d.Unusable(fn(tx))
}
