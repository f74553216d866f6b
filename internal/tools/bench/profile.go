package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
)

// profileCommand is the first argument of a process that runs a program and takes profiles of it; the second one is the
// beginning of the profiles' names, the third the program's name, and what follows are its own arguments.
const profileCommand = "with-profiles"

// profiledPrograms run the measured commands of the programs.
var profiledPrograms = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) (code int){
	"indexer": func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return config.Execute(ctx, "indexer", "", &profiledIndexer{}, args, os.Environ(), stdout, stderr)
	},
	"backfill": func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return config.Execute(ctx, "backfill", "", &profiledBackfill{}, args, os.Environ(), stdout, stderr)
	},
}

type profiledIndexer struct {
	Run profiledRun `cmd:""`
	config.Log
}

type profiledRun struct{ app.Indexer }

// Run indexes like `indexer run`.
func (c *profiledRun) Run(ctx context.Context, logger *slog.Logger) error {
	return app.RunIndexer(ctx, c.Indexer, logger)
}

type profiledBackfill struct {
	Snapshot profiledSnapshot `cmd:"" default:"withargs"`
	Network  profiledFiles    `cmd:""`
	config.Log
}

type profiledFiles struct{ app.NetworkBackfill }

// Run reads bulk files like `backfill network --files`.
func (c *profiledFiles) Run(ctx context.Context, logger *slog.Logger) error {
	_, err := app.RunNetworkFiles(ctx, c.NetworkBackfill, logger)
	return err
}

type profiledSnapshot struct{ app.Backfill }

// Run seeds the database like `backfill`.
func (c *profiledSnapshot) Run(ctx context.Context, logger *slog.Logger) error {
	_, err := app.RunBackfill(ctx, c.Backfill, logger, nil)
	return err
}

// profiled runs a program and writes name.cpu.pprof and name.allocs.pprof.
func profiled(ctx context.Context, name, program string, args []string, stdout,
	stderr io.Writer) (code int, err error) {
	run, ok := profiledPrograms[program]
	if !ok {
		return 0, fmt.Errorf("no profiles can be taken of program %q", program)
	}
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
	code = run(ctx, args, stdout, stderr)
	pprof.StopCPUProfile()
	return code, pprof.Lookup("allocs").WriteTo(allocs, 0)
}
