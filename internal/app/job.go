package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// job is work that is done once, as the holder of a lease. It takes the lease again if that is lost, because the
// database was away or a repair has ended the term, and continues with what is stored.
type job[W writer] struct {
	db     *store.Store
	lease  store.Lease
	take   func(context.Context) (W, bool, error)
	busy   string // what to do if another process leads
	stream string // for the log
	logger *slog.Logger
}

// run calls work in one term after the other, until it ends in another way than by the loss of the lead. work's context
// ends with the term.
func (j job[W]) run(ctx context.Context, work func(ctx context.Context, leader W,
	report func(ledger.Progress)) error) error {
	retry := ingest.Retry{
		Final: func(err error) bool { return !errors.Is(err, store.ErrNotLeader) },
		Failed: func(err error, wait time.Duration) {
			j.logger.WarnContext(ctx, "the lead was lost; continuing if nobody else has it", "stream", j.stream, "error", err,
				"wait", wait.String())
		},
	}
	return retry.Do(ctx, func(ctx context.Context) error { return j.term(ctx, work) })
}

func (j job[W]) term(ctx context.Context, work func(ctx context.Context, leader W,
	report func(ledger.Progress)) error) error {
	var leader W
	err := await(ctx, j.logger, "waiting for the database", func(ctx context.Context) (err error) {
		leader, err = leadNow(ctx, j.db, j.lease, j.take, j.busy)
		return err
	})
	if err != nil {
		return err
	}
	defer leader.Close()
	leading, endTerm := whileLeading(ctx, leader)
	defer endTerm()
	report, endRecording := startRecording(leading, leader.RecordProgress, j.logger)
	defer endRecording()
	err = work(leading, leader, report)
	if lost := leader.Err(); err != nil && lost != nil && ctx.Err() == nil && !ingest.Lasting(err) {
		return lost // the cause of any other error
	}
	return err
}
