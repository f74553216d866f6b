package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ledgerindexer/ledger"
)

// The names of the background tasks, in the database, metrics and log.
const (
	TaskLookups                  = "lookups"
	TaskVetting                  = "vetting"  // of packages
	TaskPackages                 = "packages" // their content
	TaskHosting                  = "hosting"  // of parties
	TaskVerification             = "verification"
	TaskPruning                  = "pruning"
	TaskTransactionsVerification = "transactions_verification"
	TaskRecords                  = "records" // that follow from the updates of a network
)

const (
	// The wait before the next try of a task that fails until an operator acts: a right is missing, or the server lacks
	// the operation.
	restFor = 10 * time.Minute
	// An unchanged state is recorded this often, and recording it may take recordTimeout.
	recordAgainAfter = time.Minute
	recordTimeout    = 3 * time.Second
	// The longest reason that is recorded, in characters.
	longestReason = 2000
	// Time limits for the whole answer to a look-up, and for listing all packages, which takes many requests. Servers give
	// up on a request after 20 s.
	lookupPatience = time.Minute
	listPatience   = 10 * time.Minute
	// How long outcomes may still take to store when the task has to end.
	graceFor = 2 * time.Second
)

// TaskSink records the state of background tasks.
type TaskSink interface {
	// RecordTask records that a task worked just now or, if failure is not empty, why it failed.
	RecordTask(ctx context.Context, task, failure string) error
}

// TaskWatch has callbacks for the state of a background task. Each may be nil.
type TaskWatch struct {
	Retrying func()             // a try failed and will be repeated
	Failing  func(failing bool) // after each try
}

// TaskReport reports the state of a task, or a stream, to metrics and database.
type TaskReport struct {
	Name   string // in the database
	Sink   TaskSink
	Logger *slog.Logger
	Watch  TaskWatch
	// Finish, if not nil, is closed when nothing comes any more that the task would have to do. The task then ends when it
	// has done what is left, or when an operator must act before it can.
	Finish <-chan struct{}

	reason     string    // the last reported failure; empty: none
	recordedAt time.Time // when the state was last recorded; zero: it is still to be recorded
}

// Note reports why the task fails; empty: it works. An unchanged state is recorded in the database once a minute.
func (r *TaskReport) Note(ctx context.Context, reason string) {
	if r.Watch.Failing != nil {
		r.Watch.Failing(reason != "")
	}
	if reason == r.reason && time.Since(r.recordedAt) < recordAgainAfter {
		return
	}
	r.reason, r.recordedAt = reason, time.Time{}
	within, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if err := r.Sink.RecordTask(within, r.Name, reason); err != nil {
		// The next try records it. The stream warns of a database that does not answer.
		r.Logger.DebugContext(ctx, "the state of a task could not be recorded", "task", r.Name, "error", err)
		return
	}
	r.recordedAt = time.Now()
}

// RunTask runs a background task until ctx ends or it has finished. run works until ctx ends (nil), nothing is left to
// do after the report's Finish (nil), or something fails, and is then called again after a wait. It calls worked after
// each success. RunTask returns why the task ended before it had done all; nil: it has, or the source does not offer
// what it needs.
func RunTask(ctx context.Context, report TaskReport, run func(ctx context.Context, worked func()) error) error {
	return newTask(report).run(ctx, run)
}

// RunEvery is RunTask for a task that does something at once, then at an interval, and a last time to finish.
func RunEvery(ctx context.Context, report TaskReport, interval time.Duration,
	do func(ctx context.Context) error) error {
	return newTask(report).runEvery(ctx, interval, do)
}

// task is a background task. Its failures never end the stream: they go to log, database and metrics, without
// repetitions.
type task struct {
	TaskReport
	retry Retry
	each  bool // each success is recorded, because they are rare
}

func newTask(report TaskReport) *task {
	return &task{TaskReport: report, retry: Retry{Final: needsOperator, Rest: restFor}}
}

// needsOperator reports whether a task fails until an operator acts.
func needsOperator(err error) bool { return !unusable(err) && lastingOrNotOffered(err) }

