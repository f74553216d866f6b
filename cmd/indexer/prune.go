package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// pruneCommand is `indexer prune`: it removes what is older than an offset, a time or an age.
type pruneCommand struct {
	config.Database
	jsonFlag
	Before   string `env:"-" placeholder:"OFFSET|DATE|AGE" help:"Remove the updates before this offset, before this date or time (2026-01-31, 2026-01-31T12:00:00Z), or that were recorded this long before the last one that is stored (400d, 36h)."`
	Exported string `env:"-" placeholder:"DIR|URL" help:"Remove only what the export in this folder, or at s3://bucket/prefix, holds, whose files are there with the sizes that their manifests say (indexer export --check compares their digests): as many whole ranges as leave something and, with --before, end before that."`
	Apply    bool   `env:"-" help:"Remove it. Without this flag nothing is changed."`

	before *store.PruneBefore
}

func (*pruneCommand) Help() string {
	return "Removes the updates that are older, and what follows from them, for good, and gives their room on the disk " +
		"back. What was active then stays, with its creation: the database is as if indexing had begun with a snapshot " +
		"there. Without --apply it says what would go. The indexer may run meanwhile. The transaction history is not pruned."
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

func (c *pruneCommand) prune(ctx context.Context,
	logger *slog.Logger) (plan store.PrunePlan, held export.Held, err error) {
	if c.Exported != "" {
		return app.RunPruneExported(ctx, c.Database, c.before, c.Exported, c.Apply, logger)
	}
	plan, err = app.RunPrune(ctx, c.Database, *c.before, c.Apply, logger)
	return plan, held, err
}

// pruneReport is what the command prints.
type pruneReport struct {
	store.PrunePlan
	ExportedTo *ledger.Offset `json:"exported_to,omitempty"` // how far the export holds all, where that is not far enough
	Why        string         `json:"why,omitempty"`         // it does not hold more
	Applied    bool           `json:"applied"`
}

func (c *pruneCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	plan, held, err := c.prune(ctx, logger)
	if err != nil {
		return err
	}
	plan.Tables = append([]store.PrunedTable{}, plan.Tables...) // not null in JSON
	report := pruneReport{PrunePlan: plan, Why: held.Why, Applied: c.Apply && !plan.Empty()}
	if held.Why != "" {
		report.ExportedTo = &held.To
	}
	return c.show(out, &report)
}

func (r *pruneReport) print(out io.Writer) error {
	if r.Why != "" {
		fmt.Fprintf(out, "up to offset %d, and not further: %s\n", *r.ExportedTo, r.Why)
	}
	if r.Empty() {
		fmt.Fprintf(out, "there is nothing to prune: the events that are stored begin after offset %d\n", r.From)
		return nil
	}
	went, copied, until := "would go", "would be copied", ""
	if r.Applied {
		went, copied = "went", "were copied"
	}
	if !r.Until.IsZero() {
		until = ", which was recorded at " + r.Until.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(out, "updates after offset %d up to %d%s:\n\n", r.From, r.Floor, until)
	table := newTable(out, "TABLE", "PARTITIONS", "ROWS", "ON THE DISK")
	for _, t := range r.Tables {
		row(table, t.Relation, fmt.Sprint(t.Partitions), fmt.Sprint(t.Rows), terminal.Bytes(t.Bytes))
	}
	row(table, "in all", "", fmt.Sprint(r.Rows()), terminal.Bytes(r.Bytes()))
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nabout %d rows and %s %s; what was active at offset %d stays: %d contracts\n", r.Rows(),
		terminal.Bytes(r.Bytes()), went, r.Floor, r.Active)
	if r.Copied > 0 {
		fmt.Fprintf(out, "about %d rows that stay are in the same partitions, and %s\n", r.Copied, copied)
	}
	if !r.Applied {
		fmt.Fprintf(out, "events would be complete, and what was active known, from offset %d on; nothing was changed: add "+
			"--apply\n", r.Floor)
		return nil
	}
	fmt.Fprintf(out, "events are complete, and what was active is known, from offset %d on\n", r.Floor)
	return nil
}
