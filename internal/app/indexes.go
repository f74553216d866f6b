package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/typed"
	"ledgerindexer/store"
)

// Index says which index is meant: of a field, or of all that there is of one kind.
type Index struct {
	config.Database
	Template string   `arg:"" optional:"" help:"Template or interface: package-name:Module:Entity, or less where that names one."`
	Path     string   `arg:"" optional:"" help:"Field, with dots into records and behind constructors: owner, amount.initialAmount; or the column's name in a typed view."`
	Choice   string   `env:"-" placeholder:"NAME" help:"A choice of the template or interface: the field is one of its argument."`
	Of       string   `env:"-" enum:"field,lifetimes,exercises,keys" default:"field" placeholder:"WHAT" help:"A field; or lifetimes (by template), exercises (by choice) or keys (of contracts), of all templates and choices. Default: ${default}."`
	Anyway   bool     `kong:"-"` // also where many values are the same
	DAR      []string `kong:"-"` // files with packages, beside those that are stored
}

// IndexReport is what was made of an index.
type IndexReport struct {
	store.FieldIndex
	Refresh []string // typed views that use it once they are refreshed
	Changed bool     // by this command
	Took    time.Duration
}

// wholeTables are the tables of indexes of no field.
var wholeTables = map[string]store.IndexTable{"lifetimes": store.IndexLifetimes, "exercises": store.IndexExercised,
	"keys": store.IndexCreated}

// CreateIndex makes an index of a field in all payloads, interface views or choice arguments, of all lifetimes by
// template, of all exercises by choice, or of all creations by contract key, or finishes one that was cut off. Indexing
// continues meanwhile. Names that are wrong are a *config.UsageError.
func CreateIndex(ctx context.Context, cfg Index, logger *slog.Logger) (IndexReport, error) {
	if table, whole := wholeTables[cfg.Of]; whole { // needs no type
		db, err := cfg.Open(ctx, logger)
		if err != nil {
			return IndexReport{}, err
		}
		defer db.Close()
		return createIndex(ctx, db, store.FieldIndex{Table: table}, cfg.Anyway)
	}
	w, err := openTypes(ctx, Views{ViewsSchema: ViewsSchema{Database: cfg.Database, DAR: cfg.DAR}}, logger)
	if err != nil {
		return IndexReport{}, err
	}
	defer w.db.Close()
	found, err := w.find(cfg.Template)
	if err != nil {
		return IndexReport{}, err
	}
	subject, err := chosenSubject(found, cfg.Choice)
	if err != nil {
		return IndexReport{}, err
	}
	column, err := w.column(ctx, subject, cfg.Path)
	if err != nil {
		return IndexReport{}, err
	}
	table := fieldTable(subject)
	report, err := createIndex(ctx, w.db, store.FieldIndex{Table: table, Path: column.PathName(), Type: column.Type,
		Expression: column.Expression(w.db.ViewsSchema(), table.Column())}, cfg.Anyway)
	if err == nil && report.Changed {
		report.Refresh, err = wideViews(ctx, w.db, subject)
	}
	return report, err
}

func createIndex(ctx context.Context, db *store.Store, wanted store.FieldIndex, anyway bool) (IndexReport, error) {
	start := time.Now()
	index, changed, err := db.CreateFieldIndex(ctx, wanted, anyway)
	return IndexReport{FieldIndex: index, Changed: changed, Took: time.Since(start)}, err
}

// column returns the column of a field: as a view has published it, which uses no other index, or else of the type that
// packages say.
func (w *viewsWork) column(ctx context.Context, of *typed.Subject, path string) (typed.Column, error) {
	registered, err := w.db.TypedViews(ctx, "")
	if err != nil {
		return typed.Column{}, err
	}
	for _, v := range registered {
		columns, err := publishedBy(v)
		if err != nil {
			return typed.Column{}, err
		}
		if column, ok := typed.PublishedField(columns, path); ok && isOf(v, of) {
			return column, nil
		}
	}
	shape, err := w.packages.Shape(of)
	if err != nil {
		return typed.Column{}, typesUnknown(err)
	}
	column, err := shape.Field(of, path)
	if err != nil {
		return typed.Column{}, &config.UsageError{Err: err}
	}
	return column, nil
}

// wideViews returns the typed views of a subject that don't use an index by themselves.
func wideViews(ctx context.Context, db *store.Store, of *typed.Subject) (names []string, err error) {
	registered, err := db.TypedViews(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, v := range registered {
		columns, err := publishedBy(v)
		if err != nil {
			return nil, err
		}
		if isOf(v, of) && typed.IsWide(columns) {
			names = append(names, v.Schema+"."+v.Name)
		}
	}
	return names, nil
}

// fieldTable returns the table that has the values of a subject.
func fieldTable(of *typed.Subject) store.IndexTable {
	switch of.Kind {
	case typed.Choice:
		return store.IndexExercised
	case typed.Interface:
		return store.IndexViews
	}
	return store.IndexCreated
}

// ListIndexes lists the indexes that were made.
func ListIndexes(ctx context.Context, database config.Database, logger *slog.Logger) ([]store.FieldIndex, error) {
	db, err := database.Open(ctx, logger)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.FieldIndexes(ctx)
}

// DropIndex drops an index that was made. A name that none has is a *config.UsageError.
func DropIndex(ctx context.Context, database config.Database, name string, logger *slog.Logger) error {
	db, err := database.Open(ctx, logger)
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := db.DropFieldIndex(ctx, name)
	if err == nil && !found {
		err = &config.UsageError{Err: fmt.Errorf("no index %q was made: `indexer index list` names those that were", name)}
	}
	return err
}

// chosenSubject returns the subject of a choice or, without a choice, the template or interface itself. The error is a
// *config.UsageError.
func chosenSubject(found []*typed.Subject, choice string) (*typed.Subject, error) {
	var choices []string
	for _, s := range found {
		if s.Choice == choice {
			return s, nil
		}
		if s.Choice != "" {
			choices = append(choices, s.Choice)
		}
	}
	what := found[0].Owner()
	return nil, &config.UsageError{Err: fmt.Errorf("%s has no choice %q; it has: %s", what, choice,
		cmp.Or(strings.Join(choices, ", "), "none"))}
}

// Validate refuses a configuration that names nothing, or two things.
func (i Index) Validate() error {
	switch _, whole := wholeTables[i.Of]; {
	case whole && i.Template+i.Choice != "":
		return fmt.Errorf("--of=%s is of all templates and choices: name none with it", i.Of)
	case !whole && (i.Template == "" || i.Path == ""):
		return errors.New("name a template or an interface and a field, or say --of")
	}
	return nil
}
