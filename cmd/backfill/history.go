package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/progress"
)

type historyCommand struct{ app.Fill }

// Logged says that the last words belong into the log.
func (*historyCommand) Logged() {}

// Help is what the command's own help says beside its flags.
func (*historyCommand) Help() string {
	return "Reads the updates from before indexing began, in the database's own scope, which the flags must name as the daemon's do, " +
		"and stores what is not there yet. It can be stopped and started at any time, with any ranges, while the indexer runs or " +
		"not. Once history is there from the beginning of the ledger on, what was active is known at every offset; before that, " +
		"from where it was known when indexing began, or, with --with-snapshot, from --from on."
}

// Run fills in history, and says how far it reaches.
func (c *historyCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output, bar *progress.Bar) error {
	c.Show = bar.Show
	filled, err := app.RunFill(ctx, c.Fill, logger)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped with %d updates filled in; run the same command again to go on", filled.Updates)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, report(filled))
	return nil
}

// report says what came of a history backfill.
func report(filled ingest.Filled) string {
	text := fmt.Sprintf("filled in %d updates after offset %d up to %d", filled.Updates, filled.Range.From, filled.Range.To)
	if filled.Range.From >= filled.Range.To {
		text = "there was no history to fill in"
	}
	if snapshot := filled.Snapshot; snapshot != nil {
		text += fmt.Sprintf("; %d entries of the snapshot at offset %d are stored", snapshot.Entries, snapshot.At)
	}
	text += fmt.Sprintf("; events are complete after offset %d", filled.Bounds.Floor)
	if known := filled.Bounds.StateFloor; known != nil {
		text += fmt.Sprintf(", and what was active is known from offset %d on", *known)
	}
	if filled.Range.To > 0 && filled.Range.To < filled.Bounds.Floor {
		text += fmt.Sprintf("; history after offset %d up to %d is missing", filled.Range.To, filled.Bounds.Floor)
	}
	return text
}
