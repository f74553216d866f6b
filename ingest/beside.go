package ingest

import (
	"context"
	"log/slog"
)

// The tasks that verify what was stored, by the names under which the database knows how they fare.
const (
	TaskVerification        = "verification"
	TaskHistoryVerification = "history_verification"
)

// Beside runs a task beside a stream until ctx ends. run works until ctx ends (nil) or something fails; it is called again
// after a wait, and calls worked whenever it has done what it is for.
func Beside(ctx context.Context, name string, sink TaskSink, logger *slog.Logger, watch TaskWatch, run func(ctx context.Context, worked func()) error) {
	t := task{name: name, sink: sink, logger: logger, watch: watch}
	for ctx.Err() == nil {
		err := run(ctx, func() { t.worked(ctx) })
		if err == nil {
			return
		}
		wait := restFor
		if !mustRest(err) {
			wait = t.wait.Next(err)
		}
		t.failed(ctx, err, wait)
		Sleep(ctx, wait)
	}
}
