package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/admin"
	"ledgerindexer/store"
)

const (
	// How long a stream is left alone that can't go on, or that has nothing to read, before it is looked at again.
	lookAgainAfter = 10 * time.Minute
	// How often a process that stands by, or waits for what is in the way, looks again.
	standbyEvery = time.Second
	// How long the end of a term waits for each of the things that end with it.
	shutdownGrace = 3 * time.Second
	// How long the database may take to note how something fares: that is not worth a longer wait.
	noteFor = 3 * time.Second
)

// stream is one of the streams of a daemon. Each has a lead of its own, which another process may have, and waits and
// fails by itself.
type stream struct {
	*indexer
	role   store.Role
	source string // whom it is read from, for people
	work   role

	retry   ingest.Retry    // between terms that failed
	closing <-chan struct{} // closed when the leader of the last term is; nil: it is
}

// role is what is particular to a stream.
type role interface {
	// connect finds out who answers, and whether the database is theirs. It is tried until it succeeds, before all else.
	connect(ctx context.Context) error
	// blocker says what must go away before anybody writes the stream, and whether a process that waits for it is
	// ready; an empty state: nothing.
	blocker(ctx context.Context) (state string, ready bool, err error)
	// take tries once to take the lead; ok is false where another process has it. run says that it leads, and reads and writes as
	// the leader until ctx ends or there is nothing more to do (done), or something fails. The next term begins at once where it is
	// neither.
	take(ctx context.Context) (leader *store.Leader, run func(ctx context.Context, s *stream) (done bool, err error), ok bool, err error)
}

// name is the stream's in checkpoints, health and metrics: that of its role.
func (s *stream) name() string { return string(s.role) }

// set says what this process does about the stream, and whether that is what it is there for.
func (s *stream) set(state admin.State, ready bool, text string) (changed bool) {
	s.metrics.StreamState(s.name(), state)
	return s.health.Set(s.name(), ready, text)
}

// run works until ctx ends or the stream is done (nil both), or no stream can go on. What trying again at once can't cure is
// looked at again after a rest: an operator who has cured it need not do more.
func (s *stream) run(ctx context.Context) error {
	for {
		err := s.attempt(ctx)
		if err == nil {
			return nil
		}
		goesOn := s.noteFailure(s, err)
		rest := cmp.Or(s.cfg.lookAgain, lookAgainAfter)
		reason := ingest.Reason(err)
		s.set(admin.Failed, false, fmt.Sprintf("failed: %s; it is looked at again every %v", reason, rest))
		s.record(ctx, reason)
		if goesOn {
			s.logger.ErrorContext(ctx, "the stream can't go on; the other one does without it", "stream", s.name(), "error", reason)
		}
		switch {
		case s.cfg.UntilCurrent:
			return nil // what it was is told when the other one is current
		case !goesOn:
			return s.failure()
		}
		ingest.Sleep(ctx, rest)
		if ctx.Err() != nil {
			return nil
		}
		s.noteFailure(s, nil)
	}
}

// record tells the database why the stream can't go on, for `indexer status`. Only who leads can, and where another process
// does, the stream goes on.
func (s *stream) record(ctx context.Context, reason string) {
	ctx, cancel := context.WithTimeout(ctx, noteFor)
	defer cancel()
	leader, _, ok, err := s.work.take(ctx)
	if ok {
		s.note(ctx, leader, reason)
		s.closing = waitOrAbandon(leader.Close)
	}
	if err != nil {
		s.logger.DebugContext(ctx, "why the stream can't go on could not be recorded", "stream", s.name(), "error", err)
	}
}

// note records why the stream can't go on; empty: it does, whatever was recorded before.
func (s *stream) note(ctx context.Context, leader *store.Leader, reason string) {
	report := ingest.TaskReport{Name: s.name(), Sink: leader, Logger: s.logger}
	report.Note(ctx, reason)
}

