package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

type codegenCommand struct {
	app.Views
	Go         bool   `env:"-" xor:"language" required:"" help:"Write Go: structs that pgx.RowToStructByName fills."`
	TypeScript bool   `name:"typescript" env:"-" xor:"language" required:"" help:"Write TypeScript: interfaces of rows."`
	Package    string `env:"-" placeholder:"NAME" help:"Name of the Go package. Default: that of the schema."`
	Out        string `env:"-" placeholder:"FILE" type:"path" help:"File to write, or to replace. Default: standard output."`
}

func (*codegenCommand) Help() string {
	return "There is a type for each view that `indexer views create` made, with a field for each column. The same views give the same text. See docs/types.md."
}

func (c *codegenCommand) Validate() error {
	if c.TypeScript && c.Package != "" {
		return errors.New("--package is for --go")
	}
	return nil
}

func (c *codegenCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	text, err := app.GenerateTypes(ctx, app.Codegen{Views: c.Views, Package: c.Package, TypeScript: c.TypeScript}, logger)
	if err != nil {
		return err
	}
	if c.Out == "" {
		_, err = out.Write(text)
		return err
	}
	if err := os.WriteFile(c.Out, text, 0o666); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
