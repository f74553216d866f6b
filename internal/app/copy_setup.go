package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// SetupCopy names two databases of one ledger.
type SetupCopy struct {
	config.Database // the one that gets what the other one has
	config.FromDatabase
}

// source is the database that has it.
func (c SetupCopy) source() config.Database {
	return config.Database{DatabaseURL: c.FromDatabaseURL, Schemas: c.Schemas}
}

// Validate refuses URLs as config.Database does.
func (c SetupCopy) Validate() error {
	if err := c.source().Validate(); err != nil {
		return fmt.Errorf("--from-database-url, as %w", err)
	}
	return c.Database.Validate()
}

// SetupPart is one thing that hangs on a database: a redaction, a schema of `pqs enable`, a typed view, an index, a
// publication or a grant.
type SetupPart struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	There   bool   `json:"there"` // the other database has it
	Failure string `json:"failure,omitempty"`

	copy func(context.Context) error
}

// SetupReport is what hangs on a database, and what of it the other one has.
type SetupReport struct {
	From   string      `json:"from"`
	To     string      `json:"to"`
	Parts  []SetupPart `json:"parts"`
	Beyond []string    `json:"not_copied"` // what no command of the indexer made
}

// CopySetup lists what hangs on one database, in the order in which it is made, and makes it in another one if it is to
// be applied. What can't be made is reported, and the rest is made. Done again it makes what is missing.
func CopySetup(ctx context.Context, cfg SetupCopy, apply bool, logger *slog.Logger) (r *SetupReport, err error) {
	from, err := cfg.source().Open(ctx, logger)
	if err != nil {
		return nil, fmt.Errorf("--from-database-url: %w", err)
	}
	defer from.Close()
	to, err := cfg.Open(ctx, logger)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	if from.Address() == to.Address() {
		return nil, &config.UsageError{Err: errors.New("--database-url and --from-database-url name the same database")}
	}
	c := setupCopy{SetupReport: SetupReport{From: from.Address(), To: to.Address()}, cfg: cfg, from: from, to: to,
		logger: logger}
	for _, list := range []func(context.Context) error{c.redactions, c.pqs, c.views, c.indexes, c.publications, c.grants} {
		if err := list(ctx); err != nil {
			return nil, err
		}
	}
	if c.Beyond, err = from.BeyondSetup(ctx); err != nil {
		return nil, err
	}
	if apply {
		err = c.make(ctx)
	}
	return &c.SetupReport, err
}

type setupCopy struct {
	SetupReport
	cfg      SetupCopy
	from, to *store.Store
	types    *viewsWork // of to
	logger   *slog.Logger
}

// make makes what is missing. Only an error that isn't about one part ends it.
func (c *setupCopy) make(ctx context.Context) (err error) {
	if c.types, err = openTypes(ctx, Views{ViewsSchema: ViewsSchema{Database: c.cfg.Database}}, c.logger); err != nil {
		return err
	}
	defer c.types.db.Close()
	c.types.replace = true
	if c.types.indexes, err = c.from.FieldIndexes(ctx); err != nil { // which the views will have
		return err
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.There || p.Failure != "" {
			continue
		}
		if err := p.copy(ctx); ctx.Err() != nil {
			return err
		} else if err != nil {
			p.Failure = failureOf(err)
		}
		p.There = p.Failure == ""
	}
	return nil
}

func (c *setupCopy) add(kind, name string, there bool, copy func(context.Context) error) {
	c.Parts = append(c.Parts, SetupPart{Kind: kind, Name: name, There: there, copy: copy})
}

// redactions come first: until then the other database has the content.
func (c *setupCopy) redactions(ctx context.Context) error {
	list, err := c.from.OrderedRedactions(ctx)
	for _, r := range list {
		what := audit.Redaction{ContractID: r.ContractID, UpdateID: r.UpdateID}
		before, err := audit.New(c.to).RedactedBefore(ctx, what)
		if err != nil {
			return err
		}
		c.add("redaction", what.String(), before != nil, func(ctx context.Context) error {
			report, err := RunRedact(ctx, c.cfg.Database, what, r.Reason, true, c.logger)
			return errors.Join(err, report.VacuumFailed)
		})
	}
	return err
}

func (c *setupCopy) pqs(ctx context.Context) error {
	return c.named(ctx, "pqs", (*store.Store).PQSSchemas, c.to.EnablePQS)
}

func (c *setupCopy) publications(ctx context.Context) error {
	return c.named(ctx, "publication", (*store.Store).Publications, c.to.EnablePublication)
}

// named adds what its name says whole.
func (c *setupCopy) named(ctx context.Context, kind string, list func(*store.Store, context.Context) ([]string, error),
	enable func(ctx context.Context, name string) error) error {
	names, err := list(c.from, ctx)
	if err != nil {
		return err
	}
	there, err := list(c.to, ctx)
	for _, name := range names {
		c.add(kind, name, slices.Contains(there, name), func(ctx context.Context) error { return enable(ctx, name) })
	}
	return err
}

func (c *setupCopy) views(ctx context.Context) error {
	list, err := c.from.TypedViews(ctx, "")
	if err != nil {
		return err
	}
	there, err := c.to.TypedViews(ctx, "")
	for _, v := range list {
		same := func(o store.TypedView) bool {
			return o.Schema == v.Schema && o.Name == v.Name && nameOf(o) == nameOf(v) && bytes.Equal(o.Columns, v.Columns)
		}
		c.add("view", v.Schema+"."+v.Name+", of "+nameOf(v), slices.ContainsFunc(there, same),
			func(ctx context.Context) error { return c.types.copy(ctx, v) })
	}
	return err
}

func (c *setupCopy) indexes(ctx context.Context) error {
	list, err := c.from.FieldIndexes(ctx)
	if err != nil {
		return err
	}
	there, err := c.to.FieldIndexes(ctx)
	for _, index := range list {
		same := func(o store.FieldIndex) bool { return o.Name == index.Name && o.Unfinished == 0 }
		c.add("index", index.Name, slices.ContainsFunc(there, same), func(ctx context.Context) error {
			_, _, err := c.to.CreateFieldIndex(ctx, index, true)
			return err
		})
	}
	return err
}

// grants come last: nobody reads what is not complete.
func (c *setupCopy) grants(ctx context.Context) error {
	list, err := c.from.Readers(ctx)
	if err != nil {
		return err
	}
	there, err := c.to.Readers(ctx)
	for _, r := range list {
		same := func(o store.Reader) bool {
			return o.Role == r.Role && o.AllParties == r.AllParties && o.History == r.History &&
				slices.Equal(o.Parties, r.Parties)
		}
		c.add("grant", r.Role, slices.ContainsFunc(there, same), func(ctx context.Context) error {
			_, err := c.to.Grant(ctx, r)
			return err
		})
		if err := c.to.CheckReader(ctx, r); err != nil {
			c.Parts[len(c.Parts)-1].Failure = failureOf(err)
		}
	}
	return err
}

// failureOf is an error with what to do about it.
func failureOf(err error) string {
	if p, ok := errors.AsType[*ledger.Problem](err); ok {
		return err.Error() + ": " + p.Do
	}
	return err.Error()
}