// attempt works until ctx ends or the stream is done (nil both), or something fails that trying again can't cure.
func (s *stream) attempt(ctx context.Context) error {
	state := "waiting for " + s.source
	err := retryUntilDone(ctx, s.logger, state, s.work.connect, func(err error) { s.set(admin.Waits, false, state+": "+err.Error()) })
	if err != nil || ctx.Err() != nil {
		return err
	}
	s.retry = ingest.Retry{Logger: s.logger.With("stream", s.name()), Failed: func(err error, _ time.Duration) {
		s.metrics.Retrying(s.name())
		s.set(admin.Waits, false, "trying again: "+err.Error())
	}}
	if err := s.retry.Do(ctx, s.terms); ingest.Lasting(err) {
		return err
	}
	text := "stopped" // whatever failed while it was told to
	if err := s.failureOf(s); err != nil {
		text += ": " + err.Error()
	}
	s.set(admin.Stopped, true, text)
	s.logger.InfoContext(ctx, "stopped", "stream", s.name())
	return nil
}

// terms is term after term, until one fails, there is nothing more to do or ctx ends.
func (s *stream) terms(ctx context.Context) error {
	for {
		done, err := s.term(ctx)
		if done || err != nil || ctx.Err() != nil {
			return err
		}
		s.retry.Worked()
	}
}

// term stands by until it leads, and works until the lead is lost. done is true when there is nothing more to do.
func (s *stream) term(ctx context.Context) (done bool, err error) {
	state, ready, err := s.work.blocker(ctx)
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
		default: // its lock would be taken for another process's
			s.wait(ctx, admin.Waits, false, "waiting: the database does not let go of the last term's connections")
			return false, nil
		}
	}
	leader, run, ok, err := s.work.take(ctx)
	if err != nil {
		return false, err
	}
	if !ok {
		s.wait(ctx, admin.StandsBy, true, "standing by: another process leads")
		return false, nil
	}
	defer func() {
		if s.closing = waitOrAbandon(leader.Close); s.closing != nil {
			s.logger.WarnContext(ctx, "the database does not let go of its connections; they are not waited for", "stream", s.name())
		}
	}()
	s.metrics.Leading(s.name(), true)
	defer s.metrics.Leading(s.name(), false)

	// It may have come up before this process got the lead.
	if state, _, err = s.work.blocker(ctx); err != nil || state != "" {
		return false, err
	}
	termCtx, endTerm := whileLeading(ctx, leader)
	defer endTerm()
	done, err = run(termCtx, s)
	if lost := leader.Err(); lost != nil && ctx.Err() == nil {
		return false, lost // whatever else failed for it
	}
	return done, err
}

// whileLeading is a context that ends when the role is lost, which is then its cause, or with end.
func whileLeading(ctx context.Context, leader *store.Leader) (leading context.Context, end func()) {
	leading, lose := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-leader.Lost():
			lose(leader.Err())
		case <-leading.Done():
		}
	}()
	return leading, func() { lose(nil) }
}

// wait says why this process does not write the stream, and lets a moment pass.
func (s *stream) wait(ctx context.Context, state admin.State, ready bool, text string) {
	if s.set(state, ready, text) {
		s.logger.InfoContext(ctx, "not writing", "stream", s.name(), "state", text)
	}
	ingest.Sleep(ctx, standbyEvery)
}

// retryUntilDone tries until fn succeeds or ctx ends (nil), or the error is a lasting one. failed is told of each failure.
func retryUntilDone(ctx context.Context, logger *slog.Logger, state string, fn func(context.Context) error, failed func(error)) error {
	retry := ingest.Retry{Logger: logger.With("state", state), Failed: func(err error, _ time.Duration) { failed(err) }}
	if err := retry.Do(ctx, fn); ingest.Lasting(err) {
		return err
	}
	return nil
}

// waitOrAbandon calls fn and waits until it is done, but not longer than shutdownGrace: then it returns what is closed when
// fn is done, else nil. Tasks end sooner by themselves, and so does a leader, but not where the database hangs: its
// connections take 15 s to be given up.
func waitOrAbandon(fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		fn()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(shutdownGrace):
		return done
	}
}
