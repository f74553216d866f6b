package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/internal/config"
	"ledgerindexer/store"
)

// grantCommand is `indexer grant`: it lets a role of the database read. `indexer revoke` and `indexer grants` are
// below.
type grantCommand struct {
	config.Database
	Role                   string   `arg:"" help:"Role of the database. It has to exist."`
	Parties                []string `env:"-" xor:"sees" required:"" placeholder:"PARTY" help:"Limit the role to what these parties may see. Several are separated by commas."`
	AllParties             bool     `env:"-" xor:"sees" required:"" help:"Let the role see everything."`
	Anyway                 bool     `env:"-" help:"With --parties: accept parties that nothing stored names yet. From their first event on the role sees it."`
	WithTransactionHistory bool     `env:"-" help:"With --parties: let the role see the transaction history too, which is about the whole network."`
}

// longestParty is how long the name of a party may be. Ledgers' have up to some 255 bytes.
const longestParty = 1000

func (*grantCommand) Help() string {
	return "Lets a role read what analysts read: the schema of --views-schema, typed views, and the schema of pqs " +
		"enable, those that come later included. With --parties the database itself shows the role only what these parties " +
		"may see, see docs/access.md. What was granted to the role before is replaced. The indexer may run meanwhile. Use " +
		"the role that runs it, which owns the tables."
}

func (c *grantCommand) Validate() error {
	for _, party := range c.Parties {
		if party == "" || len(party) > longestParty || strings.ContainsRune(party, 0) {
			return fmt.Errorf("--parties: %.100q is no party", party)
		}
	}
	if !c.AllParties && len(c.Parties) == 0 {
		return errors.New("--parties: name a party")
	}
	if c.AllParties && c.WithTransactionHistory {
		return errors.New("--with-transaction-history goes with --parties: who sees everything sees the transaction history")
	}
	if c.AllParties && c.Anyway {
		return errors.New("--anyway goes with --parties")
	}
	return c.Database.Validate()
}

func (c *grantCommand) Run(ctx context.Context, db *store.Store, out config.Output) error {
	granted, err := db.Grant(ctx, store.Reader{
		Role: c.Role, AllParties: c.AllParties, Parties: c.Parties, History: c.WithTransactionHistory, OnlyKnown: !c.Anyway,
	})
	if err != nil {
		return err
	}
	name := pgx.Identifier{c.Role}.Sanitize()
	if c.AllParties {
		fmt.Fprintf(out, "role %s sees everything\n", name)
		return nil
	}
	fmt.Fprintf(out, "role %s sees what %s may see%s\n", name, printable(strings.Join(c.Parties, ", ")),
		historyText(c.WithTransactionHistory))
	for _, party := range granted.Unknown {
		fmt.Fprintf(out, "nothing that is stored names party %s yet: check the spelling\n", printable(party))
	}
	return nil
}

func historyText(with bool) string {
	if with {
		return ", and the transaction history"
	}
	return ""
}

type revokeCommand struct {
	config.Database
	Role string `arg:"" help:"Role of the database."`
}

func (c *revokeCommand) Run(ctx context.Context, db *store.Store, out config.Output) error {
	revoked, err := db.Revoke(ctx, c.Role)
	if err != nil {
		return err
	}
	name := pgx.Identifier{c.Role}.Sanitize()
	if !revoked {
		fmt.Fprintf(out, "nothing was granted to role %s\n", name)
		return nil
	}
	fmt.Fprintf(out, "role %s reads nothing any more\n", name)
	return nil
}

type grantsCommand struct {
	config.Database
	jsonFlag
}

// grantsReport is what the command prints.
type grantsReport struct {
	Roles []store.Reader `json:"roles"`
}

// Run lists what was granted, and roles that were changed since and see more.
func (c *grantsCommand) Run(ctx context.Context, db *store.Store, out config.Output) error {
	readers, err := db.Readers(ctx)
	if err != nil {
		return err
	}
	return c.show(out, &grantsReport{append([]store.Reader{}, readers...)})
}

func (g *grantsReport) print(out io.Writer) error {
	if len(g.Roles) == 0 {
		fmt.Fprintln(out, "nothing was granted")
		return nil
	}
	table := newTable(out, "ROLE", "GRANTED", "SEES")
	var changed []string
	for _, r := range g.Roles {
		sees := "everything"
		if !r.AllParties {
			sees = strings.Join(r.Parties, ", ") + historyText(r.History)
		}
		row(table, r.Role, r.GrantedAt.UTC().Format(time.RFC3339), sees)
		if r.Unlimited != "" {
			changed = append(changed, fmt.Sprintf("role %s was changed since: %s", pgx.Identifier{r.Role}.Sanitize(),
				r.Unlimited))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, text := range changed {
		fmt.Fprintln(out, text)
	}
	return nil
}
