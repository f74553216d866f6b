package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/internal/config"
)

// errTimeout is the cause of a context that ended with --timeout.
var errTimeout = errors.New("--timeout is over")

// limited returns a context that ends with --timeout, which is then its cause.
func limited(ctx context.Context, cfg config.Run) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if !cfg.UntilCurrent || cfg.Timeout <= 0 {
		return ctx, func() { cancel(nil) }
	}
	timer := time.AfterFunc(cfg.Timeout, func() { cancel(errTimeout) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// outcome returns why streams can't continue and, as a *config.UnfinishedError, what else is left to do; nil: all was
// done.
func (x *indexer) outcome(ctx context.Context) error {
	failed := x.failure()
	x.mu.Lock()
	defer x.mu.Unlock()
	var left error
	for _, s := range x.streams {
		missing := s.outcome.missing
		switch {
		case x.failures[s] != nil:
			continue
		case missing == nil && s.outcome.done:
			continue
		case missing == nil:
			missing = errors.New("not current (" + cmp.Or(s.outcome.state, "waiting for "+s.sourceName) + ")")
		}
		if missing = fmt.Errorf("%s: %w", s.title, missing); left != nil {
			missing = fmt.Errorf("%w; %w", left, missing)
		}
		left = missing
	}
	if left == nil {
		return failed
	}
	why := "not all was done"
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		why = fmt.Sprintf("not all was done within --timeout=%v", x.cfg.Timeout)
	case ctx.Err() != nil:
		why = "stopped before all was done"
	}
	left = &config.UnfinishedError{Err: fmt.Errorf("%s: %w", why, left)}
	if failed != nil {
		return fmt.Errorf("%w; %w", failed, left)
	}
	return left
}
