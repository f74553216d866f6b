package main

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

// copySetupCommand is `indexer copy-setup`: it makes in a database what commands made in another one of the same
// ledger.
type copySetupCommand struct{ app.SetupCopy }

func (*copySetupCommand) Help() string {
	return "Makes in a database what the indexer's commands made in another one of the same ledger, in this order: " +
		"redactions (which erase at once), the schema of pqs enable, indexes, typed views with the columns that were " +
		"published, publications, and grants. docs/runbook.md says when, and what it does not copy. What is there stays, " +
		"so it can be done again."
}

func (c *copySetupCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	all, failed := 0, 0
	err := app.CopySetup(ctx, c.SetupCopy, logger, func(part app.SetupPart) {
		all++
		text := "made"
		switch {
		case part.Failure != nil:
			failed++
			text = "can't be made: " + errorText(part.Failure)
		case part.There:
			text = "was there"
		}
		fmt.Fprintf(out, "%s %s %s\n", part.Kind, printable(part.Name), harmless(text))
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d parts can't be made", failed, all)
	}
	return err
}
