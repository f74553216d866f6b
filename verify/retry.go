package verify

import (
	"context"
	"errors"
	"log/slog"

	"ledgerindexer/findings"
	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// mostTries is how often something is tried before verification gives up, which takes about two minutes.
const mostTries = 10

// Patiently tries until fn succeeds, its error is lasting, or it has failed mostTries times. Verification is a command:
// unlike the daemon it does not wait for ever.
func Patiently(ctx context.Context, logger *slog.Logger, fn func() error) error {
	retry := ingest.Retry{Logger: logger, Most: mostTries, Final: final}
	return retry.Do(ctx, func(context.Context) error { return fn() })
}

// withRetry is Patiently for a function that returns a value.
func withRetry[T any](ctx context.Context, logger *slog.Logger, ask func() (T, error)) (answer T, err error) {
	err = Patiently(ctx, logger, func() (err error) {
		answer, err = ask()
		return err
	})
	return answer, err
}

func logRemaining(ctx context.Context, logger *slog.Logger, d findings.Difference) {
	logger.WarnContext(ctx, "still different after it was repaired", "difference", d.String())
}

// repairPatiently is Patiently for a repair, but does not repeat one that has exceeded its time limit: it would again.
func repairPatiently(ctx context.Context, logger *slog.Logger, repair func() error) error {
	var late error
	err := Patiently(ctx, logger, func() error {
		err := repair()
		if errors.Is(err, context.DeadlineExceeded) {
			late, err = err, nil
		}
		return err
	})
	if late != nil {
		return late
	}
	return err
}

// final reports whether an error is permanent, or means something that the caller handles.
func final(err error) bool {
	return ingest.Lasting(err) || errors.Is(err, ledger.ErrNotOffered) || errors.Is(err, ledger.ErrNotFound) ||
		errors.Is(err, ledger.ErrCursorRefused) ||
		errors.Is(err, errTransactionsChanged)
}
