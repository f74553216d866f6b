package ingest

import (
	"context"
	"log/slog"

	"ledgerindexer/ledger"
)

// Snapshot is the loop that seeds a database with the contracts that are active at an offset. It is used once.
type Snapshot struct {
	Source        SnapshotSource
	Sink          SnapshotSink
	Scope         ledger.Scope
	ParticipantID string         // recorded; empty where the server does not say
	At            *ledger.Offset // nil: where an unfinished snapshot stands, else the ledger's end
	Restart       bool           // drop an unfinished snapshot first
	Logger        *slog.Logger
	// Wrote, if set, is told after each commit how many entries are stored.
	Wrote func(entries int64)
	// Progress, if set, is told how far the snapshot has come, as NewMeter says.
	Progress func(ledger.Progress)
}

// Run works until the snapshot is stored and the watermark stands at its offset. It goes on from the last stored
// token, its own or that of a run before. When ctx ends it finishes the page under way and returns ctx's error, with
// how far it came. A snapshot that was finished before is a success too: progress then says Finished.
func (s *Snapshot) Run(ctx context.Context) (ledger.SnapshotProgress, error) {
	return s.run(ctx, nil)
}

// run is Run with an offset that was chosen already; nil: it is still to be chosen.
func (s *Snapshot) run(ctx context.Context, at *ledger.Offset) (ledger.SnapshotProgress, error) {
	job := snapshotJob{at: at, retry: Retry{Logger: s.Logger.With("stream", "snapshot")}}
	err := job.retry.Do(ctx, func(ctx context.Context) error { return s.try(ctx, &job) })
	if err == nil {
		return job.stored, nil
	}
	s.leaveNothing(ctx, &job)
	if !Lasting(err) {
		err = ctx.Err()
	}
	return job.stored, err
}

// leaveNothing takes back a snapshot that ends before it has brought anything: an indexer would wait for it.
func (s *Snapshot) leaveNothing(ctx context.Context, job *snapshotJob) {
	if !job.begun || job.stored.Entries > 0 {
		return
	}
	if err := s.Sink.DropSnapshot(context.WithoutCancel(ctx)); err != nil {
		s.Logger.WarnContext(ctx, "the snapshot that was begun is left without entries; begin it again or another one", "error", err)
	}
}

// snapshotJob is what is kept over tries.
type snapshotJob struct {
	retry   Retry
	begun   bool                     // in the database
	dropped bool                     // the unfinished snapshot, where that was asked for
	at      *ledger.Offset           // once it was chosen
	stored  ledger.SnapshotProgress  // as far as is known
	closing *ledger.SnapshotProgress // what is stored if the last page was written although that returned an error
}

// try goes on until something fails.
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
		s.Logger.InfoContext(ctx, "going on with the snapshot", "offset", int64(progress.At), "entries", progress.Entries)
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
	return chooseOffset(ctx, s.Source, s.At, cures{
		noEnd:  "give the offset with --at-offset",
		above:  "give --at-offset an offset up to the ledger's end, or leave it out to take the end",
		pruned: "give --at-offset an offset from the pruned one on, or leave it out to take the ledger's end",
	})
}
