package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

// profileCommand is the first argument of a process that runs the indexer and takes profiles of it; the second one is the
// beginning of the profiles' names, and what follows are the indexer's own arguments.
const profileCommand = "indexer-with-profiles"

// profiledGrammar is the indexer's command line as far as it is measured.
type profiledGrammar struct {
	Run profiledRun `cmd:""`
	config.Log
}

type profiledRun struct{ app.Indexer }

// Run indexes, as the command of that name of the indexer.
func (c *profiledRun) Run(ctx context.Context, logger *slog.Logger) error {
	return app.RunIndexer(ctx, c.Indexer, logger)
}

// profiled runs the indexer and writes name.cpu.pprof and name.allocs.pprof.
func profiled(ctx context.Context, name string, args []string, stdout, stderr io.Writer) (code int, err error) {
	cpu, err := os.Create(name + ".cpu.pprof")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cpu.Close()) }()
	allocs, err := os.Create(name + ".allocs.pprof")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, allocs.Close()) }()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return 0, err
	}
	code = config.Execute(ctx, "indexer", "", &profiledGrammar{}, args, os.Environ(), stdout, stderr)
	pprof.StopCPUProfile()
	return code, pprof.Lookup("allocs").WriteTo(allocs, 0)
}
