package config

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// stopOnSignal returns a context that ends with the first SIGINT or SIGTERM, so that the current batch can be finished.
// The second signal ends the process at once, and the database rolls back what was not committed.
func stopOnSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel()
		case <-stopped:
			return
		}
		select {
		case <-signals:
			os.Exit(ExitFailed)
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel()
	}
}
