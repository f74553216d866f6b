// Command sandbox serves a simulated ledger participant: a ledger grown from a seed, with
// a Scan service of its transaction history, or recorded responses. With --all it shows what the indexer makes of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"ledgerindexer/internal/config"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := exitCode(run(ctx, os.Args[1:], os.Stdout), os.Stderr)
	stop()
	os.Exit(code)
}

// exitCode prints the error, if any, and returns the exit code.
func exitCode(err error, stderr io.Writer) int {
	var usage *kong.ParseError
	switch {
	case err == nil, errors.Is(err, config.ErrHelp):
		return exitDone
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "sandbox: %v\nTry: sandbox --help\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "sandbox: %v\n", err)
	return exitFailed
}
