package app

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/typed/codegen"
	"ledgerindexer/ledger"
)

// Codegen says which types are written, of which views, and in which language.
type Codegen struct {
	Views
	Package    string // the Go package; empty: named as the schema
	TypeScript bool   // instead of Go
}

// GenerateTypes writes the types of views that were made, for programs that read them. It reads what was published, and nothing
// else: neither packages nor a participant.
func GenerateTypes(ctx context.Context, cfg Codegen, logger *slog.Logger) ([]byte, error) {
	if cfg.Package == "" {
		cfg.Package = cfg.Schema
	}
	if err := codegen.GoPackage(cfg.Package); err != nil && !cfg.TypeScript {
		return nil, &config.UsageError{Err: fmt.Errorf("--package: %w", err)}
	}
	db, err := openForViews(ctx, cfg.ViewsSchema, logger)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	registered, err := db.TypedViews(ctx, cfg.Schema)
	if err != nil {
		return nil, err
	}
	if len(registered) == 0 {
		return nil, &ledger.Problem{What: fmt.Sprintf("no typed view was made in schema %s of database %s", cfg.Schema, db.Address()),
			Do: "make views first: indexer views create --all, or --template NAME"}
	}
	chosen, err := registeredOf(cfg.Views, registered)
	if err != nil {
		return nil, err
	}
	comments, err := db.TypedViewComments(ctx, cfg.Schema)
	if err != nil {
		return nil, err
	}
	views := make([]codegen.View, len(chosen))
	for i, v := range chosen {
		columns, err := publishedBy(v)
		if err != nil {
			return nil, err
		}
		views[i] = codegen.View{Schema: v.Schema, Name: v.Name, Of: nameOf(v), Columns: columns, Comments: comments[v.Name]}
	}
	if cfg.TypeScript {
		return codegen.TypeScript(views)
	}
	return codegen.Go(cfg.Package, views)
}
