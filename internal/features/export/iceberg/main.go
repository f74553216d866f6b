// Command iceberg reads tables of Apache Iceberg, for the tests of what is exported: with another program's code. It is
// a module of its own, so that no program of the project depends on it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

func main() {
	column := flag.String("column", "", "read only rows in which this column is greater than -after")
	after := flag.Int64("after", 0, "")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	for _, folder := range flag.Args() {
		if err := print(context.Background(), out, folder, *column, *after); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", folder, err)
			os.Exit(1)
		}
	}
	if err := out.Flush(); err != nil {
		os.Exit(1)
	}
}

// print prints how many files of a table are read, and each row as JSON, with the table's name in front. The table's
// version is the one in force.
func print(ctx context.Context, out io.Writer, folder, column string, after int64) error {
	version, err := os.ReadFile(filepath.Join(folder, "metadata", "version-hint.text"))
	if err != nil {
		return err
	}
	metadata := filepath.Join(folder, "metadata", fmt.Sprintf("v%s.metadata.json", version))
	t, err := table.NewFromLocation(ctx, table.Identifier{filepath.Base(folder)}, metadata,
		icebergio.LoadFSFunc(nil, "file://"+metadata), nil)
	if err != nil {
		return err
	}
	var options []table.ScanOption
	if column != "" {
		options = append(options, table.WithRowFilter(iceberg.GreaterThan(iceberg.Reference(column), after)))
	}
	scan := t.Scan(options...)
	files, err := scan.PlanFiles(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\t%d\n", filepath.Base(folder), len(files))
	_, batches, err := scan.ToArrowRecords(ctx)
	if err != nil {
		return err
	}
	for batch, err := range batches {
		if err != nil {
			return err
		}
		var rows bytes.Buffer
		if err := array.RecordToJSON(batch, &rows); err != nil {
			return err
		}
		batch.Release()
		for line := range bytes.Lines(rows.Bytes()) {
			fmt.Fprintf(out, "%s\t%s", filepath.Base(folder), line)
		}
	}
	return nil
}
