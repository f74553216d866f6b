package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/damllf"
	"ledgerindexer/internal/features/typed"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// ViewsSchema is where typed views lie.
type ViewsSchema struct {
	config.Database
	Schema string   `default:"typed" env:"-" placeholder:"NAME" help:"Schema of the typed views, made where it is missing. Default: ${default}."`
	DAR    []string `kong:"-"` // files with packages, beside those that are stored
}

// Views says which typed views are meant.
type Views struct {
	ViewsSchema
	Templates []string `name:"template" env:"-" sep:"none" placeholder:"NAME" help:"Template or interface, with its choices: package-name:Module:Entity, or less where that names one; may be repeated."`
	All       bool     `env:"-" help:"All templates and interfaces of the packages that are here."`
}

// mostMissing is how many packages that are missing are named at most.
const mostMissing = 10

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
	named    []store.StoredPackage // by events
	replace  bool                  // only views that are there
	copied   *store.TypedView      // of another database, which counts as one that is there
}

// openTypes opens the database, and reads what packages define: those that are stored, those that events name and
// another ledger of the database has, and those of DAR files.
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
	w = &viewsWork{cfg: cfg, db: db}
	given := map[string][]byte{}
	for _, path := range cfg.DAR {
		content, err := os.ReadFile(path)
		var payloads map[string][]byte
		if err == nil {
			payloads, err = damllf.ReadDAR(content)
		}
		if err != nil {
			return nil, &config.UsageError{Err: fmt.Errorf("--dar=%s: %w", path, err)}
		}
		maps.Copy(given, payloads)
	}
	w.packages.Content = func(id string) ([]byte, error) {
		if payload := given[id]; payload != nil {
			return payload, nil
		}
		return db.PackageContentOfAny(ctx, id)
	}
	stored, err := db.Packages(ctx)
	if err != nil {
		return nil, err
	}
	if w.named, err = db.NamedPackages(ctx); err != nil {
		return nil, err
	}
	ids := slices.Collect(maps.Keys(given))
	for _, p := range append(stored, w.named...) {
		ids = append(ids, p.ID)
	}
	w.subjects, err = w.packages.Subjects(slices.Compact(slices.Sorted(slices.Values(ids))))
	return w, err
}

// find is typed.Find of what there is. The error is a *config.UsageError, or a *ledger.Problem where there is nothing.
func (w *viewsWork) find(name string) ([]*typed.Subject, error) {
	if err := w.something(); err != nil {
		return nil, err
	}
	found, err := typed.Find(w.subjects, name)
	if err != nil {
		return nil, &config.UsageError{Err: fmt.Errorf("%w%s", err, w.missing())}
	}
	return found, nil
}

// missing says which packages that events name are not here, and how they can be given; nothing where there are all.
func (w *viewsWork) missing() string {
	var list []string
	for _, p := range w.named {
		if _, err := w.packages.Decode(p.ID); errors.Is(err, damllf.ErrNoPackage) {
			list = append(list, strings.TrimSpace(p.Name+" "+p.ID))
		}
	}
	if len(list) == 0 {
		return ""
	}
	more := ""
	if len(list) > mostMissing {
		list, more = list[:mostMissing], fmt.Sprintf(", and %d more", len(list)-mostMissing)
	}
	return "; events name packages that are not here, which --dar FILE gives: " + strings.Join(list, ", ") + more
}

// something returns an error where nothing is known of any type.
func (w *viewsWork) something() error {
	if len(w.subjects) > 0 {
		return nil
	}
	return &ledger.Problem{
		What: "no package is stored in database " + w.db.Address() + " that has templates or interfaces, so no type is " +
			"known" + w.missing(),
		Do: "let `indexer run` index something first: of a participant it reads the packages that events name or that are " +
			"vetted, unless --packages-interval is 0; ledger.packages says which could not be had, and why. Those of a " +
			"network, which serves none, are given with --dar",
	}
}

// typesUnknown says what to do where the types of a subject are not known. Another error stays as it is.
func typesUnknown(err error) error {
	if _, ok := errors.AsType[*typed.UnknownError](err); !ok {
		return err
	}
	return &ledger.Problem{What: err.Error(), Do: "give the DAR file that has what is missing with --dar, or see " +
		"ledger.packages: the daemon asks a participant for it again by itself"}
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
