package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store/audit"
)

// redactCommand is `indexer redact`: it erases the content of a contract or of an update.
type redactCommand struct {
	config.Database
	jsonFlag
	Contract string `xor:"what" required:"" env:"-" placeholder:"ID" help:"Redact this contract, which has to be archived: its creation, key, blob, interface views, look-up, and the exercises of it."`
	Update   string `xor:"what" required:"" env:"-" placeholder:"ID" help:"Redact everything that happened in this update, and the contracts that it created, which have to be archived."`
	Reason   string `required:"" env:"-" placeholder:"TEXT" help:"Why. It is stored with the redaction, where readers see it: name no content."`
	Apply    bool   `env:"-" help:"Erase it. Without this flag nothing is changed."`
}

func (*redactCommand) Help() string {
	return "Erases the content of a contract or of an update for good, wherever it is stored: payload, key, arguments, " +
		"results, blob, interface views, raw copies, and what follows from them. Ids, parties, templates, choices, times " +
		"and offsets stay. What is read again is stored without it, and verify does without it. Without --apply it says " +
		"what would be erased. The indexer may run meanwhile. The write-ahead log, backups, and copies that were made " +
		"elsewhere are not changed."
}

func (c *redactCommand) Validate() error {
	if strings.TrimSpace(c.Reason) == "" {
		return errors.New("--reason is empty")
	}
	if c.Contract == "" && c.Update == "" {
		return errors.New("--contract or --update must name what is to be redacted")
	}
	return c.Database.Validate()
}

// redactReport is what the command prints.
type redactReport struct {
	audit.RedactionReport
	Applied bool `json:"applied"`
}

func (c *redactCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	what := audit.Redaction{ContractID: c.Contract, UpdateID: c.Update}
	report, err := app.RunRedact(ctx, c.Database, what, c.Reason, c.Apply, logger)
	if err != nil {
		return err
	}
	// not null in JSON
	report.Contracts, report.Offsets = append([]string{}, report.Contracts...),
		append([]ledger.Offset{}, report.Offsets...)
	report.Rows = append([]audit.RedactedRows{}, report.Rows...)
	if err := c.show(out, &redactReport{report, c.Apply}); err != nil {
		return err
	}
	if report.VacuumFailed != nil {
		return fmt.Errorf("it is redacted, but the space of the erased versions was not freed: run VACUUM (ANALYZE) "+
			"yourself: %w", report.VacuumFailed)
	}
	return nil
}

func (r *redactReport) print(out io.Writer) error {
	if r.Before != nil {
		fmt.Fprintf(out, "it was %s\n", printable(r.Before.String()))
	}
	for _, offset := range r.Offsets { // of an update
		fmt.Fprintf(out, "the update is at offset %d\n", offset)
	}
	for _, id := range r.Contracts {
		if len(r.Offsets) > 0 {
			fmt.Fprintf(out, "it created contract %s\n", printable(brief(id)))
		}
	}
	table := newTable(out)
	for i, rows := range r.Rows {
		if i == 0 {
			row(table, "TABLE", "ROWS WITH CONTENT")
		}
		row(table, rows.Relation, fmt.Sprint(rows.Rows))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.Rows) == 0 {
		fmt.Fprintln(out, "no content of it is stored")
	}
	if !r.Applied {
		fmt.Fprintln(out, "nothing was changed: add --apply to erase this for good")
		return nil
	}
	fmt.Fprintln(out, "it is redacted, and does not come back when it is read again")
	return nil
}
