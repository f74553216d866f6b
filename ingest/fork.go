package ingest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/semaphore"

	"ledgerindexer/ledger"
)

// forkCheck detects a fork: a participant whose updates are not those that are stored, or that were read before. It
// checks at the beginning, and again while pages are read. All methods but begin are safe for concurrent use.
type forkCheck struct {
	forkProber
	changed func() int64 // the source's Changes
	logger  *slog.Logger

	compared  ledger.Offset // of the update whose content was compared last
	undecided bool          // noteUndecided has logged once

	turn *semaphore.Weighted // of one; it guards the following fields

	last    anchor         // the highest update that was read
	empty   []ledger.Range // ranges above it in which no update came, in order
	changes int64          // Changes of the source when last and empty were last confirmed
}

// newForkCheck checks what a source serves. past reads what is stored in the scope in which it was read; nil: the
// source does.
func newForkCheck(source UpdateSource, past UpdateReader, stored StoredUpdates, logger *slog.Logger) *forkCheck {
	if past == nil {
		past = source
	}
	return &forkCheck{
		forkProber: forkProber{inRanges{past, new(Ranges), logger}, stored}, changed: source.Changes, logger: logger,
		turn: semaphore.NewWeighted(1),
	}
}

// begin checks whether the participant has the stored updates, up to the watermark and in the ranges ahead of it. The
// pages that are accepted from then on must follow these.
func (c *forkCheck) begin(ctx context.Context, at ledger.Offset, ahead []ledger.Range) (err error) {
	c.changes, c.empty = c.changed(), nil
	if c.last, err = c.compareLast(ctx, at); err != nil {
		return err
	}
	if c.last.offset > 0 {
		c.noteEmpty(ledger.Range{From: c.last.offset, To: at})
	}
	if len(ahead) == 0 {
		return nil
	}
	end := ahead[len(ahead)-1].To
	offset, id, err := c.stored.LastUpdate(ctx, end)
	if err != nil {
		return err
	}
	if offset > at {
		c.last = anchor{offset, id}
	}
	for _, stored := range ahead {
		c.noteEmpty(ledger.Range{From: max(stored.From, offset), To: stored.To})
	}
	seen, err := c.lookAgain(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read what is stored ahead of the watermark, up to offset %d, again: %w", end, err)
	case seen.verdict == forked: // a reset to the watermark is enough, or further down if the fork lies below it
		return c.diverged(ctx, c.last, seen, at)
	case seen.verdict == forkUnknown:
		c.noteUndecided(ctx, c.last, seen.unknown)
	}
	return nil
}

// compareLast checks whether the participant has the last update that is stored up to an offset. It returns that
// update, if the participant showed it.
func (c *forkCheck) compareLast(ctx context.Context, at ledger.Offset) (anchor, error) {
	last, seen, err := c.lookLast(ctx, at)
	if err != nil {
		return anchor{}, err
	}
	if seen.verdict == forkUnknown {
		c.noteUndecided(ctx, last, seen.unknown)
	}
	if seen.update == nil {
		return anchor{}, nil
	}
	return last, c.compareContent(ctx, last, seen.update)
}

func (c *forkCheck) noteUndecided(ctx context.Context, last anchor, why error) {
	if c.undecided {
		return
	}
	c.undecided = true
	c.logger.WarnContext(ctx, "whether the ledger still has the history that is stored can't be found out",
		"stream", "updates", "update_id", last.id, "offset", int64(last.offset), "error", why)
}

// compareContent compares the content of the anchor with what is stored of it. A difference does not mean a fork,
// because id and offset identify the update. It is logged, and ingestion continues.
func (c *forkCheck) compareContent(ctx context.Context, last anchor, update *ledger.Update) error {
	if c.compared == last.offset {
		return nil
	}
	page := ledger.Page{From: last.offset - 1, To: last.offset, Updates: []ledger.Update{*update}}
	found, err := c.stored.Deviation(ctx, page)
	if err == nil && found.Differences > 0 {
		// The stream may show the update in another way than the look-up; the stream's was stored.
		page, err = c.source.ReadUpdates(ctx, page.From, page.To)
		if err == nil {
			found, err = c.stored.Deviation(ctx, page)
		}
		if Lasting(err) {
			err, found = nil, Deviation{}
		}
	}
	if err != nil {
		return fmt.Errorf("compare the last stored update, %s at offset %d, with the ledger: %w", last.id, last.offset, err)
	}
	c.compared = last.offset
	if found.Differences == 0 {
		return nil
	}
	logger := c.logger.With("stream", "updates", "update_id", last.id, "offset", int64(last.offset),
		"differences", found.Differences, "first", found.First)
	if found.Differences == found.Lacking {
		logger.InfoContext(ctx, "the ledger shows values of the last stored update that it did not show before, as one "+
			"does whose server was upgraded; `indexer verify --repair` stores them")
	} else {
		logger.ErrorContext(ctx, "the last stored update is not stored as the ledger shows it: run `indexer verify --repair`")
	}
	return nil
}

