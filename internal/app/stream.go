package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// A stream is followed for as long as the daemon runs: a failure ends a try, not the stream. Between two tries are
// these waits.
const (
	// The wait before a stream that failed, or has nothing to read, is tried again.
	lookAgainAfter = 10 * time.Minute
	// The time limit for looking. A server that is gone without a word would else be waited for, and another one is in its
	// place.
	lookFor = time.Minute
)

// run returns nil when ctx ends or the stream is done, and an error when no stream can continue. After an error that is
// Lasting it tries again every lookAgainAfter, so that an operator who has cured it need not restart.
func (s *stream) run(ctx context.Context) error {
	for {
		err := s.attempt(ctx)
		if err == nil {
			return nil
		}
		anyContinues := s.noteFailure(s, err)
		rest := cmp.Or(s.cfg.lookAgain, lookAgainAfter)
		reason := ingest.Reason(err)
		s.set(admin.Failed, false, fmt.Sprintf("failed: %s; it is looked at again every %v", reason, rest))
		s.record(ctx, reason)
		if anyContinues {
			s.logger.ErrorContext(ctx, "the stream can't continue; the other one does without it", "stream", s.title,
				"error", reason)
		}
		switch {
		case s.cfg.UntilCurrent:
			return nil // the error is returned when the other one is current
		case !anyContinues:
			return s.failure()
		}
		ingest.Sleep(ctx, rest)
		if ctx.Err() != nil {
			return nil
		}
		s.noteFailure(s, nil)
	}
}

// finish lets the tasks beside a stream that was read do what is left, until ctx ends, and records what they have not
// done.
func (s *stream) finish(ctx context.Context, tasks *background) {
	if !s.cfg.UntilCurrent || ctx.Err() != nil {
		return
	}
	s.set(admin.Leads, true, "leading, current; finishing the tasks")
	s.noteOutcome(func(o *outcome) { o.done = true })
	missing := tasks.finish(ctx)
	s.noteOutcome(func(o *outcome) { o.missing = missing })
}

// record records why the stream can't continue, for `indexer status`. Only a leader can write that; if another process
// leads, the stream continues there.
func (s *stream) record(ctx context.Context, reason string) {
	ctx, cancel := context.WithTimeout(ctx, noteFor)
	defer cancel()
	leader, _, ok, err := s.work.take(ctx)
	if ok {
		s.note(ctx, leader, reason)
		s.closing = waitOrAbandon(leader.Close)
	}
	if err != nil {
		s.logger.DebugContext(ctx, "why the stream can't continue could not be recorded", "stream", s.title, "error", err)
	}
}

// note records why the stream can't continue; empty: it does, and clears an earlier record.
func (s *stream) note(ctx context.Context, leader *store.Leader, reason string) {
	report := ingest.TaskReport{Name: s.name(), Sink: leader, Logger: s.logger}
	report.Note(ctx, reason)
}

// attempt returns nil when ctx ends or the stream is done, and an error that is Lasting.
func (s *stream) attempt(ctx context.Context) error {
	state := "waiting for " + s.sourceName
	err := retryUntilDone(ctx, s.logger, state, s.work.connect,
		func(err error) { s.set(admin.Waits, false, state+": "+err.Error()) })
	if err != nil || ctx.Err() != nil {
		return err
	}
	s.retry = ingest.Retry{Logger: s.logger.With("stream", s.title), Failed: func(err error, _ time.Duration) {
		s.metrics.Retrying(s.name(), retryReason(err))
		s.set(admin.Waits, false, "trying again: "+err.Error())
	}}
	if err := s.retry.Do(ctx, s.terms); ingest.Lasting(err) {
		return err
	}
	text := "stopped" // errors after ctx ended do not count
	if err := s.failureOf(s); err != nil {
		text += ": " + err.Error()
	}
	s.set(admin.Stopped, true, text)
	s.logger.InfoContext(ctx, "stopped", "stream", s.title)
	return nil
}

// retryReason returns why a stream is tried again, for metrics: what kind of failure its source has, the database, the
// lost lead, or something else, such as another history.
func retryReason(err error) string {
	var ofSource interface{ Reason() string }
	switch {
	case errors.As(err, &ofSource):
		return ofSource.Reason()
	case errors.Is(err, store.ErrNotLeader):
		return "lead_lost"
	case store.IsDatabaseError(err):
		return "database"
	}
	return "other"
}

// terms runs terms until one fails, nothing is left to do, or ctx ends.
func (s *stream) terms(ctx context.Context) error {
	for {
		done, err := s.term(ctx)
		if done || err != nil || ctx.Err() != nil {
			return err
		}
		s.retry.Worked()
	}
}

// term takes the lead and works until that is lost; if it can't lead now, it waits a moment. done is true when nothing
// is left to do.
func (s *stream) term(ctx context.Context) (done bool, err error) {
	looking, end := context.WithTimeout(ctx, lookFor)
	defer end()
	state, ready, err := s.work.blocker(looking)
	if err != nil {
		return false, err
	}
	if state != "" {
		s.wait(ctx, admin.Waits, ready, state)
		return false, nil
	}
	if s.closing != nil {
		select {
		case <-s.closing:
			s.closing = nil
		default: // it may still hold the lock, which would look like another process's
			s.wait(ctx, admin.Waits, false, "waiting: the database does not let go of the last term's connections")
			return false, nil
		}
	}
	leader, run, ok, err := s.work.take(looking)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, s.standBy(ctx)
	}
	s.stands = time.Time{}
	defer func() {
		if s.closing = waitOrAbandon(leader.Close); s.closing != nil {
			s.logger.WarnContext(ctx, "the database does not let go of its connections; they are not waited for",
				"stream", s.title)
		}
	}()
	s.metrics.Epoch(s.name(), leader.Epoch())
	s.metrics.Leading(s.name(), true)
	defer s.metrics.Leading(s.name(), false)

	// A blocker may have come up before this process got the lead.
	if state, _, err = s.work.blocker(looking); err != nil || state != "" {
		return false, err
	}
	termCtx, endTerm := whileLeading(ctx, leader)
	defer endTerm()
	done, err = run(termCtx, s)
	if lost := leader.Err(); lost != nil && ctx.Err() == nil {
		return false, lost // the cause of any other error
	}
	return done, err
}

// standBy waits a moment for the lead, which another process has. With UntilCurrent it is waited for as long as jobs
// do.
func (s *stream) standBy(ctx context.Context) error {
	if s.stands.IsZero() {
		s.stands = time.Now()
	}
	if s.cfg.UntilCurrent && time.Since(s.stands) > leadPatience {
		looking, end := context.WithTimeout(ctx, lookFor)
		defer end()
		who, err := s.store.Leadership(looking, s.lease)
		if err != nil {
			return err
		}
		return &ledger.Problem{
			What: "another process writes this database: " + who.Holder,
			Do:   "leave that one to keep the database current, or stop it first, and run with --until-current again",
		}
	}
	s.wait(ctx, admin.StandsBy, true, "standing by: another process leads")
	return nil
}

// wait reports why this process does not write the stream, and waits for standbyEvery.
func (s *stream) wait(ctx context.Context, state admin.State, ready bool, text string) {
	if s.set(state, ready, text) {
		s.logger.InfoContext(ctx, "not writing", "stream", s.title, "state", text)
	}
	ingest.Sleep(ctx, standbyEvery)
}
