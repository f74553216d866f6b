package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// told is what a background task reported to database, metrics and log.
type told struct {
	mu      sync.Mutex
	reasons []string // as RecordTask was told, in order
	retries int
	failing bool
	log     strings.Builder
	away    error // what RecordTask fails with
}

func (d *told) RecordTask(_ context.Context, task, failure string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away != nil {
		return d.away
	}
	d.reasons = append(d.reasons, task+": "+failure)
	return nil
}

func (d *told) watch() TaskWatch {
	return TaskWatch{
		Retrying: func() { d.mu.Lock(); defer d.mu.Unlock(); d.retries++ },
		Failing:  func(failing bool) { d.mu.Lock(); defer d.mu.Unlock(); d.failing = failing },
	}
}

func (d *told) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(p)
}

// logger writes what an operator sees by default.
func (d *told) logger() *slog.Logger { return slog.New(slog.NewTextHandler(d, nil)) }

// running starts a task; the function returned stops it and waits for its end.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (d *told) recorded() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.reasons)
}

// lines is how many lines of the log hold a text.
func (d *told) lines(text string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for line := range strings.Lines(d.log.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (d *told) failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failing
}

func TestReasonsFitTheDatabase(t *testing.T) {
	t.Parallel()
	problem := &ledger.Problem{What: "no right", Do: "grant it", Err: errors.New("403")}
	require.Equal(t, "read: no right: 403; what to do: grant it", Reason(fmt.Errorf("read: %w", problem)))
	require.Equal(t, "a?b?c", Reason(errors.New("a\x00b\xffc")))
	require.Equal(t, longestReason+1, utf8.RuneCountInString(Reason(errors.New(strings.Repeat("ü", 100_000)))))
}
