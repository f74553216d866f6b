package main

import (
	"context"
	"fmt"

	"ledgerindexer/internal/config"
	"ledgerindexer/store"
)

// pqsCommand holds the commands for readers who come from the Participant Query Store.
type pqsCommand struct {
	Enable  pqsEnable  `cmd:"" help:"Make the schema, or bring it up to date after an upgrade."`
	Disable pqsDisable `cmd:"" help:"Remove the schema."`
}

type pqsFlags struct {
	config.Database
	PQSSchema string `name:"pqs-schema" default:"pqs" env:"-" placeholder:"NAME" help:"Schema with the names of the Participant Query Store. Each pair of --tables-schema and --views-schema needs another one. Default: ${default}."`
}

func (f pqsFlags) Validate() error {
	if err := f.Database.Validate(); err != nil {
		return err
	}
	if err := store.ValidatePQS(f.Schemas.Domain(), f.PQSSchema); err != nil {
		return fmt.Errorf("--pqs-schema: %w", err)
	}
	return nil
}

type pqsEnable struct{ pqsFlags }

func (*pqsEnable) Help() string {
	return "Makes functions and views with the names, arguments and columns of the Participant Query Store (PQS) over " +
		"what is indexed, so that queries written for it run with this schema in the search path. What an earlier release " +
		"made is replaced; rights that were granted stay. Run it again after each upgrade."
}

func (c *pqsEnable) Run(ctx context.Context, db *store.Store, out config.Output) error {
	if err := db.EnablePQS(ctx, c.PQSSchema); err != nil {
		return err
	}
	fmt.Fprintf(out, "schema %[1]s answers queries of the Participant Query Store; roles that were granted something "+
		"with\nindexer grant read it, with\n\nALTER ROLE role SET search_path = %[1]s;\n", c.PQSSchema)
	return nil
}

type pqsDisable struct{ pqsFlags }

func (c *pqsDisable) Run(ctx context.Context, db *store.Store, out config.Output) error {
	removed, err := db.DisablePQS(ctx, c.PQSSchema)
	if err != nil {
		return err
	}
	if !removed {
		fmt.Fprintf(out, "there is no schema %s\n", c.PQSSchema)
		return nil
	}
	fmt.Fprintf(out, "schema %s is removed\n", c.PQSSchema)
	return nil
}
