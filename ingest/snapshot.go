package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

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
	// Wrote, if set, is told after each committed page how many entries are stored.
	Wrote func(entries int64)
}

// Run works until the snapshot is stored and the watermark stands at its offset. It goes on from the last stored
// token, its own or that of a run before. When ctx ends it finishes the page under way and returns ctx's error.
func (s *Snapshot) Run(ctx context.Context) (ledger.SnapshotProgress, error) {
	var wait backoff
	if s.Restart {
		if err := s.Sink.DropSnapshot(ctx); err != nil {
			return ledger.SnapshotProgress{}, err
		}
	}
	var at *ledger.Offset
	for {
		progress, err := s.try(ctx, &at, &wait)
		if err == nil || lasting(err) {
			return progress, err
		}
		if ctx.Err() != nil {
			return progress, ctx.Err()
		}
		pause := wait.next(err)
		s.Logger.WarnContext(ctx, "retrying", "stream", "snapshot", "error", err, "wait", pause)
		sleep(ctx, pause)
	}
}

// try goes on until something fails. The offset, once chosen, is kept over tries.
func (s *Snapshot) try(ctx context.Context, at **ledger.Offset, wait *backoff) (ledger.SnapshotProgress, error) {
	if *at == nil {
		chosen, err := s.chooseOffset(ctx)
		if err != nil {
			return ledger.SnapshotProgress{}, err
		}
		*at = &chosen
	}
	progress, err := s.Sink.BeginSnapshot(ctx, s.ParticipantID, s.Scope, **at)
	if err != nil {
		return progress, err
	}
	if progress.Entries > 0 {
		s.Logger.InfoContext(ctx, "going on with the snapshot", "offset", int64(progress.At), "entries", progress.Entries)
	} else {
		s.Logger.InfoContext(ctx, "reading the snapshot", "offset", int64(progress.At))
	}
	return s.copyPages(ctx, progress, wait)
}

// copyPages reads the next page while the last is written.
func (s *Snapshot) copyPages(ctx context.Context, progress ledger.SnapshotProgress, wait *backoff) (ledger.SnapshotProgress, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	pages := make(chan ledger.SnapshotPage, 1)
	token := progress.Next
	group.Go(func() error {
		defer close(pages)
		for {
			page, err := s.Source.ReadSnapshot(groupCtx, progress.At, token)
			if err != nil {
				return fmt.Errorf("read the snapshot at offset %d: %w", progress.At, err)
			}
			select {
			case pages <- page:
			case <-groupCtx.Done():
				return groupCtx.Err()
			}
			if page.Last {
				return nil
			}
			token = page.Next
		}
	})
	stored := progress
	group.Go(func() error {
		lastLine := time.Now()
		for page := range pages {
			if len(page.Entries) > 0 || page.Last {
				var err error
				if stored, err = s.Sink.WriteSnapshotPage(context.WithoutCancel(ctx), stored, page); err != nil {
					return err
				}
				wait.reset()
				if s.Wrote != nil {
					s.Wrote(stored.Entries)
				}
			}
			if page.Last {
				return nil
			}
			if time.Since(lastLine) >= progressEvery {
				s.Logger.InfoContext(ctx, "reading the snapshot", "offset", int64(stored.At), "entries", stored.Entries)
				lastLine = time.Now()
			}
			if groupCtx.Err() != nil {
				return groupCtx.Err()
			}
		}
		return nil
	})
	err := group.Wait()
	return stored, err
}

func (s *Snapshot) chooseOffset(ctx context.Context) (ledger.Offset, error) {
	if s.At == nil {
		unfinished, err := s.Sink.UnfinishedSnapshot(ctx)
		if err != nil {
			return 0, err
		}
		if unfinished != nil {
			return unfinished.At, nil
		}
	}
	end, err := s.Source.LedgerEnd(ctx)
	tellsEnd := !errors.Is(err, ledger.ErrNotOffered)
	if err != nil && tellsEnd {
		return 0, fmt.Errorf("ask for the ledger's end: %w", err)
	}
	if s.At == nil {
		if !tellsEnd {
			return 0, &ledger.Problem{
				What: "the server does not tell its ledger end, so the snapshot's offset can't be chosen",
				Do:   "give the offset with --at-offset",
			}
		}
		return end, nil
	}
	at := *s.At
	if tellsEnd && at > end {
		return 0, &ledger.Problem{
			What: fmt.Sprintf("offset %d is above the ledger's end %d", at, end),
			Do:   "give --at-offset an offset up to the ledger's end, or leave it out to take the end",
		}
	}
	pruned, err := s.Source.PrunedOffset(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return 0, fmt.Errorf("ask how far the participant is pruned: %w", err)
	}
	if err == nil && at < pruned {
		return 0, &ledger.Problem{
			What: fmt.Sprintf("offset %d is below offset %d, up to which the participant is pruned", at, pruned),
			Do:   "give --at-offset an offset from the pruned one on, or leave it out to take the ledger's end",
		}
	}
	return at, nil
}
