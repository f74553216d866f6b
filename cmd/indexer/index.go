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

type indexCommand struct {
	Create indexCreate `cmd:"" help:"Make an index of a field of a template's payload, an interface's view or a choice's argument, or of a template's past or its keys, or a choice's exercises."`
	List   indexList   `cmd:"" help:"List the indexes that were made, and their size."`
	Drop   indexDrop   `cmd:"" help:"Drop an index."`
}

type indexCreate struct {
	app.Index
	Anyway bool `env:"-" help:"Index a text field also where many of its values are the same."`
	Infer  bool `env:"-" help:"Also of a template whose package is not there: infer the field's type from the values that are stored; of a network this is always done."`
}

func (*indexCreate) Help() string {
	return "The index is built partition by partition, while indexing continues; partitions that come have it from the " +
		"beginning. A command that was cut off is repeated: it continues where it ended. Typed views use the index, and " +
		"queries of ledger.created_events with the same expression: see docs/types.md. It slows writing a little."
}

func (c *indexCreate) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	c.Index.Anyway, c.Index.Infer = c.Anyway, c.Infer
	r, err := app.CreateIndex(ctx, c.Index, logger)
	if err != nil {
		return err
	}
	if !r.Changed {
		fmt.Fprintf(out, "%s of %s has the index %s: %s in %d partitions\n", indexedOf(r), strings.Join(r.Of, ", "), r.Name,
			terminal.Bytes(r.Bytes), r.Partitions)
		return nil
	}
	fmt.Fprintf(out, "made index %s of %s of %s: %s in %d partitions, in %s\n",
		r.Name, withType(r), strings.Join(r.Of, ", "), terminal.Bytes(r.Bytes), r.Partitions,
		r.Took.Round(10*time.Millisecond))
	serves := "conditions with =, IN, <, >, BETWEEN"
	switch of := indexedOf(r); {
	case r.Type == "text":
		serves = "conditions with = and IN"
	case r.FieldIndex.Of == store.OfKeys:
		serves = "ledger.created_with_key"
	case of == exercises:
		serves = "conditions on the choice"
	case of == lifetimes:
		serves = "conditions on the template in ledger.active_at and ledger.contract_lifetimes"
	}
	fmt.Fprintf(out, "it serves %s\n", serves)
	if len(r.Refresh) > 0 {
		fmt.Fprintf(out, "%s will use it after `indexer views refresh`\n", strings.Join(r.Refresh, ", "))
	}
	return nil
}

const lifetimes, exercises, keys = "lifetimes by template", "exercises by choice", "contract keys"

// indexedOf says what an index is of.
func indexedOf(r app.IndexReport) string {
	switch {
	case r.Path != "":
		return r.Path
	case r.FieldIndex.Of == store.OfKeys:
		return keys
	case len(r.Subjects) > 0 && r.Subjects[0].Choice != "":
		return exercises
	}
	return lifetimes
}

// withType is indexedOf with the type of a field.
func withType(r app.IndexReport) string {
	if r.Type == "" {
		return indexedOf(r)
	}
	return indexedOf(r) + " (" + r.Type + ")"
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
	Of         string   `json:"of"`
	Templates  []string `json:"templates"` // and interfaces that it was made for
	Bytes      int64    `json:"bytes"`
	Unfinished int      `json:"unfinished_parts"`
}

func (c *indexList) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	reports, err := app.ListIndexes(ctx, c.Database, logger)
	if err != nil {
		return err
	}
	list := indexesReport{[]indexReport{}}
	for _, r := range reports {
		list.Indexes = append(list.Indexes, indexReport{withType(r), append([]string{}, r.Of...), r.Bytes, r.Unfinished})
	}
	return c.show(out, &list)
}

func (l *indexesReport) print(out io.Writer) error {
	if len(l.Indexes) == 0 {
		fmt.Fprintln(out, "no index was made")
		return nil
	}
	table := newTable(out, "INDEX OF", "SIZE", "STATE", "FOR")
	for _, r := range l.Indexes {
		state := "complete"
		if r.Unfinished > 0 {
			state = fmt.Sprintf("%d parts unfinished", r.Unfinished)
		}
		row(table, r.Of, terminal.Bytes(r.Bytes), state, strings.Join(r.Templates, ", "))
	}
	return table.Flush()
}

type indexDrop struct{ app.Index }

func (c *indexDrop) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	r, dropped, err := app.DropIndex(ctx, c.Index, logger)
	if err != nil {
		return err
	}
	if !dropped {
		fmt.Fprintf(out, "index %s stays for others that it was made for\n", r.Name)
		return nil
	}
	fmt.Fprintf(out, "dropped index %s\n", r.Name)
	return nil
}
