package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/ledger"
)

// exportCommand is `indexer export`: it writes Parquet files of what analysts read.
type exportCommand struct {
	config.Database
	To      string `required:"" env:"-" placeholder:"DIR|URL" help:"Folder of the export, which is made if it is not there, or s3://bucket/prefix in an object store."`
	Through int64  `env:"-" placeholder:"OFFSET" help:"Export up to this offset. Default: up to the last one that is stored."`
	Follow  bool   `env:"-" help:"Continue until stopped: each range is written when it is full and was compared with the ledger."`
	Records bool   `env:"-" help:"Export the records of the transaction history, or those that follow from a network's updates (with --network), in place of updates. Offsets are then their seqs."`
	Check   bool   `env:"-" help:"Read every file that is there first, and compare its SHA-256 with the manifest's."`
	Updates int64  `env:"-" default:"1000000" placeholder:"N" help:"Updates in the files of one range, at most. Default: ${default}."`
}

// Help returns the text of the command's help above its flags.
func (*exportCommand) Help() string {
	return "Writes what analysts read as Parquet files, for engines that scan: one file for each relation and range of " +
		"offsets, and a manifest for each range. Run again, it continues where it was, and writes again what was repaired " +
		"or redacted since. docs/export.md says how the files are read. The indexer may run meanwhile."
}

// Validate refuses flags that don't fit.
func (c *exportCommand) Validate() error {
	switch {
	case c.Through < 0 || c.Updates < 1:
		return errors.New("--through has to be an offset, and --updates at least 1")
	case c.Follow && c.Through > 0:
		return errors.New("--follow has no end: it does not go with --through")
	}
	return c.Database.Validate()
}

// Run exports.
func (c *exportCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	ranges := 0
	err := app.RunExport(ctx, app.Export{
		Database: c.Database, To: c.To, Follow: c.Follow, Check: c.Check,
		Options: export.Options{Through: ledger.Offset(c.Through), Updates: c.Updates, Records: c.Records,
			Wrote: func(m export.Manifest) {
				ranges++
				var bytes int64
				for _, file := range m.Files {
					bytes += file.Bytes
				}
				fmt.Fprintf(out, "after %s %d up to %d: %d rows, %s", m.Unit(), m.From, m.To, m.Rows(), terminal.Bytes(bytes))
				if m.CompleteFrom > m.From {
					fmt.Fprintf(out, "; complete from offset %d on", m.CompleteFrom)
				}
				fmt.Fprintln(out)
			}},
	}, logger)
	if err == nil && ranges == 0 {
		fmt.Fprintln(out, "there is nothing new to export")
	}
	return err
}
