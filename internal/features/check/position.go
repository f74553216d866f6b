package check

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// checkPosition checks where the ledger begins and ends on this participant.
func (c *checker) checkPosition(ctx context.Context) {
	s := c.section(GroupPosition)
	c.checkEnd(ctx, s)
	c.checkPruned(ctx, s)
	c.checkSynchronizers(ctx, s)
}

func (c *checker) checkEnd(ctx context.Context, s section) {
	l := &c.ledger
	within, cancel := c.step(ctx)
	defer cancel()
	switch _, end, err := l.client.Peek(within); {
	case errors.Is(err, ledger.ErrNotOffered):
		l.endless = true
		s.note("end", "the server does not return the ledger end")
	case err != nil:
		what, do := explained(err)
		s.problem("end", what, do)
	case end == 0:
		l.end = &end
		s.note("end", "the ledger is empty: nothing has happened on this participant yet")
	default:
		l.end = &end
		s.ok("end", "offset %d", end)
	}
}

func (c *checker) checkPruned(ctx context.Context, s section) {
	l := &c.ledger
	within, cancel := c.step(ctx)
	defer cancel()
	switch pruned, err := l.client.PrunedOffset(within); {
	case errors.Is(err, ledger.ErrNotOffered):
		s.note("pruned", "the server does not report whether its ledger is pruned")
	case err != nil:
		what, do := explained(err)
		s.warn("pruned", "whether the ledger is pruned is not known: "+what, do)
	case pruned > 0:
		l.pruned = &pruned
		s.note("pruned", "up to offset %d: what happened before can't be had from this participant, so an empty database "+
			"begins with a backfill", pruned)
	default:
		l.pruned = &pruned
		s.ok("pruned", "nothing: an empty database begins with the ledger's first update, or by a backfill with the "+
			"contracts active now")
	}
}

// checkStart checks where a daemon would begin, which matters only if nothing is stored.
func (c *checker) checkStart() {
	l, s := &c.ledger, c.section(GroupPosition)
	if c.cfg.Start == (ingest.Start{}) || c.cfg.LedgerURL == "" || c.stored.other ||
		c.stored.status.Started || c.stored.status.Snapshot != nil {
		return
	}
	at, fixed := c.cfg.Start.Offset()
	switch {
	case !fixed && l.endless:
		s.problem("start", "the server does not return the ledger end, so `indexer run` can't begin there",
			"give the offset to start at with --start")
	case l.end != nil && at > *l.end:
		s.problem("start", fmt.Sprintf("offset %d is above the ledger's end %d", at, *l.end), "give --start an offset up "+
			"to the ledger's end")
	case fixed && l.pruned != nil && at < *l.pruned:
		s.problem("start", fmt.Sprintf("offset %d is below %d, up to which the participant is pruned", at, *l.pruned),
			"give --start an offset from the pruned one on, or begin with a `backfill`")
	default:
		s.note("start", "in the middle of the ledger and without a snapshot: contracts created before are missing from the "+
			"active set")
	}
}

func (c *checker) checkSynchronizers(ctx context.Context, s section) {
	within, cancel := c.step(ctx)
	defer cancel()
	switch ids, err := c.ledger.client.Synchronizers(within); {
	case errors.Is(err, ledger.ErrNotOffered):
	case err != nil:
		s.note("synchronizers", "they can't be listed: %v", err)
	case len(ids) == 0:
		s.warn("synchronizers", "the participant is connected to none",
			"connect it: until then nothing new happens on its ledger")
	default:
		s.ok("synchronizers", "%s", some(ids))
	}
}
