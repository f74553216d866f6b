package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/typed"
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

// SetupPart is what became of one thing that a command made in the other database.
type SetupPart struct {
	Kind, Name string
	There      bool  // it was there before
	Failure    error // why it can't be made
}

// CopySetup makes in one database what the indexer's commands made in another one of the same ledger: redactions first,
// because until then it has the content, and grants last, because nobody should read what is not complete. What is
// there stays. made is called for each part; where one can't be made the others are made all the same, but no grants
// where a redaction can't be made.
func CopySetup(ctx context.Context, cfg SetupCopy, logger *slog.Logger, made func(SetupPart)) error {
	from, to, err := cfg.open(ctx, logger)
	if err != nil {
		return err
	}
	defer from.Close()
	defer to.Close()
	had, err := from.Setup(ctx)
	if err != nil {
		return err
	}
	has, err := to.Setup(ctx)
	if err != nil {
		return err
	}
	content := false // there is content that was redacted in the other one
	part := func(kind, name string, do func() (there bool, err error)) {
		if ctx.Err() != nil {
			return
		}
		there, err := do()
		content = content || kind == "redaction" && err != nil
		if err == nil || ctx.Err() == nil {
			made(SetupPart{Kind: kind, Name: name, There: there, Failure: err})
		}
	}
	for _, r := range had.Redactions {
		what := audit.Redaction{ContractID: r.ContractID, UpdateID: r.UpdateID}
		part("redaction", what.String(), func() (bool, error) {
			before, err := audit.New(to).RedactedBefore(ctx, what)
			if err != nil || before != nil {
				return before != nil, err
			}
			report, err := RunRedact(ctx, cfg.Database, what, r.Reason, true, logger)
			return false, errors.Join(err, report.VacuumFailed)
		})
	}
	for _, name := range had.PQS {
		part("pqs", name, func() (bool, error) { return slices.Contains(has.PQS, name), to.EnablePQS(ctx, name) })
	}
	for _, index := range had.Indexes { // before the views, which use them
		part("index", index.Name, func() (bool, error) {
			_, changed, err := to.CreateFieldIndex(ctx, index, true)
			return !changed, err
		})
	}
	views := Views{ViewsSchema: ViewsSchema{Database: cfg.Database}}
	_, noViews := changeViews(ctx, views, logger, func(w *viewsWork) ([]ViewReport, error) {
		for _, v := range had.Views {
			part("view", v.Schema+"."+v.Name+", of "+nameOf(v), func() (bool, error) { return w.copy(ctx, v, has.Views) })
		}
		return nil, nil
	})
	for _, name := range had.Publications {
		part("publication", name, func() (bool, error) {
			return slices.Contains(has.Publications, name), to.EnablePublication(ctx, name)
		})
	}
	for _, r := range had.Readers {
		part("grant", r.Role, func() (bool, error) {
			there := slices.ContainsFunc(has.Readers, func(h store.Reader) bool {
				return h.Role == r.Role && h.AllParties == r.AllParties && h.History == r.History &&
					slices.Equal(h.Parties, r.Parties)
			})
			if content && !there {
				return false, &ledger.Problem{What: "a redaction before it can't be made, and the role could read what it removes",
					Do: "do what the redaction says, and copy again"}
			}
			_, err := to.Grant(ctx, r)
			return there, err
		})
	}
	if noViews != nil && ctx.Err() == nil {
		return fmt.Errorf("the typed views can't be made: %w", noViews)
	}
	return ctx.Err()
}

// open opens both databases.
func (c SetupCopy) open(ctx context.Context, logger *slog.Logger) (from, to *store.Store, err error) {
	if from, err = c.source().Open(ctx, logger); err != nil {
		return nil, nil, fmt.Errorf("--from-database-url: %w", err)
	}
	if to, err = c.Open(ctx, logger); err != nil {
		from.Close()
		return nil, nil, err
	}
	if from.Address() == to.Address() {
		err = &config.UsageError{Err: errors.New("--database-url and --from-database-url name the same database")}
	} else {
		err = sameLedger(ctx, from, to)
	}
	if err != nil {
		from.Close()
		to.Close()
		return nil, nil, err
	}
	return from, to, nil
}

// sameLedger refuses databases of two participants or networks. One that does not know yet whose it is may be either's.
func sameLedger(ctx context.Context, from, to *store.Store) error {
	for _, read := range []func(*store.Store, context.Context) (string, error){(*store.Store).ParticipantID,
		(*store.Store).Network} {
		one, err := read(from, ctx)
		if err != nil {
			return fmt.Errorf("--from-database-url: %w", err)
		}
		other, err := read(to, ctx)
		if err != nil {
			return err
		}
		if one != "" && other != "" && one != other {
			return &ledger.Problem{
				What: fmt.Sprintf("database %s holds the ledger of %s, and %s that of %s", from.Address(), one, to.Address(),
					other),
				Do: "correct --from-database-url or --database-url: what was made in a database is for its own ledger",
			}
		}
	}
	return nil
}

// copy makes a view as another database has it: under its name, with the columns that were published there. One that
// has these already, perhaps with more behind them, stays.
func (w *viewsWork) copy(ctx context.Context, v store.TypedView, has []store.TypedView) (there bool, err error) {
	for _, h := range has {
		named, same := h.Name == v.Name, isOf(h, subjectOfView(v))
		if h.Schema != v.Schema || !named && !same {
			continue
		}
		begins, err := beginsAs(h, v)
		if err != nil || named && same && begins {
			return true, err
		}
		return false, &ledger.Problem{
			What: fmt.Sprintf("view %s.%s there is of %s, or has other columns", h.Schema, h.Name, nameOf(h)),
			Do:   "drop that (`indexer views drop`), and copy again",
		}
	}
	w.cfg.Schema, w.cfg.All, w.replace, w.copied = v.Schema, true, true, &v
	reports, err := w.again(ctx, []store.TypedView{v}, "no package that is stored has it")
	for _, r := range reports {
		if r.Failure != "" {
			return false, &ledger.Problem{What: r.Failure,
				Do: "let the indexer run on until the packages are here, and copy again; or make the view with `indexer views " +
					"create --dar FILE`"}
		}
	}
	return false, err
}

// beginsAs reports whether the first columns of a view are those of another.
func beginsAs(v, other store.TypedView) (bool, error) {
	columns, err := publishedBy(v)
	if err != nil {
		return false, err
	}
	first, err := publishedBy(other)
	if err != nil || len(columns) < len(first) {
		return false, err
	}
	return slices.EqualFunc(columns[:len(first)], first, func(a, b typed.Column) bool {
		return a.Name == b.Name && a.Type == b.Type && slices.Equal(a.Path, b.Path)
	}), nil
}
