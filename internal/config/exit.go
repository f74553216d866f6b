package config

import (
	"errors"
	"fmt"
	"io"

	"ledgerindexer/ledger"
)

// The exit codes of the commands.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2
	ExitProblem = 3 // an operator must act: trying again can't cure it
)

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
