package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

// viewsCommand is `indexer views`: it creates, refreshes, lists and drops typed views.
type viewsCommand struct {
	Create  viewsCreate  `cmd:"" help:"Make a view with typed columns for templates, interfaces and choices."`
	Refresh viewsRefresh `cmd:"" help:"Add the columns that came with new versions of packages to the views that there are."`
	List    viewsList    `cmd:"" help:"List the views that were made."`
	Drop    viewsDrop    `cmd:"" help:"Drop views that were made."`
}

type viewsCreate struct {
	app.Views
	darFlag
}

// darFlag is the flag of commands that need types.
type darFlag struct {
	Files []string `name:"dar" env:"-" sep:"none" placeholder:"FILE" help:"DAR file with packages that are not stored, as those of a network never are; may be repeated."`
}

func (*viewsCreate) Help() string {
	return "A view has a row for each creation event of a template, each view of an interface, or each exercise of a " +
		"choice, over all versions of the package, and a column for each field, of its exact type. Views that are there " +
		"are replaced in place: no column goes or gets another type. Indexing continues meanwhile. See docs/types.md."
}

func (c *viewsCreate) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	c.DAR = c.Files
	reports, err := app.CreateViews(ctx, c.Views, logger)
	printViews(out, reports)
	return viewsOutcome(reports, err)
}

type viewsRefresh struct {
	app.ViewsSchema
	darFlag
}

func (c *viewsRefresh) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	c.DAR = c.Files
	reports, err := app.RefreshViews(ctx, c.ViewsSchema, logger)
	if err == nil && len(reports) == 0 {
		fmt.Fprintln(out, "no view was made")
	}
	printViews(out, reports)
	return viewsOutcome(reports, err)
}

type viewsList struct {
	config.Database
	jsonFlag
	Schema string `env:"-" placeholder:"NAME" help:"Only the views in this schema."`
}

func (c *viewsList) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	reports, err := app.ListViews(ctx, app.ViewsSchema{Database: c.Database, Schema: c.Schema}, logger)
	if err != nil {
		return err
	}
	return c.show(out, &viewsReport{append([]app.ViewReport{}, reports...)})
}

// viewsReport is what the command prints.
type viewsReport struct {
	Views []app.ViewReport `json:"views"`
}

func (v *viewsReport) print(out io.Writer) error {
	if len(v.Views) == 0 {
		fmt.Fprintln(out, "no view was made")
		return nil
	}
	table := newTable(out, "VIEW", "COLUMNS", "OF")
	for _, r := range v.Views {
		row(table, r.Schema+"."+r.Name, fmt.Sprint(r.Columns), r.Of)
	}
	return table.Flush()
}

type viewsDrop struct{ app.Views }

func (c *viewsDrop) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	reports, err := app.DropViews(ctx, c.Views, logger)
	for _, r := range reports {
		fmt.Fprintf(out, "dropped %s.%s, of %s\n", r.Schema, r.Name, r.Of)
	}
	if len(reports) == 0 && err == nil {
		fmt.Fprintln(out, "there was no view to drop")
	}
	return err
}

// printViews prints what became of each view, and what people should know of it.
func printViews(out config.Output, reports []app.ViewReport) {
	for _, r := range reports {
		switch {
		case r.Failure != "" && r.Name == "":
			fmt.Fprintf(out, "no view of %s: %s\n", r.Of, r.Failure)
			continue
		case r.Failure != "":
			fmt.Fprintf(out, "%s.%s, of %s: %s\n", r.Schema, r.Name, r.Of, r.Failure)
			continue
		case r.New:
			fmt.Fprintf(out, "made %s.%s, of %s: %d columns\n", r.Schema, r.Name, r.Of, r.Columns)
		case len(r.Changes) == 0:
			fmt.Fprintf(out, "%s.%s, of %s: as it was\n", r.Schema, r.Name, r.Of)
		default:
			fmt.Fprintf(out, "%s.%s, of %s: %d columns\n", r.Schema, r.Name, r.Of, r.Columns)
		}
		for _, change := range append(r.Changes, r.Notes...) {
			fmt.Fprintf(out, "    %s\n", change)
		}
	}
}

// viewsOutcome is the error of a command that could not make some of the views.
func viewsOutcome(reports []app.ViewReport, err error) error {
	failed := 0
	for _, r := range reports {
		if r.Failure != "" {
			failed++
		}
	}
	if err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%d of %d views could not be made; the others are there", failed, len(reports))
}
