package ingest

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/ledger"
)

const (
	// Pages that came while others were written are written together, until they have so many entries, or so many bytes of
	// JSON.
	snapshotBatch      = 5_000
	snapshotBatchBytes = 8 << 20
)

// snapshotPages writes the pages of one try while others are read and written.
type snapshotPages struct {
	*Snapshot
	job   *snapshotJob
	meter *Meter
	order *orderedCommits // of the batches that are being written: the token moves over them in their order

	batch *ledger.SnapshotPage    // read and not being written yet; nil: none
	from  ledger.SnapshotProgress // where the batch begins
}

// copyPages reads the snapshot on from what is stored, and writes it. What was read before an error is written.
func (s *Snapshot) copyPages(ctx context.Context, job *snapshotJob) error {
	group, groupCtx := errgroup.WithContext(ctx)
	pages := make(chan ledger.SnapshotPage)
	at, token := job.stored.At, job.stored.Next
	group.Go(func() error {
		defer close(pages)
		return s.read(groupCtx, at, token, pages)
	})
	meter := NewMeter(s.Logger, ledger.Progress{Stream: "snapshot", Unit: "contracts", From: job.stored.Entries}, s.Progress)
	defer meter.Rest()
	p := snapshotPages{Snapshot: s, job: job, meter: meter, order: newOrderedCommits(), from: job.stored}
	group.Go(func() error { return p.write(ctx, pages) })
	return group.Wait()
}

// read fetches page after page, to the last.
func (s *Snapshot) read(ctx context.Context, at ledger.Offset, token ledger.Token, pages chan<- ledger.SnapshotPage) error {
	for {
		page, err := s.Source.ReadSnapshot(ctx, at, token)
		if err != nil {
			return err
		}
		if !page.Last && page.Next == (ledger.Token{}) {
			return fmt.Errorf("read the snapshot at offset %d: a page that is not the last has no token behind it", at)
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
		if page.Last {
			return nil
		}
		token = page.Next
	}
}

// write gathers pages while batches are written. What was begun is finished, whatever happens.
func (p *snapshotPages) write(ctx context.Context, pages <-chan ledger.SnapshotPage) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for pages != nil || p.batch != nil {
		full := pages == nil || p.batch != nil && (len(p.batch.Entries) >= snapshotBatch || p.batch.Bytes >= snapshotBatchBytes)
		if p.batch != nil && p.order.takes(full) {
			p.begin(ctx, group)
			continue
		}
		more := pages
		if full {
			more = nil
		}
		select {
		case page, ok := <-more:
			if !ok {
				pages = nil
			} else if len(page.Entries) > 0 || page.Last {
				p.gather(page)
			}
		case <-p.order.moved:
		case <-groupCtx.Done():
			if err := group.Wait(); err != nil {
				return err
			}
			return ctx.Err()
		}
	}
	return group.Wait()
}

// gather adds a page to the batch.
func (p *snapshotPages) gather(page ledger.SnapshotPage) {
	if p.batch == nil {
		p.batch = &page
		return
	}
	p.batch.Entries = append(p.batch.Entries, page.Entries...)
	p.batch.Bytes += page.Bytes
	p.batch.Next, p.batch.Last = page.Next, page.Last
}

// begin begins to write the batch, once it may be written.
func (p *snapshotPages) begin(ctx context.Context, group *errgroup.Group) {
	page, from, before := p.batch, p.from, p.order.last
	write := p.order.add()
	p.batch, p.from = nil, from.Behind(page)
	if page.Last {
		closing := p.from
		p.job.closing = &closing
	}
	// Two batches that have an entry in common wait for each other until one gives up; one that is stored refuses the other.
	again := before == nil && p.job.retry.failing()
	alone := again || hasIncomplete(page)
	if alone && before != nil {
		<-before.done
	}
	group.Go(func() error {
		write.run(func(order CommitOrder) error { return p.store(ctx, from, order, page) })
		if errors.Is(write.err, errBefore) {
			return nil
		}
		return write.err
	})
	if alone {
		<-write.done
	}
}

// store writes a batch.
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

// hasIncomplete tells whether a page has incomplete reassignments.
func hasIncomplete(page *ledger.SnapshotPage) bool {
	for i := range page.Entries {
		if page.Entries[i].Unassigned != nil || page.Entries[i].Assigned != nil {
			return true
		}
	}
	return false
}