// accept accepts a page if it certainly belongs to the same ledger as those before it. began is the value of Changes
// before the page was requested. If another server may have begun to answer since then, or since the last accepted
// page, accept asks for the anchor again, and for the end of the page, because either server may have sent it. If they
// are not there, the error is errForked: the pages accepted before are still stored, and then compared.
//
// Pages are accepted one after the other, so that each is checked against the one before.
func (c *forkCheck) accept(ctx context.Context, began int64, page *ledger.Page) error {
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.turn.Release(1)
	changes, err := c.confirm(ctx, false)
	if err != nil {
		return err
	}
	if changes != began {
		if err := c.confirmPage(ctx, page); err != nil {
			return err
		}
	}
	c.noteAccepted(page)
	return nil
}

// stuck asks for the anchor when the source can't continue, because another server may answer now. It returns nil if
// there is no fork, or if that can't be decided: then the source's own error says more.
func (c *forkCheck) stuck(ctx context.Context) error {
	if c.turn.Acquire(ctx, 1) != nil {
		return nil
	}
	defer c.turn.Release(1)
	_, err := c.confirm(ctx, true)
	return err
}

// confirm asks for the anchor if another server may have begun to answer, or if the source is stuck. It returns the
// source's Changes from before that.
func (c *forkCheck) confirm(ctx context.Context, stuck bool) (changes int64, err error) {
	changes = c.changed()
	if changes == c.changes && !stuck {
		return changes, nil
	}
	if c.last.offset > 0 {
		seen, err := c.lookAgain(ctx)
		switch {
		case err != nil && stuck:
			return changes, nil
		case err != nil:
			return 0, fmt.Errorf("read the last update, %s at offset %d, again: %w", c.last.id, c.last.offset, err)
		case seen.verdict == forked:
			return 0, fmt.Errorf("%w: update %s came at offset %d, and now %s", errForked, c.last.id, c.last.offset,
				seen.instead)
		case seen.verdict == forkUnknown && !stuck:
			c.noteUndecided(ctx, c.last, seen.unknown)
		}
	}
	c.changes = changes
	return changes, nil
}

// lookAgain asks for the anchor, and for the ranges above it in which no update came.
func (c *forkCheck) lookAgain(ctx context.Context) (probe, error) {
	seen := probe{}
	var err error
	if c.last.offset > 0 {
		seen, err = c.look(ctx, c.last, c.last.offset)
	}
	for _, nothing := range c.empty {
		if err != nil || seen.verdict != notForked {
			break
		}
		seen, err = c.lookAfter(ctx, seen, nothing.From, nothing.To)
	}
	return seen, err
}

// confirmPage reads the end of a page again.
func (c *forkCheck) confirmPage(ctx context.Context, page *ledger.Page) error {
	var seen probe
	var err error
	if n := len(page.Updates); n > 0 {
		update := &page.Updates[n-1]
		seen, err = c.look(ctx, anchor{update.Offset, update.ID}, page.To)
	} else {
		seen, err = c.lookAfter(ctx, probe{}, page.From, page.To)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read offsets after %d up to %d again: %w", page.From, page.To, err)
	case seen.verdict == forked:
		return fmt.Errorf("%w: something else came after offset %d up to %d, and now %s", errForked, page.From, page.To,
			seen.instead)
	}
	return nil
}

func (c *forkCheck) noteAccepted(page *ledger.Page) {
	from := page.From
	if n := len(page.Updates); n > 0 {
		update := &page.Updates[n-1]
		from = update.Offset
		if update.Offset > c.last.offset {
			c.last = anchor{update.Offset, update.ID}
		}
	}
	c.noteEmpty(ledger.Range{From: from, To: page.To})
}

// noteEmpty records a range in which no update came; only its part above the anchor.
func (c *forkCheck) noteEmpty(empty ledger.Range) {
	var kept []ledger.Range
	i, _ := slices.BinarySearchFunc(c.empty, empty.From,
		func(e ledger.Range, from ledger.Offset) int { return cmp.Compare(e.From, from) })
	for _, e := range slices.Insert(c.empty, i, empty) {
		e.From = max(e.From, c.last.offset)
		switch last := len(kept) - 1; {
		case e.From >= e.To:
		case last >= 0 && kept[last].To == e.From:
			kept[last].To = e.To
		default:
			kept = append(kept, e)
		}
	}
	c.empty = kept
}
