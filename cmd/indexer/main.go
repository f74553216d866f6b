// Command indexer reads a ledger participant into PostgreSQL and keeps it current.
package main

import (
	"context"
	"io"
	"os"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// grammar is the command line.
type grammar struct {
	Run         runCommand         `cmd:"" help:"Index the ledger until stopped."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database's schema up to date."`
	Status      statusCommand      `cmd:"" help:"Say where the database stands and how far behind the ledger it is."`
	Healthcheck healthcheckCommand `cmd:"" help:"Ask a running indexer whether it is ready; exit code 0 if so."`
	config.Log
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	return config.Execute(ctx, "indexer", "Reads a ledger participant into PostgreSQL and keeps it current.", &grammar{}, args, environ, stdout, stderr)
}

type runCommand struct{ app.Indexer }
