package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/export"
	"ledgerindexer/internal/terminal"
	"ledgerindexer/store"
)

type pruneCommand struct {
	config.Database
	Before   string `env:"-" placeholder:"OFFSET|DATE|AGE" help:"Remove the updates before this offset, before this date or time (2026-01-31, 2026-01-31T12:00:00Z), or that were recorded this long before the last one that is stored (400d, 36h)."`
	Exported string `env:"-" placeholder:"DIR|URL" help:"Remove only what the export in this folder, or at s3://bucket/prefix, holds, after comparing its files with their digests and with the rows that would go: as many whole ranges as leave something and, with --before, end before that."`
	Apply    bool   `env:"-" help:"Remove it. Without this flag nothing is changed."`

	before *store.PruneBefore
}

func (*pruneCommand) Help() string {
	return "Removes the updates that are older, and what follows from them, for good, and gives their room on the disk back. " +
		"What was active then stays, with its creation: the database is as if indexing had begun with a snapshot there. " +
		"Without --apply it says what would go. The indexer may run meanwhile. The transaction history is not pruned."
}

func (c *pruneCommand) Validate() error {
	if c.Before == "" && c.Exported == "" {
		return errors.New("give --before, --exported, or both")
	}
	if c.Before != "" {
		before, err := config.ParseBefore(c.Before)
		if err != nil {
			return fmt.Errorf("--before: %w", err)
		}
		c.before = &before
	}
	return c.Database.Validate()
}

func (c *pruneCommand) prune(ctx context.Context, logger *slog.Logger) (plan store.PrunePlan, held export.Held, err error) {
	if c.Exported != "" {
		return app.RunPruneExported(ctx, c.Database, c.before, c.Exported, c.Apply, logger)
	}
	plan, err = app.RunPrune(ctx, c.Database, *c.before, c.Apply, logger)
	return plan, held, err
}

func (c *pruneCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	plan, held, err := c.prune(ctx, logger)
	if err != nil {
		return err
	}
	if held.Why != "" {
		fmt.Fprintf(out, "up to offset %d, and not further: %s\n", held.To, held.Why)
	}
	if plan.Empty() {
		fmt.Fprintf(out, "there is nothing to prune: the events that are stored begin after offset %d\n", plan.From)
		return nil
	}
	went, copied, until := "would go", "would be copied", ""
	if c.Apply {
		went, copied = "went", "were copied"
	}
	if !plan.Until.IsZero() {
		until = ", which was recorded at " + plan.Until.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(out, "updates after offset %d up to %d%s:\n\n", plan.From, plan.Floor, until)
	table := newTable(out, "TABLE", "PARTITIONS", "ROWS", "ON THE DISK")
	for _, t := range plan.Tables {
		row(table, t.Relation, fmt.Sprint(t.Partitions), fmt.Sprint(t.Rows), terminal.Bytes(t.Bytes))
	}
	row(table, "in all", "", fmt.Sprint(plan.Rows()), terminal.Bytes(plan.Bytes()))
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nabout %d rows and %s %s; what was active at offset %d stays: %d contracts\n", plan.Rows(), terminal.Bytes(plan.Bytes()), went, plan.Floor, plan.Active)
	if plan.Copied > 0 {
		fmt.Fprintf(out, "about %d rows that stay are in the same partitions, and %s\n", plan.Copied, copied)
	}
	if !c.Apply {
		fmt.Fprintf(out, "events would be complete, and what was active known, from offset %d on; nothing was changed: add --apply\n", plan.Floor)
		return nil
	}
	fmt.Fprintf(out, "events are complete, and what was active is known, from offset %d on\n", plan.Floor)
	return nil
}
