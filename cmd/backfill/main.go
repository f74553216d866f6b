// Command backfill runs one-shot jobs against a database: seeding it from a snapshot of the active contracts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// grammar is the command line.
type grammar struct {
	app.Backfill
	config.Log
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	return config.Execute(ctx, "backfill", "Seeds a database from a snapshot of the active contracts.", &grammar{}, args, environ, stdout, stderr)
}

// Run seeds the database.
func (c *grammar) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	progress, err := app.RunBackfill(ctx, c.Backfill, logger, nil)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped with %d entries of the snapshot stored; run the same command again to go on", progress.Entries)
	}
	if err != nil {
		return err
	}
	if progress.Finished {
		fmt.Fprintf(out, "the snapshot at offset %d was stored before; `indexer run` goes on from there\n", progress.At)
		return nil
	}
	fmt.Fprintf(out, "stored %d entries of the snapshot at offset %d; `indexer run` goes on from there\n", progress.Entries, progress.At)
	return nil
}
