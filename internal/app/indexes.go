package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/typed"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Index says which index of a field is meant.
type Index struct {
	config.Database
	Template string // template or interface, by its name; see typed.Find
	Path     string // of the field; see typed.Shape.Field
	Anyway   bool   // also where most values are the same
}

// IndexReport is what there is of an index.
type IndexReport struct {
	store.FieldIndex
	Of      []string // templates and interfaces that it was made for
	Changed bool     // by this command
	Took    time.Duration
}

// CreateIndex makes an index of a field in all payloads or interface views, or finishes one that was cut off. Indexing continues meanwhile.
// Names that are wrong are a *config.UsageError.
func CreateIndex(ctx context.Context, cfg Index, logger *slog.Logger) (IndexReport, error) {
	w, err := openTypes(ctx, Views{Database: cfg.Database}, logger)
	if err != nil {
		return IndexReport{}, err
	}
	defer w.db.Close()
	found, err := w.find(cfg.Template)
	if err != nil {
		return IndexReport{}, err
	}
	subject := found[slices.IndexFunc(found, func(s *typed.Subject) bool { return s.Kind != typed.Argument })]
	shape, err := w.packages.Shape(subject)
	if err != nil {
		return IndexReport{}, typesUnknown(err)
	}
	column, err := shape.Field(subject, cfg.Path)
	if err != nil {
		return IndexReport{}, &config.UsageError{Err: err}
	}
	start := time.Now()
	index, changed, err := w.db.CreateFieldIndex(ctx, store.FieldIndexWanted{
		Subject: fieldSubject(subject), Path: column.PathName(), Type: column.Type, Anyway: cfg.Anyway,
		Expression: func(value string) string { return column.Expression(w.db.ViewsSchema(), value) },
	})
	if err != nil {
		return IndexReport{}, err
	}
	report := reportIndex(index)
	report.Changed, report.Took = changed, time.Since(start)
	return report, nil
}

// ListIndexes lists the indexes of fields.
func ListIndexes(ctx context.Context, database config.Database, logger *slog.Logger) (reports []IndexReport, err error) {
	db, err := openForViews(ctx, Views{Database: database}, logger)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	list, err := db.FieldIndexes(ctx)
	for _, index := range list {
		reports = append(reports, reportIndex(index))
	}
	return reports, err
}

// DropIndex drops the index of a field, and reports whether it is gone: one that was made for others too stays for them. An index that
// was not made is a *config.UsageError.
func DropIndex(ctx context.Context, cfg Index, logger *slog.Logger) (report IndexReport, dropped bool, err error) {
	db, err := openForViews(ctx, Views{Database: cfg.Database}, logger)
	if err != nil {
		return report, false, err
	}
	defer db.Close()
	list, err := db.FieldIndexes(ctx)
	if err != nil {
		return report, false, err
	}
	var subjects []*typed.Subject
	for _, index := range list {
		for _, s := range index.Subjects {
			subjects = append(subjects, subjectOf(s))
		}
	}
	found, err := typed.Find(subjects, cfg.Template)
	if err != nil {
		return report, false, &config.UsageError{Err: fmt.Errorf("among the indexes: %w", err)}
	}
	of := fieldSubject(found[0])
	var paths []string
	for _, index := range list {
		if !slices.Contains(index.Subjects, of) {
			continue
		}
		if index.Path == cfg.Path {
			dropped, err = db.DropFieldIndex(ctx, index.Name, of)
			return reportIndex(index), dropped, err
		}
		paths = append(paths, index.Path)
	}
	return report, false, &config.UsageError{Err: &typed.FieldError{Path: cfg.Path, Of: found[0].String(), Problem: "it has no index", Candidates: paths}}
}

func reportIndex(index store.FieldIndex) IndexReport {
	report := IndexReport{FieldIndex: index}
	for _, s := range index.Subjects {
		report.Of = append(report.Of, subjectOf(s).String())
	}
	return report
}

func fieldSubject(s *typed.Subject) store.FieldSubject {
	return store.FieldSubject{Interface: s.Kind == typed.Interface, Package: s.Package, Module: s.Module, Entity: s.Entity}
}

func subjectOf(s store.FieldSubject) *typed.Subject {
	kind := typed.Template
	if s.Interface {
		kind = typed.Interface
	}
	return &typed.Subject{Kind: kind, Package: s.Package, Module: s.Module, Entity: s.Entity}
}

// ErrNoField is returned where no field is named.
var ErrNoField = errors.New("name a template or an interface, and the path of a field in it")

// Validate refuses a configuration that names nothing.
func (i Index) Validate() error {
	if i.Template == "" || i.Path == "" {
		return ErrNoField
	}
	return nil
}

// typesUnknown says what to do where the types of a subject are not known. Another error stays as it is.
func typesUnknown(err error) error {
	var unknown *typed.UnknownError
	if !errors.As(err, &unknown) {
		return err
	}
	return &ledger.Problem{What: err.Error(), Do: "see ledger.packages for what is missing; the daemon asks for it again by itself. `indexer views create --infer` makes a view without it"}
}
