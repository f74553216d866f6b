package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

// networkSnapshotCommand is `backfill network-snapshot`: it seeds the schemas of a network.
type networkSnapshotCommand struct{ app.NetworkBackfill }

func (*networkSnapshotCommand) Logged() {}

func (*networkSnapshotCommand) Help() string {
	return "Seeds the schemas of a network from a snapshot that the Scan service took, the newest one up to " +
		"--at-offset. Reading it takes about a request for each contract. `indexer run` continues " +
		"from there. With --files it reads all updates from the service's bulk files instead, from the beginning of the " +
		"history on, which takes no request for any of them; with --active-only it seeds from a snapshot in these files, " +
		"and reads the updates in them only to find the creations."
}

func (c *networkSnapshotCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	if c.ActiveOnly && c.Files.Files == "" {
		return &config.UsageError{Err: errors.New("--active-only is for bulk files: give --files, or leave it out to seed " +
			"from a snapshot of the service")}
	}
	if c.Files.Files != "" && !c.ActiveOnly {
		loaded, err := app.RunNetworkFiles(ctx, c.NetworkBackfill, logger)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("stopped with %d updates stored; run the same command again to continue", loaded.Updates)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "stored %d updates from the bulk files, which end at offset %d; events are complete up to offset "+
			"%d, where `indexer run` continues\n",
			loaded.Updates, loaded.End, loaded.Watermark)
		return nil
	}
	stored, err := app.RunNetworkBackfill(ctx, c.NetworkBackfill, logger, nil)
	return printSeeded(out, stored, err, "indexer run")
}
