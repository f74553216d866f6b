// Command backfill seeds a database from a snapshot of the active contracts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

type grammar struct {
	Snapshot   snapshotCommand        `cmd:"" default:"withargs" help:"Seed a database from a snapshot of the active contracts (the default)."`
	Network    networkSnapshotCommand `cmd:"" help:"Seed the updates of a network from a snapshot of a Scan service, or from its bulk files."`
	Completion config.Completion      `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	config.File
	config.Log
	version.Flag
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	return config.Execute(ctx, "backfill", "Seeds a database from a snapshot of the active contracts.",
		&grammar{}, args, environ, stdout, stderr)
}

type snapshotCommand struct{ app.Backfill }

func (*snapshotCommand) Logged() {}

func (c *snapshotCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	stored, err := app.RunBackfill(ctx, c.Backfill, logger, nil)
	return printSeeded(out, stored, err, "indexer run")
}

// printSeeded prints how far a snapshot is stored; next is the command that continues.
func printSeeded(out io.Writer, stored ledger.SnapshotProgress, err error, next string) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped with %d entries of the snapshot stored; run the same command again to continue",
			stored.Entries)
	}
	if err != nil {
		return err
	}
	if stored.Finished {
		fmt.Fprintf(out, "the snapshot at offset %d was stored before; `%s` continues from there\n", stored.At, next)
		return nil
	}
	fmt.Fprintf(out, "stored %d entries of the snapshot at offset %d; `%s` continues from there\n", stored.Entries,
		stored.At, next)
	return nil
}
