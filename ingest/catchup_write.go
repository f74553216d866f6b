package ingest

import (
	"context"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// write begins transactions for batches of pages that adjoin, the lowest first.
func (c *catchUp) write(ctx context.Context) {
	for ctx.Err() == nil && c.failed == nil && c.writing < writers {
		all := c.fetching == 0 || time.Since(c.wrote) > lingerFor
		b, ok := c.nextBatch(all)
		if !ok {
			return
		}
		c.writing++
		c.wrote = time.Now()
		c.begin(func() func() {
			err := c.Sink.Write(context.WithoutCancel(ctx), c.Scope, b.pages) // finished once it was begun
			return func() {
				c.writing--
				c.room -= b.weight
				if err != nil {
					c.fail(err)
					return
				}
				c.keep(ctx, storedRange{ledger.Range{From: b.pages[0].From, To: b.to()}, b.updates})
			}
		})
	}
}

// nextBatch takes the lowest pages that adjoin and are enough for a transaction, or any at all.
func (c *catchUp) nextBatch(all bool) (b batch, ok bool) {
	for first := 0; first < len(c.fetched); {
		b = batch{}
		next := first
		for next < len(c.fetched) && !b.full() && (next == first || c.fetched[next].From == b.to()) {
			b.take(fetched{page: c.fetched[next], weight: c.fetched[next].Bytes})
			next++
		}
		if all || b.full() {
			c.fetched = slices.Delete(c.fetched, first, next)
			return b, true
		}
		first = next
	}
	return b, false
}

// keep notes a range that was written.
func (c *catchUp) keep(ctx context.Context, stored storedRange) {
	i, _ := slices.BinarySearchFunc(c.stored, stored.From, func(r storedRange, from ledger.Offset) int { return int(r.From - from) })
	c.stored = slices.Insert(c.stored, i, stored)
	frontier, _ := c.contiguous()
	c.committed(ctx, frontier, stored.updates)
}

// contiguous is up to where everything is stored, and how many updates of it are not shown.
func (c *catchUp) contiguous() (frontier ledger.Offset, updates int) {
	frontier = c.at
	for _, r := range c.stored {
		if r.From != frontier {
			break
		}
		frontier, updates = r.To, updates+r.updates
	}
	return frontier, updates
}

// project moves the watermark over what is contiguous, in large steps while there is more to come.
func (c *catchUp) project(ctx context.Context) {
	to, updates := c.contiguous()
	if ctx.Err() != nil || c.failed != nil || c.projecting || to == c.at {
		return
	}
	resting := c.fetching == 0 && c.writing == 0 && len(c.fetched) == 0
	if updates < projectUpdates && !resting && time.Since(c.projected) < lingerFor {
		return
	}
	c.projecting, c.projected = true, time.Now()
	from := c.at
	c.begin(func() func() {
		err := c.Sink.Project(context.WithoutCancel(ctx), c.Scope, from, to)
		return func() {
			c.projecting = false
			if err != nil {
				c.fail(err)
				return
			}
			c.at = to
			c.stored = slices.DeleteFunc(c.stored, func(r storedRange) bool { return r.To <= to })
			c.unshown -= updates
			frontier, _ := c.contiguous()
			c.committed(ctx, frontier, 0)
			if c.target.reached(c.at, false) {
				c.fail(errReached)
			}
		}
	})
}

// committed tells of a commit.
func (c *catchUp) committed(ctx context.Context, frontier ledger.Offset, updates int) {
	if c.Watch.Committed != nil {
		c.Watch.Committed(c.at, frontier, updates)
	}
	c.meter.Add(ctx, int64(frontier), updates)
	if c.answered {
		c.answered = false
		c.recovered()
	}
}

// fail ends everything as soon as what is under way has ended; the first reason counts.
func (c *catchUp) fail(err error) {
	if c.failed == nil {
		c.failed = err
	}
}
