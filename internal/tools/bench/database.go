package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/store"
)

// database is a PostgreSQL server, and the database that is measured. Another one with rows, left by an earlier run,
// would keep the server busy while the next run is measured.
type database struct {
	server     *throwaway.Server
	postmaster int           // its process
	pair       store.Schemas // which is measured
}

// warmUpRow is about a kilobyte of log for each row that is written.
const warmUpRow = "SELECT repeat(md5(i::text), 30) FROM generate_series(1, 100000) i"

// of returns the database with another pair of schemas in the place of the one that is measured.
func (d *database) of(pair store.Schemas) *database {
	other := *d
	other.pair = pair
	return &other
}

const databaseName = "bench"

// startDatabase starts the cluster with some more settings, and writes warmUp MB of its log so that it recycles
// segments: until then everything is faster at first and slower later. Without fsync it is in memory, and not a valid
// measurement.
func startDatabase(ctx context.Context, warmUp int, fsync bool, more map[string]string) (*database, error) {
	settings := map[string]string{"max_connections": "100"} // which is the default
	maps.Copy(settings, more)
	server, err := throwaway.Start(ctx, throwaway.Options{Kind: throwaway.Local, Durable: fsync, InMemory: !fsync,
		Settings: settings})
	if err != nil {
		return nil, err
	}
	d := &database{server: server, pair: store.Schemas{Tables: "indexer", Views: "ledger"}}
	if _, err := d.fresh(ctx); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	d.postmaster, err = queryOne[int](ctx, d, "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::integer")
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	for written := 0; written < warmUp; written += 100 {
		if err := d.exec(ctx, "DROP TABLE IF EXISTS warm_up; CREATE TABLE warm_up AS "+warmUpRow); err != nil {
			return nil, errors.Join(fmt.Errorf("warm the log up: %w", err), server.Stop())
		}
	}
	return d, nil
}

func (d *database) url() string { return d.server.URL(databaseName) }

// fresh replaces the database with an empty one and returns its URL.
func (d *database) fresh(ctx context.Context) (string, error) {
	if err := d.server.DropDatabase(ctx, databaseName); err != nil {
		return "", err
	}
	return d.url(), d.server.CreateDatabase(ctx, databaseName)
}

// settle makes the server write everything to disk, so that the next run does not pay for it.
func (d *database) settle(ctx context.Context) error { return d.exec(ctx, "CHECKPOINT") }

