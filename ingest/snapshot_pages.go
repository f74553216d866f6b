package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

const (
	// Pages that came while others were written are written together, up to this many entries or bytes of JSON.
	snapshotBatch      = 5_000
	snapshotBatchBytes = 8 << 20
)

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
