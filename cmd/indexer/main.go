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

// output is where commands write what was asked for; the log goes to standard error.
type output struct{ io.Writer }

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	var flags grammar
	parsed, err := config.Parse(&flags, "indexer", "Reads a ledger participant into PostgreSQL and keeps it current.", args, environ, stdout)
	if err == nil {
		var stop context.CancelFunc
		ctx, stop = config.StopOnSignal(ctx)
		defer stop()
		parsed.BindTo(ctx, (*context.Context)(nil))
		err = parsed.Run(flags.Logger(stderr), output{stdout})
	}
	return config.ExitCode("indexer", err, stderr)
}

type runCommand struct{ app.Indexer }
