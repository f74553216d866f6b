package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ledgerindexer/internal/typed"
	"ledgerindexer/store"
)

// addServed adds the templates and interfaces that events name and no package has.
func (w *viewsWork) addServed(ctx context.Context) error {
	served, err := w.db.ServedSubjects(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, s := range w.subjects {
		known[s.Owner()] = true
	}
	for _, v := range served {
		kind := typed.Template
		if v.Interface {
			kind = typed.Interface
		}
		if s := typed.Served(kind, v.Package, v.Module, v.Entity, "", v.PackageIDs); s != nil && !known[s.Owner()] {
			w.subjects = append(w.subjects, s)
		}
	}
	typed.Sort(w.subjects)
	return nil
}

// withServedChoices adds to a template that no package has the arguments of those of its choices that were exercised.
func (w *viewsWork) withServedChoices(ctx context.Context, subjects []*typed.Subject) ([]*typed.Subject, error) {
	of := subjects[0]
	if !w.cfg.Infer || len(subjects) > 1 || of.Kind != typed.Template || of.Known() {
		return subjects, nil
	}
	choices, err := w.db.ServedChoices(ctx, store.ServedSubject{Package: of.Package, Module: of.Module, Entity: of.Entity})
	if err != nil {
		return nil, err
	}
	subjects = slices.Clone(subjects)
	for _, choice := range choices {
		if s := typed.Served(typed.Argument, of.Package, of.Module, of.Entity, choice, nil); s != nil {
			subjects = append(subjects, s)
		}
	}
	return subjects, nil
}

// shape returns what the values of a subject look like: as packages say, or else, where that is wanted, as the values say that are stored.
func (w *viewsWork) shape(ctx context.Context, s *typed.Subject) (typed.Shape, error) {
	shape, err := w.packages.Shape(s)
	var unknown *typed.UnknownError
	if !w.cfg.Infer || !errors.As(err, &unknown) || s.OfInterface { // which template a choice is exercised on does not say what an interface is
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