// exec runs statements without parameters, each in a transaction of its own.
func (d *database) exec(ctx context.Context, statements string) error {
	conn, err := pgx.Connect(ctx, d.url())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for statement := range strings.SplitSeq(statements, ";") {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// query runs a query with one column.
func query[T any](ctx context.Context, d *database, statement string, args ...any) ([]T, error) {
	conn, err := pgx.Connect(ctx, d.url())
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	return values, nil
}

// queryOne is query for exactly one row.
func queryOne[T any](ctx context.Context, d *database, statement string, args ...any) (value T, err error) {
	values, err := query[T](ctx, d, statement, args...)
	if err != nil {
		return value, err
	}
	if len(values) != 1 {
		return value, fmt.Errorf("%s: %d rows came, not 1", statement, len(values))
	}
	return values[0], nil
}

// listTable is a dictionary that may have as many rows as there are events. Its rows have no offset.
const listTable = "party_lists"

// What the rows of tables belong to, by the column that says so: facts and what a snapshot brings to an offset, what is
// active and what was to that of its activation, records and what follows from each of them to a place in the service's
// order. Lists of parties belong to none.
var (
	ofFacts    = []string{"ledger_offset", listKey}
	ofSnapshot = slices.Concat(ofFacts, ofProjections)
	ofRecords  = []string{"seq"}

	ofProjections = []string{"activated_offset"}
)

const listKey = "party_list_ref"

// Only the part sql has many of these, and nothing copies their rows.
var manyParties = []string{"positions", "position_stakeholders", "balance_totals"}

// table is a table whose rows belong to something.
type table struct{ Name, Place string }

// tables returns the tables that have one of these columns as their place, and those of updates and transactions first.
// A record that follows from an update has an offset too; its place is its seq.
func (d *database) tables(ctx context.Context, places ...string) ([]table, error) {
	conn, err := pgx.Connect(ctx, d.url())
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return tablesOf(ctx, conn, d.pair.Tables, places...)
}

func tablesOf(ctx context.Context, conn *pgx.Conn, schema string, places ...string) ([]table, error) {
	rows, err := conn.Query(ctx, `SELECT c.relname::text, p.place FROM pg_class c CROSS JOIN LATERAL (
			SELECT a.attname::text AS place FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = ANY ($1::text[])
				AND NOT a.attisdropped
			ORDER BY array_position($1::text[], a.attname::text) LIMIT 1) p
		WHERE c.relnamespace = $5::text::regnamespace AND c.relkind IN ('r', 'p') AND p.place = ANY ($2::text[])
			AND CASE WHEN p.place = $3 THEN c.relname = $4 ELSE NOT c.relispartition AND c.relname <> 'checkpoints' END
		ORDER BY c.relname NOT IN ('updates', 'transactions'), 1`, slices.Concat(ofRecords, ofSnapshot), places, listKey,
		listTable, schema)
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	return list, nil
}

// fewRows is the largest number of rows of all other tables.
const fewRows = 5_000

// counts counts the rows of the tables. An unlisted table with many rows is an error: the limit would leave them out.
func (d *database) counts(ctx context.Context) (map[string]int64, error) {
	tables, err := query[string](ctx, d, `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n
		ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition`, d.pair.Tables)
	if err != nil {
		return nil, err
	}
	placed, err := d.tables(ctx, slices.Concat(ofSnapshot, ofRecords)...)
	if err != nil {
		return nil, err
	}
	known := slices.Clone(manyParties)
	for _, t := range placed {
		known = append(known, t.Name)
	}
	counted := map[string]int64{}
	for _, table := range tables {
		n, err := queryOne[int64](ctx, d, "SELECT count(*) FROM "+pgx.Identifier{d.pair.Tables, table}.Sanitize())
		if err != nil {
			return nil, err
		}
		switch {
		case n > 0 && slices.Contains(known, table):
			counted[table] = n
		case n > fewRows:
			return nil, fmt.Errorf("table %s has %d rows, and the benchmark does not know what they are: it goes by their "+
				"columns", table, n)
		}
	}
	return counted, nil
}

// holds checks that there are as many rows as were served.
func (d *database) holds(ctx context.Context, served map[string]int64) (counted map[string]int64, err error) {
	if counted, err = d.counts(ctx); err != nil {
		return nil, err
	}
	for _, table := range slices.Sorted(maps.Keys(served)) {
		if counted[table] != served[table] {
			return nil, fmt.Errorf("table %s has %d rows after the run and should have %d", table, counted[table], served[table])
		}
	}
	return counted, nil
}

// relationSize is the size of a table on disk, in bytes, with its partitions.
type relationSize struct {
	name    string
	rows    int64 // 0: they were not counted
	table   int64 // with its out-of-line values (TOAST)
	indexes int64
}

// sizes returns the sizes of the tables on disk, the largest first.
func (d *database) sizes(ctx context.Context, rows map[string]int64) (list []relationSize, total int64, err error) {
	conn, err := pgx.Connect(ctx, d.url())
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	found, err := conn.Query(ctx, `SELECT r.relname::text, sum(pg_table_size(c.oid))::bigint,
		sum(pg_indexes_size(c.oid))::bigint
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class r
			ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)
		WHERE n.nspname = $1 AND c.relkind = 'r' GROUP BY 1 ORDER BY sum(pg_total_relation_size(c.oid)) DESC`, d.pair.Tables)
	if err != nil {
		return nil, 0, err
	}
	var s relationSize
	_, err = pgx.ForEachRow(found, []any{&s.name, &s.table, &s.indexes}, func() error {
		s.rows = rows[s.name]
		list = append(list, s)
		total += s.table + s.indexes
		return nil
	})
	return list, total, err
}
