package ingest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// How far a catch-up (catchUp) reads and projects ahead.
const (
	// The watermark moves over this many events at a time: a contract that is created and archived within one step needs
	// no row.
	projectEvents = 20_000
	// At most this many events are fetched and not projected yet. The sink remembers that many; it would have to read more
	// of them back.
	unshownEvents = 90_000
)

// catchUp moves a watermark that is far behind near to the ledger's end: it loads the missing ranges above the
// watermark, and projects them in order. The loader's goroutine owns its state too.
type catchUp struct {
	*updatesRun
	load  *loader
	fetch func(ctx context.Context, further bool) (exhausted bool) // see loader.fetch
	meter *Meter

	at        ledger.Offset // the watermark
	stored    []storedRange // above the watermark, in order
	shown     int           // how many of the fetched events are projected
	projected time.Time     // when a projection was last begun

	projecting, asking bool
	whole              bool // the plan has all that there is
	final              bool // the plan is not extended any more
}

// storedRange is a range that this run wrote, or found stored.
type storedRange struct {
	ledger.Range
	updates, events int // 0 for a range that was found stored
}

// newCatchUp returns a catch-up from the watermark to an offset that is not beyond the ledger's end. The ranges in
// ahead are stored already, and not read again.
func newCatchUp(r *updatesRun, meter *Meter, at, end ledger.Offset, ahead []ledger.Range) *catchUp {
	c := &catchUp{updatesRun: r, meter: meter, at: at, projected: time.Now()}
	r.rate = rate{every: r.rate.every} // how fast a server answers is measured while it is asked in a row
	c.load = &loader{
		pace: &r.pace, source: r.Source, scope: r.Scope, fork: r.fork, plan: newPlan(&r.sizes, at, end, ahead), reached: at,
	}
	c.fetch = c.load.fetch
	for _, stored := range ahead {
		c.stored = append(c.stored, storedRange{Range: stored})
	}
	return c
}

// extend asks for the ledger's end when everything is planned, and extends the plan if the end is far away.
func (c *catchUp) extend(ctx context.Context) {
	c.final = c.final || c.whole
	if c.final || c.asking || c.load.unread != nil {
		return
	}
	c.asking = true
	c.load.begin(func() func() {
		end, err := c.Source.LedgerEnd(ctx)
		return func() {
			c.asking = false
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, ledger.ErrNotOffered): // not any more: what is stored ahead was read with a known end
				c.final = true
			case Lasting(err):
				c.load.giveUp(c.load.plan.end, err)
			case err != nil:
				c.load.pauseAfter(ctx, err)
			default:
				c.learnEnd(end, c.meter)
				if c.final = !c.sizes.far(end - c.load.plan.end); !c.final {
					c.load.plan.extend(end)
				}
			}
		}
	})
}

// keep records a range that was written.
func (c *catchUp) keep(ctx context.Context, stored storedRange) {
	i, _ := slices.BinarySearchFunc(c.stored, stored.From,
		func(r storedRange, from ledger.Offset) int { return cmp.Compare(r.From, from) })
	c.stored = slices.Insert(c.stored, i, stored)
	c.committed(ctx, stored.updates)
}

// contiguous returns the frontier, and how many events between the watermark and the frontier this run wrote.
func (c *catchUp) contiguous() (frontier ledger.Offset, events int) {
	frontier = c.at
	for _, r := range c.stored {
		if r.From != frontier {
			break
		}
		frontier, events = r.To, events+r.events
	}
	return frontier, events
}

// project moves the watermark to the frontier, in large steps while more is to come.
func (c *catchUp) project(ctx context.Context) {
	to, events := c.contiguous()
	if ctx.Err() != nil || c.load.failed != nil || c.projecting || to == c.at {
		return
	}
	if events < projectEvents && !c.ending() && !c.load.resting() && time.Since(c.projected) < lingerFor {
		return
	}
	c.projecting, c.projected = true, time.Now()
	from := c.at
	projecting, trail := c.startTrail(context.WithoutCancel(ctx))
	c.load.begin(func() func() {
		err := c.Sink.MoveWatermark(projecting, c.Scope, from, to)
		return func() {
			c.projecting = false
			c.endTrail(trail, Work{Name: "projection", Range: ledger.Range{From: from, To: to}}, err)
			if err != nil {
				c.load.fail(err)
				return
			}
			c.at = to
			c.stored = slices.DeleteFunc(c.stored, func(r storedRange) bool { return r.To <= to })
			c.shown += events
			c.committed(ctx, 0)
			if c.target.reached(c.at, false) {
				c.Logger.InfoContext(ctx, "caught up", "stream", "updates", "watermark", int64(c.at))
				c.load.fail(errReached)
			}
		}
	})
}

// ending reports whether everything is fetched, so that the last projection need not wait for a full step.
func (c *catchUp) ending() bool { return c.final && c.load.fetching == 0 }

// committed reports a commit to the watch and the meter.
func (c *catchUp) committed(ctx context.Context, updates int) {
	frontier, _ := c.contiguous()
	if c.Watch.Committed != nil {
		c.Watch.Committed(c.at, frontier, updates)
	}
	c.meter.Add(ctx, int64(frontier), updates)
}
