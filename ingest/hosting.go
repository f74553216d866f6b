package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/ledger"
)

// How often, and how much at once, the task Hosting asks which parties the participant hosts.
const (
	// The database is asked of which parties hosting is wanted after commits, at most this often,
	hostingEvery = 5 * time.Second
	// and this often where nothing is committed.
	idleHosting = time.Minute
	// mostParties is how many parties are asked about before the answers are stored.
	mostParties = 500
)

// HostingSink stores which parties the participant hosts.
type HostingSink interface {
	TaskSink
	// WantedHosting returns parties to ask about, at most limit, and the watermark at which they are asked about. named:
	// see Hosting.
	WantedHosting(ctx context.Context, named []string, limit int) (parties []string, at ledger.Offset, err error)
	// SaveHosting stores whether parties are hosted, as it was asked at a watermark.
	SaveHosting(ctx context.Context, hosted map[string]bool, at ledger.Offset) error
	// ForgetHosting removes what is stored of other parties than those that are named, if any are.
	ForgetHosting(ctx context.Context, named []string) error
}

// Hosting is the background task that asks the participant which parties it hosts: of others only some holdings are
// seen. It is used once.
type Hosting struct {
	// Hosted returns for each party whether the participant hosts it; parties that it does not know are not in the map.
	// The error is ledger.ErrNotOffered where the participant does not say.
	Hosted func(ctx context.Context, parties []string) (map[string]bool, error)
	Sink   HostingSink
	// the parties that the scope names; empty: it names none, and whoever holds something is asked about
	Named  []string
	Wake   <-chan struct{} // after a commit
	Finish <-chan struct{} // see TaskReport
	Logger *slog.Logger
	Watch  TaskWatch
}

// Run works until ctx ends or all are asked about after Finish. Its error is that of RunTask.
func (h *Hosting) Run(ctx context.Context) error {
	t := newTask(TaskReport{Name: TaskHosting, Sink: h.Sink, Logger: h.Logger, Watch: h.Watch, Finish: h.Finish})
	var refused time.Time // when the participant last did not say it
	round := func(ctx context.Context) (more bool, err error) {
		if time.Since(refused) < restFor {
			return false, nil
		}
		n, err := h.round(ctx)
		if errors.Is(err, ledger.ErrNotOffered) { // no failure: nobody can mend it who reads with few rights
			if refused.IsZero() {
				h.Logger.InfoContext(ctx, "the participant does not say which parties it hosts: sums of holdings are of what is "+
					"stored, also of parties that are hosted elsewhere", "task", TaskHosting, "error", err)
			}
			refused, err = time.Now(), nil
		}
		return n >= mostParties, err
	}
	return t.run(ctx, func(ctx context.Context, worked func()) error {
		if err := h.Sink.ForgetHosting(ctx, h.Named); err != nil {
			return err
		}
		return t.rounds(ctx, worked, schedule{wake: h.Wake, every: hostingEvery, idle: idleHosting}, round)
	})
}

// round asks about parties, and returns about how many.
func (h *Hosting) round(ctx context.Context) (int, error) {
	parties, at, err := h.Sink.WantedHosting(ctx, h.Named, mostParties)
	if err != nil || len(parties) == 0 {
		return 0, err
	}
	var answer map[string]bool
	err = withTimeout(ctx, listPatience, func(ctx context.Context) (err error) {
		answer, err = h.Hosted(ctx, parties)
		return err
	})
	if err != nil {
		return 0, err
	}
	hosted := make(map[string]bool, len(parties))
	for _, party := range parties {
		hosted[party] = answer[party]
	}
	return len(parties), h.Sink.SaveHosting(ctx, hosted, at)
}
