// Command bench measures the indexer against the limit of PostgreSQL itself.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"ledgerindexer/internal/tools/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := bench.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
