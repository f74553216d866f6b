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

// Index says which index is meant: of a field, or of what there is of a template or a choice.
type Index struct {
	config.Database
	Template string `arg:"" help:"Template or interface: package-name:Module:Entity, or less where that names one."`
	Path     string `arg:"" optional:"" help:"Field, with dots into records and behind constructors: owner, amount.initialAmount; or the column's name in a typed view. Without it the index is of lifetimes by template, or with --choice of exercises by choice."`
	Choice   string `env:"-" placeholder:"NAME" help:"A choice of the template or interface: the field is one of its argument."`
	Key      bool   `env:"-" help:"The index is of contract keys."`
	Anyway   bool   `kong:"-"` // also where many values are the same
	Infer    bool   `kong:"-"` // also of those whose types no package says, from the values that are stored
}

// IndexReport is what was made of an index.
type IndexReport struct {
	store.FieldIndex
	Refresh []string // typed views that use it once they are refreshed
	Changed bool     // by this command
	Took    time.Duration
}

// CreateIndex makes an index of a field in all payloads, interface views or choice arguments, of all lifetimes by
// template, of all exercises by choice, or of all creations by contract key, or finishes one that was cut off. Indexing
// continues meanwhile. Names that are wrong are a *config.UsageError.
func CreateIndex(ctx context.Context, cfg Index, logger *slog.Logger) (IndexReport, error) {
	w, err := openTypes(ctx, Views{ViewsSchema: ViewsSchema{Database: cfg.Database}, Infer: cfg.Infer}, logger)
	if err != nil {
		return IndexReport{}, err
	}
	defer w.db.Close()
	return w.createIndex(ctx, cfg)
}

func (w *viewsWork) createIndex(ctx context.Context, cfg Index) (IndexReport, error) {
	found, err := w.findServed(ctx, cfg.Template, cfg.Choice != "")
	if err != nil {
		return IndexReport{}, err
	}
	subject, err := chosenSubject(found, cfg.Choice)
	if err != nil {
		return IndexReport{}, err
	}
	if cfg.Key && subject.Kind != typed.Template {
		return IndexReport{}, &config.UsageError{Err: fmt.Errorf("%s is no template: only contracts have keys", subject)}
	}
	wanted := store.FieldIndex{Table: indexTable(subject, cfg)}
	if cfg.Path != "" {
		column, err := w.column(ctx, subject, cfg.Path)
		if err != nil {
			return IndexReport{}, err
		}
		wanted.Path, wanted.Type = column.PathName(), column.Type
		wanted.Expression = column.Expression(w.db.ViewsSchema(), wanted.Table.Column())
	}
	start := time.Now()
	index, changed, err := w.db.CreateFieldIndex(ctx, wanted, cfg.Anyway)
	if err != nil {
		return IndexReport{}, err
	}
	report := IndexReport{FieldIndex: index, Changed: changed, Took: time.Since(start)}
	if changed && cfg.Path != "" {
		report.Refresh, err = wideViews(ctx, w.db, subject)
	}
	return report, err
}

// column returns the column of a field: as a view has published it, which uses no other index, or else of the type that
// packages say, or, where that is wanted, the values.
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
	shape, err := w.shape(ctx, of)
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

// indexTable returns the table of which an index is made.
func indexTable(of *typed.Subject, cfg Index) store.IndexTable {
	switch {
	case of.Kind == typed.Choice:
		return store.IndexExercised
	case cfg.Path == "" && !cfg.Key:
		return store.IndexLifetimes
	case of.Kind == typed.Interface:
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
	what := found[0].Package + ":" + found[0].Module + ":" + found[0].Entity
	if choice == "" {
		return nil, &config.UsageError{Err: fmt.Errorf("%s: only its choices are here: name one with --choice: %s", what,
			strings.Join(choices, ", "))}
	}
	return nil, &config.UsageError{Err: fmt.Errorf("%s has no choice %q; it has: %s", what, choice,
		cmp.Or(strings.Join(choices, ", "), "none"))}
}

// Validate refuses a configuration that names nothing, or two things.
func (i Index) Validate() error {
	switch {
	case i.Template == "":
		return errors.New("name a template or an interface")
	case i.Key && (i.Path != "" || i.Choice != ""):
		return errors.New("--key is of the contract keys of a template: name no field and no choice with it")
	}
	return nil
}
