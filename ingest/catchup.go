package ingest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

const (
	// The watermark moves over so many updates at a time: in large steps, contracts that come and go within one cost nothing.
	projectUpdates = 20_000
	// At most so many updates are fetched and not shown. They are remembered until then.
	unshownUpdates = 3 * projectUpdates
)

// catchUp brings a watermark that is far behind near the ledger's end: what is missing is loaded, in ranges behind the
// watermark, and projected in order. The loader's goroutine owns its state too.
type catchUp struct {
	*updatesRun
	load  *loader
	meter *Meter

	at        ledger.Offset // the watermark
	stored    []storedRange // behind the watermark, in order
	shown     int           // of the updates that were fetched
	projected time.Time     // when a projection was last begun

	projecting, asking bool
	final              bool // the plan reaches as far as it will
}

// storedRange is a range that was written, or found to be.
type storedRange struct {
	ledger.Range
	updates int // not counted where it was found
}

// newCatchUp makes a catch-up from the watermark to an offset that is not beyond the ledger's end. What is stored ahead is
// not read again.
func newCatchUp(r *updatesRun, meter *Meter, at, end ledger.Offset, ahead []ledger.Range) *catchUp {
	c := &catchUp{updatesRun: r, meter: meter, at: at, projected: time.Now()}
	c.load = &loader{
		pace: &r.pace, source: r.Source, scope: r.Scope, fork: r.fork, plan: newPlan(&r.sizes, at, end, ahead), reached: at,
	}
	for _, stored := range ahead {
		c.stored = append(c.stored, storedRange{Range: stored})
	}
	return c
}

// run works until the ledger's end is near (nil) and everything is shown, or until something fails or ctx ends.
func (c *catchUp) run(ctx context.Context) error {
	return c.load.run(ctx, func(reading context.Context) {
		if c.load.fetch(reading, c.load.updates-c.shown < unshownUpdates) {
			c.extend(reading)
		}
		c.load.write(ctx, c.Sink.Write, func(b batch) { c.keep(ctx, storedRange{b.span(), b.updates}) })
		c.project(ctx)
	})
}

// extend asks for the ledger's end when everything is planned, and plans on where it is far.
func (c *catchUp) extend(ctx context.Context) {
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
			case errors.Is(err, ledger.ErrNotOffered): // any more; what is stored ahead shows that it was
				c.final = true
			case Lasting(err):
				c.load.giveUp(c.load.plan.end, err)
			case err != nil:
				c.load.trouble(ctx, err)
			default:
				c.learnEnd(end, c.meter)
				if c.final = !c.sizes.far(end - c.load.plan.end); !c.final {
					c.load.plan.extend(end)
				}
			}
		}
	})
}

// keep notes a range that was written.
func (c *catchUp) keep(ctx context.Context, stored storedRange) {
	i, _ := slices.BinarySearchFunc(c.stored, stored.From, func(r storedRange, from ledger.Offset) int { return cmp.Compare(r.From, from) })
	c.stored = slices.Insert(c.stored, i, stored)
	c.committed(ctx, stored.updates)
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
	if ctx.Err() != nil || c.load.failed != nil || c.projecting || to == c.at {
		return
	}
	if updates < projectUpdates && !c.ending() && !c.load.resting() && time.Since(c.projected) < lingerFor {
		return
	}
	c.projecting, c.projected = true, time.Now()
	from := c.at
	c.load.begin(func() func() {
		err := c.Sink.Project(context.WithoutCancel(ctx), c.Scope, from, to)
		return func() {
			c.projecting = false
			if err != nil {
				c.load.fail(err)
				return
			}
			c.at = to
			c.stored = slices.DeleteFunc(c.stored, func(r storedRange) bool { return r.To <= to })
			c.shown += updates
			c.committed(ctx, 0)
			if c.target.reached(c.at, false) {
				c.load.fail(errReached)
			}
		}
	})
}

// ending tells whether all was fetched: what is not shown by then waits for nothing.
func (c *catchUp) ending() bool { return c.final && c.load.fetching == 0 }

// committed tells of a commit.
func (c *catchUp) committed(ctx context.Context, updates int) {
	frontier, _ := c.contiguous()
	if c.Watch.Committed != nil {
		c.Watch.Committed(c.at, frontier, updates)
	}
	c.meter.Add(ctx, int64(frontier), updates)
}
