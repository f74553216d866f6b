package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// limit is the rows that one of our runs left, ready to be written by psql.
type limit struct {
	folder string
	db     *database
	tables []table          // with rows; the first one is cut evenly
	rows   map[string]int64 // of the tables

	derived map[string]int64 // rows derived from them
}

// limitBatch is how many rows of the first table one transaction of the limit writes, with the corresponding rows of
// the others. It is so large that commits cost next to nothing.
const limitBatch = 20_000

// connections is how many psql write at once.
const connections = 2

// takeLimit copies the rows of the database into files for psql, cut into a part for each connection, and keeps its
// schema with the partitions and the rows of all other tables. The rows are those of tables with one of these columns.
func takeLimit(ctx context.Context, db *database, folder string, places []string) (*limit, error) {
	l := &limit{folder: folder, db: db}
	counted, err := db.counts(ctx)
	if err != nil {
		return nil, err
	}
	l.rows, l.derived = map[string]int64{}, map[string]int64{}
	projected, err := db.tables(ctx, ofProjections...)
	if err != nil {
		return nil, err
	}
	for _, t := range projected {
		l.derived[t.Name] = counted[t.Name]
	}
	tables, err := db.tables(ctx, places...)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if counted[t.Name] > 0 {
			l.tables = append(l.tables, t)
			l.rows[t.Name] = counted[t.Name]
		}
	}
	if len(l.tables) == 0 {
		return nil, errors.New("the run left no rows")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if err := l.dumpSchema(ctx); err != nil {
		return nil, err
	}
	return l, l.dumpRows(ctx)
}

// dumpSchema writes everything except the rows that the limit writes and those derived from them.
func (l *limit) dumpSchema(ctx context.Context) error {
	args := []string{"--no-owner", "--file=" + l.schema()}
	tables, err := l.db.tables(ctx, slices.Concat(ofSnapshot, ofRecords)...)
	if err != nil {
		return err
	}
	for _, t := range tables {
		name := "--exclude-table-data=" + l.db.pair.Tables + "." + t.Name
		args = append(args, name, name+"_p*", name+"_to*")
	}
	out, err := exec.CommandContext(ctx, "pg_dump", append(args, l.db.url())...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_dump (it must be in PATH): %w: %s", err, out)
	}
	return nil
}

func (l *limit) schema() string { return filepath.Join(l.folder, "schema.sql") }
func (l *limit) script(part int) string {
	return filepath.Join(l.folder, fmt.Sprintf("part%d.sql", part))
}

// dumpRows writes a script for each connection, and its files.
func (l *limit) dumpRows(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, l.db.url())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ends, err := query[int64](ctx, l.db,
		fmt.Sprintf(`SELECT %[1]s FROM (SELECT %[1]s, row_number() OVER (ORDER BY %[1]s) AS n
		FROM %[4]s.%[2]s) x WHERE n %% %[3]d = 0 ORDER BY 1`, l.tables[0].Place, l.tables[0].Name, limitBatch,
			l.db.pair.Tables))
	if err != nil {
		return err
	}
	ends = append(slices.Compact(ends), 1<<62)
	from := int64(-1)
	for part := range connections {
		var script strings.Builder
		for i := part * len(ends) / connections; i < (part+1)*len(ends)/connections; i++ {
			script.WriteString("BEGIN;\n")
			for _, t := range l.tables {
				file := filepath.Join(l.folder, fmt.Sprintf("%s.%d", t.Name, i))
				after, upTo := from, ends[i]
				if t.Name == listTable { // it is numbered from 1 on
					after, upTo = l.rows[t.Name]*int64(i)/int64(len(ends)), l.rows[t.Name]*int64(i+1)/int64(len(ends))
				}
				rows, err := l.dump(ctx, conn, t, after, upTo, file)
				if err != nil {
					return err
				}
				if rows > 0 {
					fmt.Fprintf(&script, "\\copy %s.%s from '%s' with (format binary)\n", l.db.pair.Tables, t.Name,
						strings.ReplaceAll(file, "'", "''"))
				}
			}
			script.WriteString("COMMIT;\n")
			from = ends[i]
		}
		if err := os.WriteFile(l.script(part), []byte(script.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// dump copies the rows of a table whose place is above after, and at most upTo, into a file.
func (l *limit) dump(ctx context.Context, conn *pgx.Conn, t table, after, upTo int64,
	file string) (rows int64, err error) {
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	tag, err := conn.PgConn().CopyTo(ctx, out,
		fmt.Sprintf(`COPY (SELECT * FROM %[5]s.%[1]s WHERE %[2]s > %[3]d AND %[2]s <= %[4]d ORDER BY %[2]s)
		TO STDOUT (FORMAT binary)`, t.Name, t.Place, after, upTo, l.db.pair.Tables))
	if err != nil {
		return 0, fmt.Errorf("copy the rows of %s: %w", t.Name, err)
	}
	return tag.RowsAffected(), out.Flush()
}

// write runs psql to write the rows into a new database with the same schema, and returns the time it took. It counts
// the rows afterwards.
func (l *limit) write(ctx context.Context) (u usage, err error) {
	url, err := l.db.fresh(ctx)
	if err != nil {
		return u, err
	}
	if err := psql(ctx, url, l.schema()); err != nil {
		return u, err
	}
	if err := l.db.settle(ctx); err != nil {
		return u, err
	}
	u, err = l.db.measured(func() error {
		group, groupCtx := errgroup.WithContext(ctx)
		for part := range connections {
			group.Go(func() error { return psql(groupCtx, url, l.script(part)) })
		}
		return group.Wait()
	})
	if err != nil {
		return u, err
	}
	_, err = l.db.holds(ctx, l.rows)
	return u, err
}

// psql runs a script.
func psql(ctx context.Context, url, script string) error {
	cmd := exec.CommandContext(ctx, "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output="+os.DevNull,
		"--file="+script, url)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("psql (it must be in PATH): %w: %s", err, out)
	}
	return nil
}

// remove removes the files.
func (l *limit) remove() error { return os.RemoveAll(l.folder) }
