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

// The background tasks, by the names under which the database knows how they fare.
const (
	TaskLookups             = "lookups"
	TaskPackages            = "packages"
	TaskVerification        = "verification"
	TaskHistoryVerification = "history_verification"
)

const (
	// How long a task rests that an operator must help: a right is missing, or the server lacks the operation.
	restFor = 10 * time.Minute
	// What has not changed is told to the database at most this often, and is not worth a longer wait than that.
	tellEvery = time.Minute
	noteFor   = 3 * time.Second
	// What the database keeps of a reason: servers may be talkative.
	longestReason = 2000
	// How long the participant may take to answer a look-up, to the end of the answer, and to list all packages, which is
	// many requests. Servers give up on a request after 20 s.
	lookupPatience = time.Minute
	listPatience   = 10 * time.Minute
	// How long what was learned may still take to store once the task is told to end.
	graceFor = 2 * time.Second
)

// TaskSink remembers how background tasks fare.
type TaskSink interface {
	// RecordTask records that a task worked just now, or, where failure is not empty, why it did not.
	RecordTask(ctx context.Context, task, failure string) error
}

// TaskWatch is told how a background task fares. Each function may be nil.
type TaskWatch struct {
	Retrying func()             // a try failed and is made again
	Failing  func(failing bool) // after each try
}

// TaskReport tells metrics and database how a task, or a stream, fares.
type TaskReport struct {
	Name   string // under which the database knows it
	Sink   TaskSink
	Logger *slog.Logger
	Watch  TaskWatch

	reason string    // why it fails, as it was noted last; empty: it works, as far as is known
	told   time.Time // when the database was told last; zero: not yet, or it must hear the news
}

// Note notes why the task fails; empty: it works. What has not changed is told to the database once a minute.
func (r *TaskReport) Note(ctx context.Context, reason string) {
	if r.Watch.Failing != nil {
		r.Watch.Failing(reason != "")
	}
	if reason == r.reason && time.Since(r.told) < tellEvery {
		return
	}
	r.reason, r.told = reason, time.Time{}
	within, cancel := context.WithTimeout(ctx, noteFor)
	defer cancel()
	if err := r.Sink.RecordTask(within, r.Name, reason); err != nil {
		// Said again with the next try. That the database is away is the stream's to say.
		r.Logger.DebugContext(ctx, "how a task fares could not be recorded", "task", r.Name, "error", err)
		return
	}
	r.told = time.Now()
}

// RunTask runs a task beside a stream until ctx ends. run works until ctx ends (nil) or something fails; it is called again
// after a pause, and calls worked whenever it has done what it is for.
func RunTask(ctx context.Context, report TaskReport, run func(ctx context.Context, worked func()) error) {
	newTask(report).run(ctx, run)
}

// task is what runs beside the stream and never ends it: what goes wrong is told to the log, the database and the metrics
// instead. None of these is told the same again and again.
type task struct {
	TaskReport
	retry Retry
	each  bool // it works so rarely that the database is told each time
}

func newTask(report TaskReport) *task {
	return &task{TaskReport: report, retry: Retry{Final: needsOperator, Rest: restFor}}
}

// needsOperator tells whether a task fails until somebody does something about it.
func needsOperator(err error) bool { return !unusable(err) && lastingOrNotOffered(err) }

func (t *task) run(ctx context.Context, run func(ctx context.Context, worked func()) error) {
	t.retry.Failed = func(err error, again time.Duration) { t.failed(ctx, err, again) }
	_ = t.retry.Do(ctx, func(ctx context.Context) error { return run(ctx, func() { t.worked(ctx) }) }) // it ends with ctx
}

func (t *task) failing() bool { return t.reason != "" }

// worked notes that the task did what it is for.
func (t *task) worked(ctx context.Context) {
	t.retry.Worked()
	if t.failing() {
		t.Logger.InfoContext(ctx, "working again", "task", t.Name)
	}
	if t.each {
		t.told = time.Time{}
	}
	t.Note(ctx, "")
}

// failed notes why it could not.
func (t *task) failed(ctx context.Context, err error, again time.Duration) {
	level := slog.LevelDebug // it was said already
	if !t.failing() {
		level = slog.LevelWarn
	}
	reason := Reason(err)
	t.Logger.Log(ctx, level, "a background task failed; the stream goes on without it", "task", t.Name, "error", reason,
		"wait", again.String())
	if t.Watch.Retrying != nil {
		t.Watch.Retrying()
	}
	t.Note(ctx, reason)
}

// Reason is an error as the database can hold it, with what to do where that is known.
func Reason(err error) string {
	text := err.Error()
	var problem *ledger.Problem
	if errors.As(err, &problem) && problem.Do != "" {
		text += "; what to do: " + problem.Do
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if runes := []rune(text); len(runes) > longestReason {
		text = string(runes[:longestReason]) + "…"
	}
	return text
}

// withTimeout asks the participant for something, and not for ever: an answer that drips is no silence, and holds up what
// else the task has to do.
func withTimeout(ctx context.Context, timeout time.Duration, ask func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := ask(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		// What the error itself says of the answer is no longer true of it: it was not awaited.
		return fmt.Errorf("the participant had not answered in full after %v: %s", timeout, err.Error())
	}
	return err
}

// graceContext is a context that ends a moment after ctx: what was learned is worth a moment, and can be learned again.
func graceContext(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(graceFor, cancel) })
	return within, func() { stop(); cancel() }
}
