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

// job is work that is done once, as the leader of a role. It takes the lead again if that is lost, because the database
// was away or a repair has ended the term, and continues with what is stored.
type job[W writer] struct {
	db     *store.Store
	role   store.Role
	take   func(context.Context) (W, bool, error)
	busy   string // what to do if another process leads
	stream string // for the log
	logger *slog.Logger
	show   func(ledger.Progress) // on the terminal; may be nil
}

// writer is what a leader of any role is.
type writer interface {
	Lost() <-chan struct{}
	Err() error
	RecordProgress(ctx context.Context, progress ledger.Progress) error
	Close()
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
		leader, err = leadNow(ctx, j.db, j.role, j.take, j.busy)
		return err
	})
	if err != nil {
		return err
	}
	defer leader.Close()
	leading, endTerm := whileLeading(ctx, leader)
	defer endTerm()
	report, endRecording := startRecording(leading, leader.RecordProgress, j.logger, j.show)
	defer endRecording()
	err = work(leading, leader, report)
	if lost := leader.Err(); err != nil && lost != nil && ctx.Err() == nil && !ingest.Lasting(err) {
		return lost // the cause of any other error
	}
	return err
}

// The lock of a killed leader stays for some seconds. One that is still held after this time belongs to a running
// process.
const leadPatience = 10 * time.Second

// leadNow takes the lead of a role. If another process has it, the error names that, with do as the cure.
func leadNow[W any](ctx context.Context, db *store.Store, role store.Role, take func(context.Context) (W, bool, error),
	do string) (none W, err error) {
	deadline := time.Now().Add(leadPatience)
	for {
		leader, ok, err := take(ctx)
		if err != nil || ok {
			return leader, err
		}
		if time.Now().After(deadline) {
			who, err := db.Leadership(ctx, role)
			if err != nil {
				return none, err
			}
			return none, &ledger.Problem{What: "another process writes this database: " + who.Holder, Do: do}
		}
		ingest.Sleep(ctx, standbyEvery)
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
	}
}
