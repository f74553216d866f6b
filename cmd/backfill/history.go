package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/terminal"
)

type historyCommand struct{ app.Fill }

func (*historyCommand) Logged() {}

func (*historyCommand) Help() string {
	return "Reads the updates from before indexing began and stores those that are missing. The flags of the scope must " +
		"be the daemon's. It can be stopped and started at any time, with any ranges, while the indexer runs or not. When " +
		"the updates are stored from the beginning of the ledger on, the active contracts are known at every offset; until " +
		"then from the offset at which indexing began or, with --with-snapshot, from --from on."
}

func (c *historyCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output, bar *terminal.Bar) error {
	c.Show = bar.Show
	filled, err := app.RunFill(ctx, c.Fill, logger)
	return printFilled(out, filled, err)
}

// printFilled prints what a history backfill did.
func printFilled(out io.Writer, filled ingest.Filled, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped with %d updates filled in; run the same command again to continue", filled.Updates)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, report(filled))
	return nil
}

// report returns the result of a history backfill as a sentence.
func report(filled ingest.Filled) string {
	text := fmt.Sprintf("filled in %d updates after offset %d up to %d", filled.Updates, filled.Range.From,
		filled.Range.To)
	switch {
	case filled.Changed > 0:
		text = fmt.Sprintf("filled in %d offsets, with %d updates, in the scope that was changed", filled.Changed,
			filled.Updates)
	case filled.Range.From >= filled.Range.To:
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
