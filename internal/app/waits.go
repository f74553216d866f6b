package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// retryUntilDone tries fn again and again. It returns nil when fn succeeds or ctx ends, and an error that is Lasting.
// failed is called for each failure.
func retryUntilDone(ctx context.Context, logger *slog.Logger, state string, fn func(context.Context) error,
	failed func(error)) error {
	retry := ingest.Retry{Logger: logger.With("state", state), Failed: func(err error, _ time.Duration) { failed(err) }}
	if err := retry.Do(ctx, fn); ingest.Lasting(err) {
		return err
	}
	return nil
}

// reachable returns the error of a request that only asks whether a server answers. A server without the operation has
// answered.
func reachable(err error) error {
	if errors.Is(err, ledger.ErrNotOffered) {
		return nil
	}
	return err
}

// waitOrAbandon calls fn and waits until it returns, but not longer than shutdownGrace: then it returns a channel that
// is closed when fn returns, else nil. Only a database that hangs takes longer: its connections are given up after 15
// s.
func waitOrAbandon(fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		fn()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(shutdownGrace):
		return done
	}
}

// await is retryUntilDone that returns an error where ctx ended first.
func await(ctx context.Context, logger *slog.Logger, state string, fn func(context.Context) error) error {
	return cmp.Or(retryUntilDone(ctx, logger, state, fn, func(error) {}), ctx.Err())
}
