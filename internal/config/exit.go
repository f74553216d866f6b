package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"

	"ledgerindexer/internal/base/version"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// The exit codes of the commands.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2
	ExitProblem = 3 // an operator must act: a retry can't help
	ExitMissing = 4 // not all was done: another run may do it
)

// UnfinishedError says what a job has not done that it was to do.
type UnfinishedError struct{ Err error }

func (e *UnfinishedError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// Output receives a command's results. The log goes to standard error.
type Output struct{ io.Writer }

// logging is a grammar that contains Log.
type logging interface {
	Logger(out io.Writer) *slog.Logger
	ForPrograms() bool
}

// opener is a command with the flags of Database.
type opener interface {
	Open(ctx context.Context, logger *slog.Logger) (*store.Store, error)
}

// Logged marks a command that reports in its log rather than on standard output. Its start and its final error are
// logged too.
type Logged interface{ Logged() }

// Execute is Program.Execute for a program that runs once.
func Execute(
	ctx context.Context, name, description string, grammar logging,
	args, environ []string, stdout, stderr io.Writer,
) int {
	program, err := NewProgram(name, description, grammar)
	if err != nil {
		return exitCode(name, err, stderr)
	}
	return program.Execute(ctx, args, environ, stdout, stderr)
}

// Program runs commands, one after the other.
type Program struct {
	name    string
	grammar logging
	parser  *Parser
}

// NewProgram returns the program whose flags and commands are grammar's.
func NewProgram(name, description string, grammar logging) (*Program, error) {
	parser, err := NewParser(grammar, name, description)
	if err != nil {
		return nil, err
	}
	return &Program{name: name, grammar: grammar, parser: parser}, nil
}

// Execute parses the command line, calls the Run method of the chosen command, and returns the exit code. Run may take
// a context.Context, a *slog.Logger, an Output, Settings and, if the command has the flags of Database, a *store.Store,
// which is closed afterwards.
func (p *Program) Execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	limitMemory(p.name, environ)
	parsed, err := p.parser.Parse(args, environ, stdout)
	if err == nil {
		var stop context.CancelFunc
		ctx, stop = stopOnSignal(ctx)
		defer stop()
		parsed.BindTo(ctx, (*context.Context)(nil))
		logger := p.grammar.Logger(stderr)
		command := parsed.Selected().Target.Addr().Interface()
		_, logged := command.(Logged)
		if logged {
			err = logStart(ctx, p.name, logger)
		}
		var db *store.Store
		if err == nil {
			err = parsed.BindSingletonProvider(func() (_ *store.Store, err error) {
				db, err = command.(opener).Open(ctx, logger)
				return db, err
			})
		}
		if err == nil {
			err = parsed.Run(logger, Output{stdout}, p.parser.settings(parsed))
		}
		if db != nil {
			db.Close()
		}
		if logged && p.grammar.ForPrograms() {
			return logEnd(ctx, p.name, err, logger)
		}
	}
	return exitCode(p.name, err, stderr)
}

func logStart(ctx context.Context, name string, logger *slog.Logger) error {
	build, err := version.Read()
	if err == nil {
		logger.InfoContext(ctx, "starting", append([]any{"program", name}, build.Attrs()...)...)
	}
	return err
}

// logEnd is exitCode for a log that is for programs: it logs the error.
func logEnd(ctx context.Context, name string, err error, logger *slog.Logger) int {
	code, do := judge(name, err)
	if code == ExitDone {
		return code
	}
	attrs := []any{"program", name, "error", err, "exit_code", code}
	if do != "" {
		attrs = append(attrs, "what_to_do", do)
	}
	logger.ErrorContext(ctx, "ended with an error", attrs...)
	return code
}

// exitCode returns the exit code for a command's error, and writes the error and, if known, its cure to w.
func exitCode(name string, err error, w io.Writer) int {
	code, do := judge(name, err)
	if code == ExitDone {
		return code
	}
	// Lines that follow are indented: none that a server sent passes for ours.
	text := fmt.Sprintf("%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if do != "" {
		text += fmt.Sprintf("What to do: %s.\n", do)
	}
	fmt.Fprint(w, harmless(text))
	return code
}

// judge returns the exit code of an error, and its cure if known.
func judge(name string, err error) (code int, do string) {
	var usage *UsageError
	var problem *ledger.Problem
	var bug *ledger.Bug
	var unfinished *UnfinishedError
	switch {
	case err == nil, errors.Is(err, ErrHelp):
		return ExitDone, ""
	case errors.As(err, &problem): // before UsageError, which may wrap one
		return ExitProblem, problem.Do
	case errors.As(err, &usage):
		return ExitUsage, ""
	case errors.As(err, &bug):
		return ExitFailed, fmt.Sprintf("report this mistake in %s, with these lines and the participant's version", name)
	case errors.As(err, &unfinished):
		return ExitMissing, "run it again: it continues where it ended"
	}
	return ExitFailed, ""
}

// harmless escapes control characters for a terminal: an error may repeat a server's message.
func harmless(text string) string {
	return Escape(text, func(r rune) bool { return r == '\n' || unicode.IsPrint(r) })
}
