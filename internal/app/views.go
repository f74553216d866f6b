package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/typed"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// ViewReport is what became of a view.
type ViewReport struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"name"` // empty where there is no view, because of Failure
	Of      string   `json:"of"`   // what it is of
	Columns int      `json:"columns"`
	New     bool     `json:"new,omitempty"`
	Changes []string `json:"changes,omitempty"` // of one that was there before
	Notes   []string `json:"notes,omitempty"`   // what is not known of it
	Failure string   `json:"failure,omitempty"`
}

// CreateViews makes views of templates, interfaces and their choices, and replaces those that are there. With All, what
// can't be made is reported, and the others are made; else that is the error.
func CreateViews(ctx context.Context, cfg Views, logger *slog.Logger) ([]ViewReport, error) {
	return changeViews(ctx, cfg, logger, func(w *viewsWork) ([]ViewReport, error) {
		owners, err := w.chosen()
		if err != nil {
			return nil, err
		}
		w.names = typed.ViewNames(w.subjects)
		var reports []ViewReport
		for _, subjects := range owners {
			made, err := w.make(ctx, subjects)
			if err != nil {
				return reports, err
			}
			reports = append(reports, made...)
		}
		return reports, nil
	})
}

// RefreshViews replaces the views that were made before by views of what their types are now. Columns are added, and
// none is dropped or changes its type.
func RefreshViews(ctx context.Context, cfg ViewsSchema, logger *slog.Logger) ([]ViewReport, error) {
	return changeViews(ctx, Views{ViewsSchema: cfg, All: true}, logger, func(w *viewsWork) ([]ViewReport, error) {
		w.replace = true
		registered, err := w.db.TypedViews(ctx, cfg.Schema)
		if err != nil {
			return nil, err
		}
		return w.again(ctx, registered, "no package that is here has it; it stays as it is")
	})
}

// again makes views that were made before, of what their types are now. One that no package has is reported.
func (w *viewsWork) again(
	ctx context.Context, before []store.TypedView, gone string,
) (reports []ViewReport, err error) {
	for _, v := range before {
		i := slices.IndexFunc(w.subjects, func(s *typed.Subject) bool { return isOf(v, s) })
		if i < 0 {
			reports = append(reports, ViewReport{Schema: v.Schema, Name: v.Name, Of: nameOf(v), Failure: gone})
			continue
		}
		made, err := w.make(ctx, w.subjects[i:i+1])
		if err != nil {
			return reports, err
		}
		reports = append(reports, made...)
	}
	return reports, nil
}

// ListViews lists the views that were made, of every schema or of one.
func ListViews(ctx context.Context, cfg ViewsSchema, logger *slog.Logger) (reports []ViewReport, err error) {
	db, err := openForViews(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	list, err := db.TypedViews(ctx, cfg.Schema)
	for _, v := range list {
		columns, err := publishedBy(v)
		if err != nil {
			return nil, err
		}
		reports = append(reports, ViewReport{Schema: v.Schema, Name: v.Name, Of: nameOf(v), Columns: len(columns)})
	}
	return reports, err
}

// DropViews drops views that were made: those of the named templates and interfaces with those of their choices, or all
// of the schema. It reports those that are dropped, also where another one can't be.
func DropViews(ctx context.Context, cfg Views, logger *slog.Logger) (reports []ViewReport, err error) {
	db, err := openForViews(ctx, cfg.ViewsSchema, logger)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	registered, err := db.TypedViews(ctx, cfg.Schema)
	if err != nil {
		return nil, err
	}
	chosen, err := registeredOf(cfg, registered)
	if err != nil {
		return nil, err
	}
	done := map[string]bool{}
	for _, v := range chosen { // those of each owner in one transaction, as they are made
		owner := subjectOfView(v).Owner()
		if done[owner] {
			continue
		}
		done[owner] = true
		var dropped []ViewReport
		of := store.TypedView{Schema: cfg.Schema, Package: v.Package, Module: v.Module, Entity: v.Entity}
		err := db.ChangeTypedViews(ctx, of, func(c *store.TypedViewsChange) error {
			dropped = nil // of a turn that failed
			for _, v := range c.Registered {
				if err := c.Drop(ctx, v); err != nil {
					return err
				}
				dropped = append(dropped, ViewReport{Schema: v.Schema, Name: v.Name, Of: nameOf(v)})
			}
			return nil
		})
		if err != nil {
			return reports, err
		}
		reports = append(reports, dropped...)
	}
	return reports, nil
}

// registeredOf returns those of the views that the configuration names.
func registeredOf(cfg Views, registered []store.TypedView) (chosen []store.TypedView, err error) {
	if cfg.All {
		return registered, nil
	}
	var subjects []*typed.Subject
	for _, v := range registered {
		subjects = append(subjects, subjectOfView(v))
	}
	for _, name := range cfg.Templates {
		found, err := typed.Find(subjects, name)
		if err != nil {
			return nil, &config.UsageError{Err: fmt.Errorf("among the views of schema %s: %w", cfg.Schema, err)}
		}
		for _, v := range registered {
			if slices.ContainsFunc(found, func(s *typed.Subject) bool { return isOf(v, s) }) &&
				!slices.ContainsFunc(chosen, func(d store.TypedView) bool { return d.Name == v.Name }) {
				chosen = append(chosen, v)
			}
		}
	}
	return chosen, nil
}

func changeViews(ctx context.Context, cfg Views, logger *slog.Logger, do func(*viewsWork) ([]ViewReport,
	error)) ([]ViewReport, error) {
	w, err := openTypes(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	defer w.db.Close()
	if w.indexes, err = w.db.FieldIndexes(ctx); err != nil {
		return nil, err
	}
	return do(w)
}

// chosen returns what the configuration names, for each template or interface.
func (w *viewsWork) chosen() (owners [][]*typed.Subject, err error) {
	if w.cfg.All {
		return slices.Collect(chunked(w.subjects)), w.something()
	}
	seen := map[string]bool{}
	for _, name := range w.cfg.Templates {
		found, err := w.find(name)
		if err != nil {
			return nil, err
		}
		if owner := found[0].Owner(); !seen[owner] {
			seen[owner] = true
			owners = append(owners, found)
		}
	}
	return owners, nil
}

// chunked yields the subjects of each owner, which stand together.
func chunked(subjects []*typed.Subject) func(func([]*typed.Subject) bool) {
	return func(yield func([]*typed.Subject) bool) {
		for start := 0; start < len(subjects); {
			end := start
			for end < len(subjects) && subjects[end].Owner() == subjects[start].Owner() {
				end++
			}
			if !yield(subjects[start:end]) {
				return
			}
			start = end
		}
	}
}

// make makes the views of one template or interface, in one transaction: each takes a lock or two, of which there are
// not many.
func (w *viewsWork) make(ctx context.Context, subjects []*typed.Subject) (reports []ViewReport, err error) {
	shapes, failures := make([]typed.Shape, len(subjects)), make([]error, len(subjects))
	for i, s := range subjects {
		shapes[i], failures[i] = w.packages.Shape(s)
		var unknown *typed.UnknownError
		if failures[i] != nil && (!errors.As(failures[i], &unknown) || !w.cfg.All) {
			return nil, typesUnknown(failures[i])
		}
	}
	of := store.TypedView{Schema: w.cfg.Schema, Package: subjects[0].Package, Module: subjects[0].Module,
		Entity: subjects[0].Entity}
	err = w.db.ChangeTypedViews(ctx, of, func(c *store.TypedViewsChange) error {
		reports = nil // of a turn that failed
		if err := w.register(ctx, c); err != nil {
			return err
		}
		for i, s := range subjects {
			if w.replace && !slices.ContainsFunc(c.Registered, func(v store.TypedView) bool { return isOf(v, s) }) {
				continue // another command dropped it
			}
			report := ViewReport{Schema: w.cfg.Schema, Of: s.String()}
			if failures[i] != nil {
				report.Failure = failures[i].Error()
			} else if err := w.makeOne(ctx, c, s, shapes[i], &report); err != nil {
				return err
			}
			reports = append(reports, report)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return reports, nil
}

// register registers a view of another database as one that is there, unless something else has its name.
func (w *viewsWork) register(ctx context.Context, c *store.TypedViewsChange) error {
	if w.copied == nil {
		return nil
	}
	taken, err := c.Taken(ctx, w.copied.Name)
	if err != nil {
		return err
	}
	if taken {
		return &ledger.Problem{What: fmt.Sprintf("something else is named %s.%s there", w.copied.Schema, w.copied.Name),
			Do: "drop that, and copy again"}
	}
	c.Registered = append(c.Registered, *w.copied)
	return nil
}

func (w *viewsWork) makeOne(ctx context.Context, c *store.TypedViewsChange, s *typed.Subject, shape typed.Shape,
	report *ViewReport) error {
	report.New = true
	var published []typed.Column
	for _, v := range c.Registered {
		if isOf(v, s) {
			report.New, report.Name = false, v.Name
			var err error
			if published, err = publishedBy(v); err != nil {
				return err
			}
		}
	}
	if report.New {
		var failure error
		report.Name = s.FreeName(w.names[s], func(name string) bool {
			taken, err := c.Taken(ctx, name)
			failure = cmp.Or(failure, err)
			return taken && err == nil
		})
		if failure != nil {
			return failure
		}
	}
	view, changes := typed.NewView(w.cfg.Schema, report.Name, s, shape, published)
	view.Indexed = w.indexed(s)
	report.Columns, report.Changes, report.Notes = len(view.Columns), changes, append(view.Shadowed(), shape.Notes...)
	columns, err := json.Marshal(view.Columns)
	if err != nil {
		return err
	}
	made := store.TypedView{
		Schema: w.cfg.Schema, Name: report.Name, Kind: string(s.Kind), Package: s.Package, Module: s.Module, Entity: s.Entity,
		Choice: s.Choice, Columns: columns,
	}
	return c.Make(ctx, made, view.SQL(w.db.ViewsSchema()))
}

// indexed returns the fields of a subject that have an index, which may have been made for others with the same field.
func (w *viewsWork) indexed(s *typed.Subject) map[string]bool {
	paths, table := map[string]bool{}, fieldTable(s)
	for _, index := range w.indexes {
		if index.Table == table {
			paths[index.Path] = true
		}
	}
	return paths
}

func subjectOfView(v store.TypedView) *typed.Subject {
	return &typed.Subject{Kind: typed.Kind(v.Kind), Package: v.Package, Module: v.Module, Entity: v.Entity,
		Choice: v.Choice}
}

func nameOf(v store.TypedView) string { return subjectOfView(v).String() }
