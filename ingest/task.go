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
	TaskLookups  = "lookups"
	TaskPackages = "packages"
)

const (
	// How long a task rests that an operator must help: a right is missing, or the server lacks the operation.
	restFor = 10 * time.Minute
	// What has not changed is told to the database at most this often.
	tellEvery = time.Minute
	// What the database keeps of a reason: servers may be talkative.
	longestReason = 2000
	// How long the participant may take to answer a look-up, to the end of the answer, and to list all packages, which is
	// many requests. Servers give up on a request after 20 s.
	lookupPatience = time.Minute
	listPatience   = 10 * time.Minute
	// How long what was learned may still take to store once the task is told to end.
	lastWordsFor = 2 * time.Second
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

// task is what background tasks have in common: they are beside the stream and never end it, so what goes wrong is
// told to the log, the database and the metrics instead. None of these is told the same again and again.
type task struct {
	name   string
	sink   TaskSink
	logger *slog.Logger
	watch  TaskWatch
	each   bool // it works so rarely that the database is told each time

	wait    Backoff
	failing bool
	told    time.Time // when the database was told last; zero: not yet, or it must hear the news
}

// worked notes that the task did what it is for.
func (t *task) worked(ctx context.Context) {
	t.wait.Reset()
	if t.failing {
		t.logger.InfoContext(ctx, "working again", "task", t.name)
	}
	if t.each {
		t.told = time.Time{}
	}
	t.note(ctx, false, "")
}

// failed notes why it could not.
func (t *task) failed(ctx context.Context, err error, again time.Duration) {
	if ctx.Err() != nil {
		return // whatever failed because the task is told to end
	}
	level := slog.LevelDebug // it was said already
	if !t.failing {
		level = slog.LevelWarn
	}
	reason := reasonOf(err)
	t.logger.Log(ctx, level, "a background task failed; the stream goes on without it", "task", t.name, "error", reason,
		"wait", again.String())
	if t.watch.Retrying != nil {
		t.watch.Retrying()
	}
	t.note(ctx, true, reason)
}

func (t *task) note(ctx context.Context, failing bool, reason string) {
	if t.watch.Failing != nil {
		t.watch.Failing(failing)
	}
	if t.failing != failing {
		t.told = time.Time{}
	}
	t.failing = failing
	if time.Since(t.told) < tellEvery {
		return
	}
	if err := t.sink.RecordTask(ctx, t.name, reason); err != nil {
		// Said again with the next try. That the database is away is the stream's to say.
		t.logger.DebugContext(ctx, "how a background task fares could not be recorded", "task", t.name, "error", err)
		return
	}
	t.told = time.Now()
}

// reasonOf is an error as the database can hold it, with what to do where that is known.
func reasonOf(err error) string {
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

// patiently asks the participant for something, and not for ever: an answer that drips is no silence, and holds up what
// else the task has to do.
func patiently(ctx context.Context, patience time.Duration, ask func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := ask(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		// What the error itself says of the answer is no longer true of it: it was not awaited.
		return fmt.Errorf("the participant had not answered in full after %v: %s", patience, err.Error())
	}
	return err
}

// lastWords is a context that ends a moment after ctx: what was learned is worth a moment, and can be learned again.
func lastWords(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWordsFor, cancel) })
	return within, func() { stop(); cancel() }
}
