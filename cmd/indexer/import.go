package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/terminal"
)

type importCommand struct {
	config.Database
	Dir string `arg:"" placeholder:"DIR|URL" help:"Folder of the export, or s3://bucket/prefix."`
}

// Help returns the text of the command's help above its flags.
func (*importCommand) Help() string {
	return "Makes a database of the files that `indexer export` wrote, in an empty database: updates and what follows from them, what was active where they begin, " +
		"packages, redactions, and seals, of which each window is compared with the digest that it had. After it was stopped or killed, run it again: it continues where it was. " +
		"`indexer run` continues where the export ends, with the same scope. With --network it is the export of a network. docs/export.md says what an export does not have."
}

// Run imports.
func (c *importCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output, bar *terminal.Bar) error {
	done, err := app.RunImport(ctx, app.Import{Database: c.Database, From: c.Dir, Show: bar.Show}, logger)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped with %d updates imported; run the same command again to continue", done.Updates)
	}
	if err != nil {
		return err
	}
	if done.Entries > 0 {
		fmt.Fprintf(out, "imported %d entries of the snapshot at offset %d\n", done.Entries, done.Floor)
	}
	fmt.Fprintf(out, "imported %d updates; events are complete after offset %d up to %d, where `indexer run` continues\n", done.Updates, done.Floor, done.Watermark)
	fmt.Fprintf(out, "%d packages; %d windows have the digests with which they were sealed\n", done.Packages, done.Seals)
	return nil
}
