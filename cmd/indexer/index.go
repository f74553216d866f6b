package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/internal/config"
	"ledgerindexer/store"
)

// indexCommand is `indexer index`: it creates, lists and drops indexes of fields in payloads, views and arguments.
type indexCommand struct {
	Create indexCreate `cmd:"" help:"Make an index of a field of a template's payload, an interface's view or a choice's argument, or of a template's past or its keys, or a choice's exercises."`
	List   indexList   `cmd:"" help:"List the indexes that were made, and their size."`
	Drop   indexDrop   `cmd:"" help:"Drop an index."`
}

type indexCreate struct {
	app.Index
	darFlag
	Anyway bool `env:"-" help:"Index a text field also where many of its values are the same."`
}

func (*indexCreate) Help() string {
	return "The index is built partition by partition, while indexing continues; partitions that come have it from the " +
		"beginning. A command that was cut off is repeated: it continues where it ended. Typed views use the index, and " +
		"queries of ledger.created_events with the same expression: see docs/types.md. It slows writing a little."
}

func (c *indexCreate) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	c.Index.Anyway, c.Index.DAR = c.Anyway, c.Files
	r, err := app.CreateIndex(ctx, c.Index, logger)
	if err != nil {
		return err
	}
	if !r.Changed {
		fmt.Fprintf(out, "%s has the index %s: %s in %d partitions\n", indexedOf(r.FieldIndex), r.Name,
			terminal.Bytes(r.Bytes), r.Partitions)
		return nil
	}
	fmt.Fprintf(out, "made index %s of %s: %s in %d partitions, in %s\n", r.Name, indexedOf(r.FieldIndex),
		terminal.Bytes(r.Bytes), r.Partitions, r.Took.Round(10*time.Millisecond))
	serves := "conditions with =, IN, <, >, BETWEEN"
	switch {
	case r.Type == "text":
		serves = "conditions with = and IN"
	case r.Path != "":
	case r.Table == store.IndexCreated:
		serves = "ledger.created_with_key"
	case r.Table == store.IndexExercised:
		serves = "conditions on the choice"
	default:
		serves = "conditions on the template in ledger.active_at and ledger.contract_lifetimes"
	}
	fmt.Fprintf(out, "it serves %s\n", serves)
	if len(r.Refresh) > 0 {
		fmt.Fprintf(out, "%s will use it after `indexer views refresh`\n", strings.Join(r.Refresh, ", "))
	}
	return nil
}

// indexedOf says what an index is of, in all templates, interfaces or choices that have it.
func indexedOf(x store.FieldIndex) string {
	switch {
	case x.Path != "":
		of := map[store.IndexTable]string{store.IndexCreated: "payloads", store.IndexViews: "interface views",
			store.IndexExercised: "choice arguments"}[x.Table]
		return fmt.Sprintf("%s (%s) of %s", x.Path, x.Type, of)
	case x.Table == store.IndexCreated:
		return "contract keys"
	case x.Table == store.IndexExercised:
		return "exercises by choice"
	}
	return "lifetimes by template"
}

type indexList struct {
	config.Database
	jsonFlag
}

// indexesReport is what the command prints.
type indexesReport struct {
	Indexes []indexReport `json:"indexes"`
}

type indexReport struct {
	Name       string `json:"name"`
	Of         string `json:"of"`
	Bytes      int64  `json:"bytes"`
	Unfinished int    `json:"unfinished_parts"`
}

func (c *indexList) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	made, err := app.ListIndexes(ctx, c.Database, logger)
	if err != nil {
		return err
	}
	list := indexesReport{[]indexReport{}}
	for _, x := range made {
		list.Indexes = append(list.Indexes, indexReport{x.Name, indexedOf(x), x.Bytes, x.Unfinished})
	}
	return c.show(out, &list)
}

func (l *indexesReport) print(out io.Writer) error {
	if len(l.Indexes) == 0 {
		fmt.Fprintln(out, "no index was made")
		return nil
	}
	table := newTable(out, "INDEX", "OF", "SIZE", "STATE")
	for _, r := range l.Indexes {
		state := "complete"
		if r.Unfinished > 0 {
			state = fmt.Sprintf("%d parts unfinished", r.Unfinished)
		}
		row(table, r.Name, r.Of, terminal.Bytes(r.Bytes), state)
	}
	return table.Flush()
}

type indexDrop struct {
	config.Database
	Name string `arg:"" help:"Its name, as the list has it."`
}

func (c *indexDrop) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	if err := app.DropIndex(ctx, c.Database, c.Name, logger); err != nil {
		return err
	}
	fmt.Fprintf(out, "dropped index %s\n", c.Name)
	return nil
}
