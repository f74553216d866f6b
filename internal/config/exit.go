package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"unicode"

	"ledgerindexer/internal/progress"
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

// logging is a grammar that holds Log.
type logging interface {
	Logger(out io.Writer) *slog.Logger
	Bar(out io.Writer) *progress.Bar
}

// Execute parses the command line into grammar, runs the chosen command's Run method, which may take a
// context.Context, a *slog.Logger, an Output and a *progress.Bar, and returns the exit code.
func Execute(
	ctx context.Context, name, description string, grammar logging,
	args, environ []string, stdout, stderr io.Writer,
) int {
	limitMemory(name, environ)
	parsed, err := Parse(grammar, name, description, args, environ, stdout)
	if err == nil {
		var stop context.CancelFunc
		ctx, stop = StopOnSignal(ctx)
		defer stop()
		parsed.BindTo(ctx, (*context.Context)(nil))
		bar := grammar.Bar(stderr)
		err = parsed.Run(grammar.Logger(bar), Output{bar.Above(stdout)}, bar)
		bar.Close()
	}
	return ExitCode(name, err, stderr)
}

// ExitCode turns what a command returned into its exit code, and tells the user on w what went wrong and, where it
// is known, what to do.
func ExitCode(name string, err error, w io.Writer) int {
	var usage *UsageError
	var problem *ledger.Problem
	var bug *ledger.Bug
	if err == nil || errors.Is(err, ErrHelp) {
		return ExitDone
	}
	say := func(format string, args ...any) { fmt.Fprint(w, harmless(fmt.Sprintf(format, args...))) }
	say("%s: %v\n", name, err)
	switch {
	case errors.As(err, &problem): // also one that was found where the settings were looked at
		say("What to do: %s.\n", problem.Do)
		return ExitProblem
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &bug):
		say("This is a mistake in %s: please report it, with these lines and the participant's version.\n", name)
	}
	return ExitFailed
}

// harmless escapes what could do something to a terminal: an error may repeat what a server said.
func harmless(text string) string {
	return Escape(text, func(r rune) bool { return r == '\n' || unicode.IsPrint(r) })
}
