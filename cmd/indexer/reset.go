package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// resetCommand is `indexer reset`: it removes everything after an offset.
type resetCommand struct {
	config.Database
	jsonFlag
	ToOffset int64 `required:"" env:"-" placeholder:"OFFSET" help:"The last offset that stays. It becomes the watermark, from which the indexer resumes."`
	Apply    bool  `env:"-" help:"Remove it. Without this flag nothing is changed."`
}

func (*resetCommand) Help() string {
	return "Removes the updates with a greater offset from every relation, with what was derived from them, in one " +
		"transaction. What they brought is read from the participant again when the indexer runs, as long as it is not " +
		"pruned there. The transaction history is not touched. Without --apply it says what would go. Stop the indexer " +
		"before --apply."
}

func (c *resetCommand) Validate() error {
	if c.ToOffset < 0 {
		return errors.New("--to-offset must be at least 0")
	}
	return c.Database.Validate()
}

// resetReport is what the command prints.
type resetReport struct {
	store.ResetReport
	Applied bool `json:"applied"`
}

// Run resets, or says what a reset would do, and prints how many rows of each table that concerns.
func (c *resetCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	report, err := app.RunReset(ctx, c.Database, ledger.Offset(c.ToOffset), c.Apply, logger)
	if err != nil {
		return err
	}
	return c.show(out, &resetReport{report, c.Apply})
}

func (r *resetReport) print(out io.Writer) error {
	if len(r.Removed) == 0 {
		_, err := fmt.Fprintf(out, "nothing is stored after offset %d\n", r.To)
		return err
	}
	went, title := "would go", "ROWS"
	if r.Applied {
		went, title = "went", "ROWS REMOVED"
	}
	fmt.Fprintf(out, "the watermark %s back from offset %d to %d\n\n", went, r.From, r.To)
	table := newTable(out, "TABLE", title)
	for _, removed := range r.Removed {
		row(table, removed.Relation, fmt.Sprint(removed.Rows))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if !r.Applied {
		fmt.Fprintln(out, "\nthe indexer would read it again, as far as its source still serves it; nothing was changed: "+
			"add --apply")
	}
	return nil
}
