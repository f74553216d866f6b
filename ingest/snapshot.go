package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/ledger"
)

// How much of a snapshot is written in one transaction.
const (
	// Pages that came while others were written are written together, up to this many entries or bytes of JSON.
	snapshotBatch      = 5_000
	snapshotBatchBytes = 8 << 20
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

// snapshotPages reads and writes the pages of one try concurrently. The loop owns its state.
type snapshotPages struct {
	*Snapshot
	job   *snapshotJob
	meter *Meter
	loop  eventLoop
	order *orderedCommits // of the batches: the stored token moves over them in their order

	token   ledger.Token         // of the next page to read
	reading bool                 // a page is being read
	last    bool                 // the last page was read
	page    *ledger.SnapshotPage // read and not in the batch yet; nil: none

	batch *ledger.SnapshotPage    // not being written yet; nil: none
	from  ledger.SnapshotProgress // where the batch begins
}

// copyPages reads the rest of the snapshot, and stores it. Pages that were read before an error are stored, and
// transactions that have begun are finished.
func (s *Snapshot) copyPages(ctx context.Context, job *snapshotJob) error {
	meter := NewMeter(s.Logger, ledger.Progress{Stream: "snapshot", Unit: "contracts", Start: job.stored.Entries},
		s.Progress)
	defer meter.Idle()
	order := newOrderedCommits()
	p := snapshotPages{
		Snapshot: s, job: job, meter: meter, loop: eventLoop{woken: order.moved}, order: order, token: job.stored.Next,
		from: job.stored,
	}
	return p.loop.run(ctx, func(reading context.Context) {
		p.write(ctx)
		p.read(reading)
	})
}

// read begins to read the next page, unless one is being read or waits for the batch.
func (p *snapshotPages) read(ctx context.Context) {
	if ctx.Err() != nil || p.reading || p.page != nil || p.last || p.loop.unread != nil {
		return
	}
	p.reading = true
	at, token := p.from.At, p.token
	p.loop.begin(func() func() {
		page, err := p.Source.ReadSnapshot(ctx, at, token)
		if err == nil && !page.Last && page.Next == (ledger.Token{}) {
			err = fmt.Errorf("read the snapshot at offset %d: a page that is not the last has no token behind it", at)
		}
		return func() {
			p.reading, p.loop.unread = false, err
			if err == nil {
				p.page, p.token, p.last = &page, page.Next, page.Last
			}
		}
	})
}

// write adds the page that was read to the batch, and begins to write the batch if that is possible.
func (p *snapshotPages) write(ctx context.Context) {
	for ctx.Err() == nil && p.loop.failed == nil {
		full := p.batch != nil && (len(p.batch.Entries) >= snapshotBatch || p.batch.Bytes >= snapshotBatchBytes)
		switch {
		case p.page != nil && !full:
			p.gather(p.page)
			p.page = nil
		case p.batch != nil && p.order.takes(full || p.last || p.loop.unread != nil):
			p.begin(ctx)
		default:
			return
		}
	}
}

// gather adds a page to the batch. A page without entries is dropped, unless it is the last.
func (p *snapshotPages) gather(page *ledger.SnapshotPage) {
	switch {
	case len(page.Entries) == 0 && !page.Last:
		return
	case p.batch == nil:
		p.batch = page
		return
	}
	p.batch.Entries = append(p.batch.Entries, page.Entries...)
	p.batch.Bytes += page.Bytes
	p.batch.Next, p.batch.Last = page.Next, page.Last
}

func (p *snapshotPages) begin(ctx context.Context) {
	page, from, before := p.batch, p.from, p.order.last
	write := p.order.add()
	p.batch, p.from = nil, from.After(page)
	if page.Last {
		p.job.closing = new(p.from)
	}
	// Two concurrent batches with an entry in common wait for each other until one fails. So after a failure the first
	// batch is written alone: once it is stored, the other is refused for its duplicate.
	again := before == nil && p.job.retry.failing()
	alone := again || hasIncomplete(page)
	if alone && before != nil {
		<-before.done
	}
	p.loop.begin(func() func() {
		write.run(func(order CommitOrder) error { return p.store(ctx, from, order, page) })
		return func() {
			if write.err != nil && !errors.Is(write.err, errBefore) {
				p.loop.fail(write.err)
			}
		}
	})
	if alone {
		<-write.done
	}
}

func (p *snapshotPages) store(
	ctx context.Context, from ledger.SnapshotProgress, order CommitOrder, page *ledger.SnapshotPage,
) error {
	stored, err := p.Sink.WriteSnapshotPage(context.WithoutCancel(ctx), from, order, *page)
	if err != nil {
		return err
	}
	p.job.stored = stored
	p.job.retry.Worked()
	if p.Wrote != nil {
		p.Wrote(stored.Entries)
	}
	p.meter.Add(ctx, stored.Entries, len(page.Entries))
	return nil
}

func hasIncomplete(page *ledger.SnapshotPage) bool {
	for i := range page.Entries {
		if page.Entries[i].Unassigned != nil || page.Entries[i].Assigned != nil {
			return true
		}
	}
	return false
}
