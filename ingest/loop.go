package ingest

import (
	"context"
	"errors"

	"ledgerindexer/ledger"
)

// The loop of the updates, from the outside inwards: Run tries again what failed, follow is one try, catchUp.run and
// tail.run read, write, and move the watermark. Both read on while a transaction is under way.

// Run works until ctx ends (nil; transactions under way are finished), UntilCurrent is reached (nil), or an error is
// Lasting.
func (u *Updates) Run(ctx context.Context) error {
	r := updatesRun{
		Updates: u, target: targetOffset{wanted: u.UntilCurrent}, pace: newPace(u.MaxRequests, u.Logger, "updates"),
		fork: newForkCheck(u.Source, u.Past, u.Sink, u.Logger),
	}
	r.retry.Failed, r.retry.Recovered, r.queued, r.tracer = u.Watch.Retrying, u.Watch.Recovered, u.Watch.Queued, u.Tracer
	return loopResult(ctx, u.Logger, "updates", r.retry.Do(ctx, r.follow))
}

// follow reads and writes from the watermark on, until something fails. It catches up if the tail is far behind, or if
// an earlier catch-up left ranges that are stored and not projected; else it is the tail.
func (r *updatesRun) follow(ctx context.Context) error {
	if r.Check != nil {
		if err := r.Check(ctx); err != nil {
			return err
		}
	}
	at, err := r.resume(ctx)
	if err != nil {
		return err
	}
	ahead, err := r.Sink.StoredAhead(ctx)
	if err != nil {
		return err
	}
	if err := r.fork.begin(ctx, at, ahead); err != nil {
		return err
	}
	if r.Watch.Resumed != nil {
		r.Watch.Resumed(at)
	}
	meter := NewMeter(r.Logger, ledger.Progress{Stream: "updates", Unit: "updates", Start: int64(at)}, r.Watch.Progress)
	defer meter.Idle()
	for end := at; ; {
		if len(ahead) > 0 || end > at {
			c := newCatchUp(r, meter, at, end, ahead)
			if err := c.run(ctx); err != nil {
				return notReached(err)
			}
			at, ahead = c.at, nil
		}
		t := newTail(r, meter, at)
		if err := t.run(ctx); !errors.Is(err, errFarBehind) {
			return notReached(err)
		}
		at, end = t.at, t.reader.end
	}
}

// run catches up: until the ledger's end is near and everything is projected (nil), something fails, or ctx ends. It
// reads several ranges at a time, in any order, and writes them above the watermark, which follows in large steps.
func (c *catchUp) run(ctx context.Context) error {
	return c.load.run(ctx, func(reading context.Context) {
		// Read: the windows of the plan, and when all are asked for, how far the ledger has come meanwhile.
		if c.fetch(reading, c.load.events-c.shown < unshownEvents) {
			c.extend(reading)
		}
		// Write: batches of adjacent pages.
		c.load.write(ctx, c.Sink.WriteAhead, func(b batch) { c.keep(ctx, storedRange{b.span(), b.updates, b.events}) })
		// Move the watermark over what is stored without a gap.
		c.project(ctx)
	})
}

// run reads page after page near the ledger's end, and writes what has come: Append moves the watermark in the same
// transaction. It works until something fails; errFarBehind is such an error. Pages that were read before a failed read
// are committed.
func (t *tail) run(ctx context.Context) error {
	return t.load.run(ctx, func(reading context.Context) {
		t.read(reading)
		t.load.write(ctx, t.Sink.Append, func(b batch) { t.written(ctx, b) })
	})
}
