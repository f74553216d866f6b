package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
)

type resetCommand struct {
	config.Database
	ToOffset int64 `required:"" env:"-" placeholder:"OFFSET" help:"The last offset that stays. It becomes the watermark, from which the indexer resumes."`
}

func (*resetCommand) Help() string {
	return "Removes the updates with a greater offset from every relation, with what was derived from them, in one transaction. " +
		"What they brought is read from the participant again when the indexer runs, as long as it is not pruned there. " +
		"The transaction history is not touched. Stop the indexer first; nothing is asked before it is done."
}

func (c *resetCommand) Validate() error {
	if c.ToOffset < 0 {
		return errors.New("--to-offset must be at least 0")
	}
	return c.Database.Validate()
}

// Run resets, and prints how many rows it removed from each table.
func (c *resetCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	report, err := app.RunReset(ctx, c.Database, ledger.Offset(c.ToOffset), logger)
	if err != nil {
		return err
	}
	if len(report.Removed) == 0 {
		fmt.Fprintf(out, "nothing was stored after offset %d\n", c.ToOffset)
		return nil
	}
	fmt.Fprintf(out, "the watermark went back from offset %d to %d\n\n", report.From, c.ToOffset)
	table := newTable(out, "TABLE", "ROWS REMOVED")
	for _, removed := range report.Removed {
		row(table, removed.Relation, fmt.Sprint(removed.Rows))
	}
	return table.Flush()
}
