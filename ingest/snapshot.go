package ingest

import (
	"context"
	"errors"
	"log/slog"

	"ledgerindexer/ledger"
)

// Snapshot is the loop that reads the contracts that are active at an offset: into an empty database, or for a resync.
// It is used once.
type Snapshot struct {
	Source        SnapshotSource
	Sink          SnapshotSink
	Scope         ledger.Scope
	ParticipantID string // recorded; empty if the server does not report it
	// or the last one before at which there is a snapshot; nil: that of an unfinished one, else the ledger's end
	At      *ledger.Offset
	Resync  bool // At is the watermark, and there is no other offset to choose
	Restart bool // drop an unfinished snapshot first
	Logger  *slog.Logger
	// Wrote, if set, is called after each commit with the number of stored entries.
	Wrote func(entries int64)
	// Progress, if set, is called with the progress; see NewMeter.
	Progress func(ledger.Progress)
}

// Run works until the snapshot is stored and the watermark is at its offset. It resumes from the last stored token, its
// own or that of an earlier run. When ctx ends it finishes the page under way and returns ctx's error, with the
// progress. If the snapshot was finished before, Run succeeds, and the progress is Finished.
func (s *Snapshot) Run(ctx context.Context) (ledger.SnapshotProgress, error) {
	job := snapshotJob{retry: Retry{Logger: s.Logger.With("stream", "snapshot")}}
	err := job.retry.Do(ctx, func(ctx context.Context) error { return s.try(ctx, &job) })
	if err == nil {
		return job.stored, nil
	}
	if problem, refused := errors.AsType[*ledger.Problem](err); refused && s.Resync && job.begun {
		// The next run begins it again, with no token that the participant may have refused.
		job.stored.Entries = 0
		err = &ledger.Problem{What: "the scope can't be changed: " + problem.What, Do: "start `indexer run` with the flags " +
			"as they were, and change the scope when it has read on; or try again, where the participant was restarted, or " +
			"another one answers", Err: err}
	}
	s.dropIfEmpty(ctx, &job)
	if !Lasting(err) {
		err = ctx.Err()
	}
	return job.stored, err
}

// dropIfEmpty drops a snapshot of which nothing was stored: an indexer would wait until it is finished.
func (s *Snapshot) dropIfEmpty(ctx context.Context, job *snapshotJob) {
	if !job.begun || job.stored.Entries > 0 {
		return
	}
	if err := s.Sink.DropSnapshot(context.WithoutCancel(ctx)); err != nil {
		s.Logger.WarnContext(ctx, "the snapshot that was begun is left without entries; begin it again or another one",
			"error", err)
	}
}

// snapshotJob is the state that is kept over retries.
type snapshotJob struct {
	retry   Retry
	begun   bool                     // in the database
	dropped bool                     // the unfinished snapshot was dropped, as Restart demands
	at      *ledger.Offset           // nil: not chosen yet
	stored  ledger.SnapshotProgress  // the last known
	closing *ledger.SnapshotProgress // what is stored if the last page was committed although its write returned an error
}

// try works until something fails.
func (s *Snapshot) try(ctx context.Context, job *snapshotJob) error {
	if s.Restart && !job.dropped {
		if err := s.Sink.DropSnapshot(ctx); err != nil {
			return err
		}
		job.dropped = true
	}
	if job.at == nil {
		chosen, err := s.chooseOffset(ctx)
		if err != nil {
			return err
		}
		job.at = &chosen
	}
	progress, err := s.Sink.BeginSnapshot(ctx, s.ParticipantID, s.Scope, *job.at)
	if err != nil {
		return err
	}
	if progress.Finished {
		job.stored = progress
		if job.closing != nil {
			job.stored = *job.closing
		}
		return nil
	}
	job.stored, job.begun = progress, true
	if progress.Entries > 0 {
		s.Logger.InfoContext(ctx, "continuing the snapshot", "offset", int64(progress.At), "entries", progress.Entries)
	} else {
		s.Logger.InfoContext(ctx, "reading the snapshot", "offset", int64(progress.At))
	}
	return s.copyPages(ctx, job)
}

func (s *Snapshot) chooseOffset(ctx context.Context) (ledger.Offset, error) {
	if s.At == nil {
		latest, err := s.Sink.LatestSnapshot(ctx)
		if err != nil {
			return 0, err
		}
		if latest != nil {
			return latest.At, nil
		}
	}
	do := cures{
		noEnd:  "give the offset with --at-offset",
		above:  "give --at-offset an offset up to the ledger's end, or leave it out to take the end",
		pruned: "give --at-offset an offset from the pruned one on, or leave it out to take the ledger's end",
	}
	if s.Resync {
		do = cures{
			above: "the participant does not show what is active at the watermark: wait until it has caught up, or, if it was " +
				"restored from an older backup, run `indexer reanchor` first",
			pruned: "it does not show any more what was active at the watermark: let `indexer run` read on with the flags as " +
				"they were first; where it can't, seed a new database in the new scope with `backfill`",
		}
	}
	at, err := chooseOffset(ctx, s.Source, s.At, do)
	if err != nil {
		return 0, err
	}
	return s.Source.SnapshotOffset(ctx, at)
}
