package app

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/internal/features/typed"
	"ledgerindexer/store"
)

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
