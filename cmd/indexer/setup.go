package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

type copySetupCommand struct {
	app.SetupCopy
	jsonFlag
	Apply bool `env:"-" help:"Make what is missing. Without this flag nothing is changed."`
}

func (*copySetupCommand) Help() string {
	return "Gives a database what hangs on another one of the same ledger, in this order: redactions, the schema of pqs " +
		"enable, typed views with the columns that were published, indexes, publications, and grants. docs/runbook.md says " +
		"when. Without --apply it says what is missing. Done again it makes what is missing; nothing is removed. It " +
		"lists what no command of the indexer made, and copies nothing of that."
}

func (c *copySetupCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	report, err := app.CopySetup(ctx, c.SetupCopy, c.Apply, logger)
	if err != nil {
		return err
	}
	if err := c.show(out, &setupReport{report, c.Apply}); err != nil {
		return err
	}
	failed := 0
	for _, p := range report.Parts {
		if p.Failure != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d parts can't be made", failed, len(report.Parts))
	}
	return nil
}

// setupReport is what the command prints.
type setupReport struct {
	*app.SetupReport
	Applied bool `json:"applied"`
}

func (r *setupReport) print(out io.Writer) error {
	fmt.Fprintf(out, "what hangs on %s, and is there in %s:\n", r.From, r.To)
	table := newTable(out)
	missing := 0
	for _, p := range r.Parts {
		state := "there"
		switch {
		case p.Failure != "":
			state = "can't be made: " + printable(p.Failure)
		case !p.There:
			missing++
			state = "missing"
		}
		row(table, p.Kind, printable(p.Name), state)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i, text := range r.Beyond {
		if i == 0 {
			fmt.Fprintln(out, "not copied, because no command of the indexer made it:")
		}
		fmt.Fprintf(out, "  %s\n", printable(text))
	}
	if !r.Applied && missing > 0 {
		fmt.Fprintf(out, "nothing was changed: add --apply to make the %d that are missing\n", missing)
	}
	return nil
}
