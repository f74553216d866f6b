package audit

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// Progress is the progress of a step of the verification.
type Progress struct {
	Step     string // what is compared, for messages
	Done, Of int64  // in offsets, entries or records; Of is 0 if it is not known
}

// Found is called for each difference. If it returns an error, the comparison ends with that error.
type Found = func(Difference) error

// maxOffset stands for the end of what is stored, wherever that is.
const maxOffset ledger.Offset = math.MaxInt64

func errUnstarted() error {
	return &ledger.Problem{What: "nothing has been indexed into the database yet, so there is nothing to verify",
		Do: "let the indexer, or a backfill, begin"}
}

// errTransactionsChanged is the error for a service that changed while it was read.
var errTransactionsChanged = errors.New("the service of the transaction history served other records in the same " +
	"place than before: it changed while it was read; verify again")

// mostTries is how often something is tried before verification gives up, which takes about two minutes.
const mostTries = 10

// Retry tries until fn succeeds, its error is lasting, or it has failed mostTries times. Verification is a command:
// unlike the daemon it does not wait for ever.
func Retry(ctx context.Context, logger *slog.Logger, fn func() error) error {
	retry := ingest.Retry{Logger: logger, Most: mostTries, Final: final}
	return retry.Do(ctx, func(context.Context) error { return fn() })
}

// withRetry is Retry for a function that returns a value.
func withRetry[T any](ctx context.Context, logger *slog.Logger, ask func() (T, error)) (answer T, err error) {
	err = Retry(ctx, logger, func() (err error) {
		answer, err = ask()
		return err
	})
	return answer, err
}

// retryRepair is Retry for a repair, but does not repeat one that has exceeded its time limit: it would again.
func retryRepair(ctx context.Context, logger *slog.Logger, repair func() error) error {
	var late error
	err := Retry(ctx, logger, func() error {
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

func logRemaining(ctx context.Context, logger *slog.Logger, d Difference) {
	logger.WarnContext(ctx, "still different after it was repaired", "difference", d.String())
}

func ignore(Difference) error { return nil }
