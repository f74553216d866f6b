package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
)

// Connect makes a connection with settings of its own.
func (d *Database) Connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, d.Settled(config))
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", d.Address(), inOneLine(err))
	}
	return conn, nil
}

// Settled returns a configuration whose connections are given their settings by a statement: a pooler refuses those
// that it does not know where they come with the connection. A connection that has lost them by its next statement is
// refused.
func (d *Database) Settled(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	settings := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(config.RuntimeParams)) { // ours are in lower case, and win
		if name != startupOptions {
			settings[strings.ToLower(name)] = config.RuntimeParams[name]
			delete(config.RuntimeParams, name)
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := settle(ctx, conn, settings); err != nil {
			return err
		}
		d.refusals.end()
		return nil
	}
	return config
}

// startupOptions are command line options for the session's process, which only come with the connection.
const startupOptions = "options"

// settle gives a session its settings, and looks whether they are there.
func settle(ctx context.Context, conn *pgconn.PgConn, settings map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var set, kept []string
	var assignments, names [][]byte
	for i, name := range slices.Sorted(maps.Keys(settings)) {
		set = append(set, fmt.Sprintf("set_config($%d, $%d, false)", 2*i+1, 2*i+2))
		assignments = append(assignments, []byte(name), []byte(settings[name]))
		kept = append(kept, fmt.Sprintf("current_setting($%d)", i+1))
		names = append(names, []byte(name))
	}
	given, err := readRow(ctx, conn, "SELECT "+strings.Join(set, ", "), assignments)
	if err != nil {
		return fmt.Errorf("give the session its settings (it waits here where a pooler has no free connection to the "+
			"server): %w", err)
	}
	there, err := readRow(ctx, conn, "SELECT "+strings.Join(kept, ", "), names)
	if err != nil {
		return fmt.Errorf("read the session's settings: %w", err)
	}
	if !slices.Equal(given, there) {
		return ErrPooled
	}
	return nil
}

// readRow reads the only row of a query, without a prepared statement.
func readRow(ctx context.Context, conn *pgconn.PgConn, query string, args [][]byte) ([]string, error) {
	result := conn.ExecParams(ctx, query, args, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	var values []string
	for _, value := range result.Rows[0] {
		values = append(values, string(value))
	}
	return values, nil
}

// ErrPooled is a *ledger.Problem. It refuses a way to the database on which sessions do not live as long as
// connections.
var ErrPooled error = &ledger.Problem{
	What: "a pooler between here and the database gives a connection another session with each transaction or " +
		"statement, so the leader's lock would be lost",
	Do: "set the pooler to session mode (pool_mode = session), or connect to PostgreSQL itself",
}

// RequireSessions refuses a pooler that shares sessions out, which the two connections show that it looks with.
func (d *Database) RequireSessions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	first, err := d.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer first.Release()
	second, err := d.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("make a second connection: %w", err)
	}
	defer second.Release()
	shared, err := isShared(ctx, first.Conn(), second.Conn())
	if err == nil && shared {
		err = ErrPooled
	}
	return err
}

// How often isShared looks: a pooler may give a connection the same session again by chance.
const sessionRounds = 4

// isShared reports whether two connections that have no transaction open get sessions of their own. A pooler in
// transaction mode gives both the same one, or the first another one with its next statement, or where the second holds
// a session in a transaction.
func isShared(ctx context.Context, first, second *pgx.Conn) (shared bool, err error) {
	for range sessionRounds {
		if shared, err = sessionRound(ctx, first, second); err != nil || shared {
			return shared, err
		}
	}
	return false, nil
}

func sessionRound(ctx context.Context, first, second *pgx.Conn) (shared bool, err error) {
	session, err := pidOf(ctx, first)
	if err != nil {
		return false, err
	}
	next, err := pidOf(ctx, first)
	if err != nil || next != session {
		return err == nil, err
	}
	tx, err := second.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if refusalOf(err) == refusalPooled {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer pg.Rollback(ctx, tx)
	held, err := pidOf(ctx, second)
	if err != nil || held == session { // the first one would wait for it
		return err == nil, err
	}
	next, err = pidOf(ctx, first)
	return err == nil && next != session, err
}

// pidOf asks for the session that serves the next statement of a connection. The statement has no name, which such a
// pooler would not know in another session.
func pidOf(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	return pid, err
}
