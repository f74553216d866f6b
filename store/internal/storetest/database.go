package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

// DB is a database of one test, and a connection beside the store's to look into it.
type DB struct {
	T    testing.TB
	URL  string
	Conn *pgx.Conn
}

// New connects to a test's database.
func New(t testing.TB, url string) *DB {
	t.Helper()
	d := &DB{T: t, URL: url}
	d.Conn = d.Connect()
	return d
}

// Connect opens another connection to the database, which looks names up as the program does.
func (d *DB) Connect() *pgx.Conn {
	d.T.Helper()
	config, err := pgx.ParseConfig(d.URL)
	require.NoError(d.T, err)
	config.RuntimeParams["search_path"] = session.DefaultSchemas.SearchPath()
	conn, err := pgx.ConnectConfig(d.T.Context(), config)
	require.NoError(d.T, err)
	d.T.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Rows reads a query's rows as text, columns separated by a space.
func (d *DB) Rows(query string, args ...any) []string {
	d.T.Helper()
	rows, err := d.Conn.Query(d.T.Context(), query, args...)
	require.NoError(d.T, err)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		text := ""
		for i, v := range values {
			if i > 0 {
				text += " "
			}
			text += fmt.Sprint(v)
		}
		return text, err
	})
	require.NoError(d.T, err)
	return list
}

// Row returns the only row of a query.
func (d *DB) Row(query string, args ...any) string {
	d.T.Helper()
	list := d.Rows(query, args...)
	require.Len(d.T, list, 1)
	return list[0]
}

// Exec runs a statement.
func (d *DB) Exec(query string, args ...any) {
	d.T.Helper()
	_, err := d.Conn.Exec(d.T.Context(), query, args...)
	require.NoError(d.T, err)
}

// How long an event is waited for that comes at once on a healthy machine, and soon on the busiest one, and how often
// it is looked for.
const (
	WaitLimit = 5 * time.Minute
	WaitTick  = 5 * time.Millisecond
)

// Begin begins a transaction on another connection with a statement, such as one that takes a lock, and leaves it open.
func (d *DB) Begin(statement string, args ...any) pgx.Tx {
	d.T.Helper()
	tx, err := d.Connect().Begin(d.T.Context())
	require.NoError(d.T, err)
	_, err = tx.Exec(d.T.Context(), statement, args...)
	require.NoError(d.T, err)
	return tx
}

// WaitFor polls until a query answers true.
func (d *DB) WaitFor(query string, args ...any) {
	d.T.Helper()
	d.WaitOn(d.Connect(), query, args...)
}

// WaitOn is like WaitFor, on a session that is open already. A new one may have to read any of the system catalogs, and
// so would wait for a test that locks one.
func (d *DB) WaitOn(conn *pgx.Conn, query string, args ...any) {
	d.T.Helper()
	require.Eventually(d.T, func() bool {
		var done bool
		err := conn.QueryRow(d.T.Context(), query, args...).Scan(&done)
		return err == nil && done
	}, WaitLimit, WaitTick, query)
}

// Waiting asks whether so many sessions wait for a lock, of rows or of turns.
const Waiting = `SELECT count(DISTINCT l.pid) >= $1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
	WHERE NOT l.granted AND a.datname = current_database()`

// WaitForLock polls until a statement of this pattern of LIKE waits for a lock.
func (d *DB) WaitForLock(statement string) {
	d.T.Helper()
	d.WaitFor("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = "+
		"'Lock' AND query LIKE $1)", statement)
}

// WaitForEnds polls until no other session has a transaction open, beside those that hold the lock of a lease.
func (d *DB) WaitForEnds() {
	d.T.Helper()
	d.WaitFor(`SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
		AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
		AND application_name NOT LIKE '% lock')`)
}

// FactTables are those whose rows belong to an update.
var FactTables = tables.Names(tables.In(tables.Facts))

// Facts lists what is stored of an offset range: the rows of each fact table, by offset.
func (d *DB) Facts(from, to int64) []string {
	d.T.Helper()
	var list []string
	for _, table := range FactTables {
		for _, row := range d.Rows(fmt.Sprintf(
			"SELECT ledger_offset, count(*) FROM indexer.%s WHERE ledger_offset > $1 AND ledger_offset <= $2 GROUP BY 1 ORDER "+
				"BY 1", table), from, to) {
			list = append(list, table+" "+row)
		}
	}
	return list
}

// Coverage lists the covered ranges.
func (d *DB) Coverage() []string {
	d.T.Helper()
	return d.Rows("SELECT from_exclusive, to_inclusive FROM indexer.coverage ORDER BY 1")
}

// Watermark returns the offset up to which updates are shown.
func (d *DB) Watermark() string {
	d.T.Helper()
	return d.Row("SELECT ledger_offset FROM indexer.checkpoints WHERE stream = 'updates'")
}

// Columns returns the columns of a table of schema indexer, with their types.
func (d *DB) Columns(relation string) map[string]string {
	d.T.Helper()
	columns := map[string]string{}
	for _, row := range d.Rows(`SELECT attname, typname FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid
		WHERE attrelid = ('indexer.' || $1::text)::regclass AND attnum > 0 AND NOT attisdropped`, relation) {
		name, typeName, _ := strings.Cut(row, " ")
		columns[name] = typeName
	}
	return columns
}

// Floors returns the history floor and the state floor.
func (d *DB) Floors() string {
	d.T.Helper()
	return d.Row("SELECT ledger.oldest_offset() || ' ' || coalesce(ledger.state_floor()::text, 'NULL')")
}

// Dump returns what is stored: the rows of the tables as text, without times of the writer's clock, and without what
// can't be counted again.
func (d *DB) Dump(tables ...string) map[string][]string {
	d.T.Helper()
	all := map[string][]string{}
	for _, table := range tables {
		all[table] = Sorted(d.Rows("SELECT (to_jsonb(r) - " +
			"'{updated_at,recorded_at,finished_at,started_at,entries,digest}'::text[])::text FROM indexer." + table + " r"))
	}
	return all
}

// EndLock ends the connection that holds a lease's lock, as a server does to a leader that is paused or vanished.
func (d *DB) EndLock(lease session.Lease) {
	d.T.Helper()
	require.Equal(d.T, "true", d.Row("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = "+
		"current_database() AND application_name = $1",
		"ledgerindexer "+string(lease)+" lock"))
}

// ProjectedTables are those that a batch writes, beside its facts and the queue.
var ProjectedTables = []string{"lifetimes", "active_contracts", "coverage"}

// ForgetUpdates sets a database that began at genesis back to there.
func (d *DB) ForgetUpdates() {
	d.T.Helper()
	d.Exec("TRUNCATE indexer.lookups, indexer." +
		strings.Join(slices.Concat(FactTables, ProjectedTables), ", indexer."))
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 0")
}