func (t *task) run(ctx context.Context, run func(ctx context.Context, worked func()) error) error {
	t.retry.Failed = func(err error, again time.Duration) { t.failed(ctx, err, again) }
	waits, end := context.WithCancel(ctx) // no wait goes on when it is time to finish
	defer end()
	go func() {
		select {
		case <-t.Finish:
			end()
		case <-waits.Done():
		}
	}()
	work := func(context.Context) error { return run(ctx, func() { t.worked(ctx) }) }
	err := t.retry.Do(waits, work)
	if err != nil && ctx.Err() == nil { // perhaps the cause has passed
		t.retry.Reset()
		t.retry.Rest = 0 // what is final ends the task
		err = t.retry.Do(ctx, work)
		if err != nil && ctx.Err() == nil {
			t.failed(ctx, err, 0)
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ledger.ErrNotOffered) && !Lasting(err):
		return nil
	}
	return err
}

func (t *task) runEvery(ctx context.Context, interval time.Duration, do func(ctx context.Context) error) error {
	return t.run(ctx, func(ctx context.Context, worked func()) error {
		return t.rounds(ctx, worked, schedule{idle: interval}, func(ctx context.Context) (bool, error) {
			return false, do(ctx)
		})
	})
}

// schedule says when a task has its next round, if there is no more to do at once.
type schedule struct {
	wake  <-chan struct{} // there may be more to do; nil: that is not said
	every time.Duration   // at most this often
	idle  time.Duration   // and at least this often
}

// rounds does one round after the other until one fails, ctx ends, or after Finish there is no more to do.
func (t *task) rounds(ctx context.Context, worked func(), when schedule,
	round func(ctx context.Context) (more bool, err error)) error {
	for ctx.Err() == nil {
		last, began := t.finishing(), time.Now()
		more, err := round(ctx)
		if err != nil {
			return err
		}
		worked()
		switch {
		case more:
		case last:
			return nil
		default:
			SleepOr(ctx, when.idle, when.wake, t.Finish)
			SleepOr(ctx, time.Until(began.Add(when.every)), t.Finish, nil)
		}
	}
	return nil
}

// finishing reports whether it is time to finish. What is found missing after that is all that is left.
func (t *task) finishing() bool { return Finishing(t.Finish) }

// Finishing reports whether a channel as that of TaskReport is closed.
func Finishing(finish <-chan struct{}) bool {
	select {
	case <-finish:
		return true
	default:
		return false
	}
}

func (t *task) failing() bool { return t.reason != "" }

func (t *task) worked(ctx context.Context) {
	t.retry.Worked()
	if t.failing() {
		t.Logger.InfoContext(ctx, "working again", "task", t.Name)
	}
	if t.each {
		t.recordedAt = time.Time{}
	}
	t.Note(ctx, "")
}

func (t *task) failed(ctx context.Context, err error, again time.Duration) {
	level := slog.LevelDebug // the failure is logged already
	if !t.failing() {
		level = slog.LevelWarn
	}
	reason := Reason(err)
	t.Logger.Log(ctx, level, "a background task failed; the stream continues without it", "task", t.Name, "error", reason,
		"wait", again.String())
	if t.Watch.Retrying != nil {
		t.Watch.Retrying()
	}
	t.Note(ctx, reason)
}

// UnusableError is the error for an answer that says nothing about the one contract or package that was asked for.
type UnusableError struct{ Err error }

func (e *UnusableError) Error() string { return e.Err.Error() }
func (e *UnusableError) Unwrap() error { return e.Err }

// unusable reports whether an error concerns a single contract or package, and not the source as a whole.
func unusable(err error) bool {
	var undecodable *ledger.DecodeError
	var useless *UnusableError
	return errors.As(err, &undecodable) || errors.As(err, &useless)
}

// Reason returns an error as a text that the database can hold, with its cure if it has one.
func Reason(err error) string {
	text := err.Error()
	if problem, ok := errors.AsType[*ledger.Problem](err); ok && problem.Do != "" {
		text += "; what to do: " + problem.Do
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if runes := []rune(text); len(runes) > longestReason {
		text = string(runes[:longestReason]) + "…"
	}
	return text
}

// withTimeout limits the time for an answer to its end: one that comes byte by byte is never idle, and would delay the
// task.
func withTimeout(ctx context.Context, timeout time.Duration, ask func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := ask(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		// The error is not wrapped: what it says of the answer would be taken for the server's.
		return fmt.Errorf("the participant had not answered in full after %v: %s", timeout, err.Error())
	}
	return err
}

// graceContext returns a context that ends graceFor after ctx, for storing outcomes.
func graceContext(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(graceFor, cancel) })
	return within, func() { stop(); cancel() }
}
