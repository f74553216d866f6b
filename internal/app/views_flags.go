package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/typed"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// ViewsSchema is where typed views lie.
type ViewsSchema struct {
	config.Database
	Schema string `default:"typed" env:"-" placeholder:"NAME" help:"Schema of the typed views, made where it is missing. Default: ${default}."`
}

// Views says which typed views are meant.
type Views struct {
	ViewsSchema
	Templates []string `name:"template" env:"-" sep:"none" placeholder:"NAME" help:"Template or interface, with its choices: package-name:Module:Entity, or less where that names one; may be repeated."`
	All       bool     `env:"-" help:"All templates and interfaces of the packages that are stored."`
	Infer     bool     `kong:"-"` // also of those whose types no package says, from the values that are stored
}

func openForViews(ctx context.Context, cfg ViewsSchema, logger *slog.Logger) (*store.Store, error) {
	db, err := cfg.Open(ctx, logger)
	if err != nil || cfg.Schema == "" {
		return db, err
	}
	if err := db.CheckTypedSchema(cfg.Schema); err != nil {
		db.Close()
		return nil, &config.UsageError{Err: fmt.Errorf("--schema: %w", err)}
	}
	return db, nil
}

type viewsWork struct {
	cfg      Views
	db       *store.Store
	packages typed.Packages
	subjects []*typed.Subject
	names    map[*typed.Subject]string // of views that are new
	indexes  []store.FieldIndex
	replace  bool             // only views that are there
	served   bool             // subjects has what events name, too
	copied   *store.TypedView // of another database, which counts as one that is there
}

// openTypes opens the database, and reads what its packages define.
func openTypes(ctx context.Context, cfg Views, logger *slog.Logger) (w *viewsWork, err error) {
	db, err := openForViews(ctx, cfg.ViewsSchema, logger)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	cfg.Infer = cfg.Infer || cfg.OfNetwork() // of which no service has packages
	w = &viewsWork{cfg: cfg, db: db}
	w.packages.Content = func(id string) ([]byte, error) { return db.PackageContentOfAny(ctx, id) }
	list, err := db.Packages(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	beside, err := db.PackagesBeside(ctx)
	if err != nil {
		return nil, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(append(ids, beside...))))
	if w.subjects, err = w.packages.Subjects(ids); err != nil {
		return nil, err
	}
	return w, nil
}

// find is typed.Find of what there is. The error is a *config.UsageError, or a *ledger.Problem where there is nothing.
func (w *viewsWork) find(name string) ([]*typed.Subject, error) {
	if err := w.something(); err != nil {
		return nil, err
	}
	found, err := typed.Find(w.subjects, name)
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return found, nil
}

// something returns an error where nothing is known of any type.
func (w *viewsWork) something() error {
	if len(w.subjects) > 0 {
		return nil
	}
	what := "no package is stored in database " + w.db.Address() + " that has templates or interfaces, so no type is known"
	if w.cfg.Infer {
		what += ", and no event either"
	}
	return &ledger.Problem{What: what, Do: "let `indexer run` index something first: it reads the packages that events " +
		"name or that are vetted, unless --packages-interval is 0; ledger.packages says which could not be had, and why; " +
		"--infer does without them, as is always done of a network"}
}

// findServed is find among what packages define and, if the name is none of theirs, what events name: an index needs no
// more.
func (w *viewsWork) findServed(ctx context.Context, name string, choices bool) ([]*typed.Subject, error) {
	if found, err := typed.Find(w.subjects, name); err == nil {
		return found, nil
	}
	if err := w.addServed(ctx, choices); err != nil {
		return nil, err
	}
	return w.find(name)
}

// addServed adds the templates, interfaces and, where they are wanted, choices that events name, of templates and
// interfaces that no package has.
func (w *viewsWork) addServed(ctx context.Context, choices bool) error {
	if w.served {
		return nil
	}
	served, err := w.db.ServedSubjects(ctx, choices)
	if err != nil {
		return err
	}
	w.served = choices
	known := map[string]bool{}
	for _, s := range w.subjects {
		known[s.Owner()] = true
	}
	for _, v := range served {
		kind := typed.Template
		switch {
		case v.Choice != "":
			kind = typed.Choice
		case v.Interface:
			kind = typed.Interface
		}
		s := typed.Served(kind, v.Package, v.Module, v.Entity, v.Choice, v.PackageIDs)
		if s != nil && !known[s.Owner()] {
			s.OfInterface = v.Interface && v.Choice != ""
			w.subjects = append(w.subjects, s)
		}
	}
	typed.Sort(w.subjects)
	return nil
}

// shape returns what the values of a subject look like: as packages say, or else, where that is wanted, as the values
// say that are stored.
func (w *viewsWork) shape(ctx context.Context, s *typed.Subject) (typed.Shape, error) {
	shape, err := w.packages.Shape(s)
	var unknown *typed.UnknownError
	if !w.cfg.Infer || !errors.As(err, &unknown) {
		return shape, err
	}
	err = store.ReadTogether(ctx, w.db, func(read func(string) ([]typed.Seen, error)) (err error) {
		shape, err = typed.Infer(s, w.db.ViewsSchema(), read)
		return err
	})
	if err != nil && !errors.As(err, &unknown) {
		err = fmt.Errorf("infer the types of %s: %w", s, err)
	}
	return shape, err
}

// typesUnknown says what to do where the types of a subject are not known. Another error stays as it is.
func typesUnknown(err error) error {
	if _, ok := errors.AsType[*typed.UnknownError](err); !ok {
		return err
	}
	return &ledger.Problem{What: err.Error(), Do: "see ledger.packages for what is missing; the daemon asks for it " +
		"again by itself. --infer does without it"}
}

func publishedBy(v store.TypedView) (columns []typed.Column, err error) {
	if err := json.Unmarshal(v.Columns, &columns); err != nil {
		return nil, fmt.Errorf("the columns of view %s.%s: %w", v.Schema, v.Name, err)
	}
	return columns, nil
}

func isOf(v store.TypedView, s *typed.Subject) bool {
	return v.Kind == string(s.Kind) && v.Package == s.Package && v.Module == s.Module && v.Entity == s.Entity &&
		v.Choice == s.Choice
}

// Validate refuses a configuration that names nothing, or both some and all.
func (v Views) Validate() error {
	blank := func(name string) bool { return strings.TrimSpace(name) == "" }
	if v.All == (len(v.Templates) > 0) || slices.ContainsFunc(v.Templates, blank) {
		return errors.New("name templates or interfaces with --template, or take them --all")
	}
	return nil
}
