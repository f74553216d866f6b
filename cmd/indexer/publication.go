package main

import (
	"context"
	"fmt"
	"regexp"

	"ledgerindexer/internal/config"
	"ledgerindexer/store"
)

// publicationCommand holds the commands for logical replication.
type publicationCommand struct {
	Enable  publicationEnable  `cmd:"" help:"Make the publications, or add what a newer schema has."`
	Disable publicationDisable `cmd:"" help:"Remove the publications."`
	Schema  publicationSchema  `cmd:"" help:"Print the statements that make the tables of a subscriber."`
}

type publicationFlags struct {
	config.Database
	Publication string `default:"ledger" env:"-" placeholder:"NAME" help:"Name of the publication. A second one, of the watermark, has _watermark behind it. Default: ${default}."`
}

// publicationName leaves room for what the second name has behind it, in the 63 bytes that PostgreSQL keeps of a name.
// A slot, which a subscription names as itself, has no other characters.
var publicationName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,52}$`)

// Validate refuses a name that would be cut, or that needs quotes.
func (f publicationFlags) Validate() error {
	if !publicationName.MatchString(f.Publication) {
		return fmt.Errorf("--publication %q: a name has up to 53 lower case letters, digits and underscores, and begins "+
			"with no digit", f.Publication)
	}
	return f.Database.Validate()
}

type publicationEnable struct{ publicationFlags }

func (*publicationEnable) Help() string {
	return "Publishes the inserts of every event, of snapshots and of names, so that a subscriber has them all and " +
		"keeps what is pruned here, and the watermark. docs/replication.md says how a subscriber is made, and what it has " +
		"to expect. Run it again after each upgrade."
}

func (c *publicationEnable) Run(ctx context.Context, db *store.Store, out config.Output) error {
	if err := db.EnablePublication(ctx, c.Publication); err != nil {
		return err
	}
	fmt.Fprintf(out, "published; run the statements of `indexer publication schema` on the subscriber, and then\n\n"+
		"CREATE SUBSCRIPTION %[1]s CONNECTION '...' PUBLICATION %[1]s, %[1]s_watermark;\n", c.Publication)
	return nil
}

type publicationDisable struct{ publicationFlags }

func (c *publicationDisable) Run(ctx context.Context, db *store.Store, out config.Output) error {
	removed, err := db.DisablePublication(ctx, c.Publication)
	if err != nil {
		return err
	}
	if !removed {
		fmt.Fprintf(out, "there is no publication %s\n", c.Publication)
		return nil
	}
	fmt.Fprintf(out, "publication %s is removed\n", c.Publication)
	return nil
}

type publicationSchema struct{ config.Database }

func (c *publicationSchema) Run(ctx context.Context, db *store.Store, out config.Output) error {
	statements, err := db.SubscriberSchema(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, statements)
	return err
}
