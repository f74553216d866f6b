package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"ledgerindexer/ledger"
)

// The exit codes of the commands.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2
	ExitProblem = 3 // an operator must act: trying again can't cure it
)

// Output is where a command writes what was asked for; the log goes to standard error.
type Output struct{ io.Writer }

// Execute parses the command line into grammar, runs the chosen command's Run method, which may take a
// context.Context, a *slog.Logger and an Output, and returns the exit code.
func Execute(
	ctx context.Context, name, description string, grammar interface{ Logger(io.Writer) *slog.Logger },
	args, environ []string, stdout, stderr io.Writer,
) int {
	parsed, err := Parse(grammar, name, description, args, environ, stdout)
	if err == nil {
		var stop context.CancelFunc
		ctx, stop = StopOnSignal(ctx)
		defer stop()
		parsed.BindTo(ctx, (*context.Context)(nil))
		err = parsed.Run(grammar.Logger(stderr), Output{stdout})
	}
	return ExitCode(name, err, stderr)
}

// ExitCode turns what a command returned into its exit code, and tells the user on w what went wrong and, where it
// is known, what to do.
func ExitCode(name string, err error, w io.Writer) int {
	var usage *UsageError
	var problem *ledger.Problem
	switch {
	case err == nil, errors.Is(err, ErrHelp):
		return ExitDone
	case errors.As(err, &usage):
		fmt.Fprintf(w, "%s: %v\n", name, err)
		return ExitUsage
	case errors.As(err, &problem):
		fmt.Fprintf(w, "%s: %v\nWhat to do: %s.\n", name, err, problem.Do)
		return ExitProblem
	default:
		fmt.Fprintf(w, "%s: %v\n", name, err)
		return ExitFailed
	}
}
