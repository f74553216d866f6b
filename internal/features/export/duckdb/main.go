// Command duckdb runs a query in DuckDB, for the tests of what is exported: it reads the files with another program's
// code. It is a module of its own, so that no program of the project depends on the engine.
package main

import (
	"bufio"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints the rows of the query that it reads: texts, with tabs between them.
func run(in io.Reader, out io.Writer) error {
	query, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // so that the setting holds for the query
	if _, err := db.Exec("SET TimeZone = 'UTC'"); err != nil {
		return err
	}
	rows, err := db.Query(string(query))
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	values, targets := make([]string, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		fmt.Fprintln(buffered, strings.Join(values, "\t"))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return buffered.Flush()
}
