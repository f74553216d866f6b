package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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

// CopySetup makes in one database what the indexer's commands made in another one: redactions first, because until then
// it has the content, and grants last, because nobody should read what is not complete. What is there stays. made is
// called for each part, with the error if it can't be made; the others are made all the same.
func CopySetup(ctx context.Context, cfg SetupCopy, logger *slog.Logger, made func(kind, name string, err error)) error {
	from, err := cfg.source().Open(ctx, logger)
	if err != nil {
		return fmt.Errorf("--from-database-url: %w", err)
	}
	defer from.Close()
	to, err := cfg.Open(ctx, logger)
	if err != nil {
		return err
	}
	defer to.Close()
	if from.Address() == to.Address() {
		return &config.UsageError{Err: errors.New("--database-url and --from-database-url name the same database")}
	}
	had, err := from.Setup(ctx)
	if err != nil {
		return err
	}
	for _, r := range had.Redactions {
		what := audit.Redaction{ContractID: r.ContractID, UpdateID: r.UpdateID}
		before, err := audit.New(to).RedactedBefore(ctx, what)
		if err == nil && before == nil {
			var report audit.RedactionReport
			report, err = RunRedact(ctx, cfg.Database, what, r.Reason, true, logger)
			err = errors.Join(err, report.VacuumFailed)
		}
		made("redaction", what.String(), err)
	}
	for _, name := range had.PQS {
		made("pqs", name, to.EnablePQS(ctx, name))
	}
	for _, index := range had.Indexes { // before the views, which use them
		_, _, err := to.CreateFieldIndex(ctx, index, true)
		made("index", index.Name, err)
	}
	views := Views{ViewsSchema: ViewsSchema{Database: cfg.Database}}
	_, err = changeViews(ctx, views, logger, func(w *viewsWork) ([]ViewReport, error) {
		for _, v := range had.Views {
			made("view", v.Schema+"."+v.Name+", of "+nameOf(v), w.copy(ctx, v))
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	for _, name := range had.Publications {
		made("publication", name, to.EnablePublication(ctx, name))
	}
	for _, r := range had.Readers {
		_, err := to.Grant(ctx, r)
		made("grant", r.Role, err)
	}
	return ctx.Err()
}

// copy makes a view as another database has it: under its name, with the columns that were published there.
func (w *viewsWork) copy(ctx context.Context, v store.TypedView) error {
	if v.Inferred != nil {
		if err := w.addServed(ctx, true); err != nil {
			return err
		}
	}
	w.cfg.Schema, w.cfg.All, w.replace, w.copied = v.Schema, true, true, &v
	reports, err := w.again(ctx, []store.TypedView{v}, "no package that is stored has it")
	if err == nil && reports[0].Failure != "" {
		err = &ledger.Problem{What: reports[0].Failure, Do: "let the indexer run on until the packages are here, and copy " +
			"again"}
	}
	return err
}
