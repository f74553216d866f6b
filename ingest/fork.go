package ingest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"ledgerindexer/ledger"
)

// forkSource is what it takes of a participant to detect while reading that its history is another one than before.
type forkSource interface {
	UpdateReader
	Changes() int64
}

// forkCheck detects a history that is not the one that is stored: before something is read, and while pages are. It is safe for
// concurrent use, but for begin.
type forkCheck struct {
	histories
	changed func() int64 // how often another server may have begun to answer
	logger  *slog.Logger

	compared     ledger.Offset // of the update whose content was compared last
	unrecognized bool          // it was said that the history can't be recognized

	turn chan struct{} // one slot, taken while a page is accepted: what is guarded by it stands below

	last    anchor         // the highest update that was read
	empty   []ledger.Range // behind it, where nothing came, in order
	changes int64          // of the source when all this was last seen to be so
}

func newForkCheck(source forkSource, stored StoredUpdates, logger *slog.Logger) *forkCheck {
	return &forkCheck{
		histories: histories{inRanges{source, new(Ranges), logger}, stored}, changed: source.Changes, logger: logger,
		turn: make(chan struct{}, 1),
	}
}

// begin sees whether the participant has the history that is stored, up to the watermark and in the ranges ahead of it. What is
// accepted from then on follows that.
func (c *forkCheck) begin(ctx context.Context, at ledger.Offset, ahead []ledger.Range) (err error) {
	c.changes, c.empty = c.changed(), nil
	if c.last, err = c.recognize(ctx, at); err != nil {
		return err
	}
	if c.last.offset > 0 {
		c.nothing(ledger.Range{From: c.last.offset, To: at})
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
		c.nothing(ledger.Range{From: max(stored.From, offset), To: stored.To})
	}
	seen, err := c.lookAgain(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read what is stored ahead of the watermark, up to offset %d, again: %w", end, err)
	case seen.verdict == anotherHistory: // to go back to the watermark is enough, or further where the histories part before it
		return c.diverged(ctx, c.last, seen, at)
	case seen.verdict == unknownHistory:
		c.notRecognized(ctx, c.last, seen.unknown)
	}
	return nil
}

// recognize sees whether the participant has the history that is stored up to an offset. The anchor that it returns was
// shown, or there is none.
func (c *forkCheck) recognize(ctx context.Context, at ledger.Offset) (anchor, error) {
	offset, id, err := c.stored.LastUpdate(ctx, at)
	if err != nil || offset == 0 {
		return anchor{}, err
	}
	last := anchor{offset, id}
	seen, err := c.look(ctx, last, at)
	if err != nil {
		return anchor{}, fmt.Errorf("read the last stored update, %s at offset %d, again: %w", id, offset, err)
	}
	switch seen.verdict {
	case anotherHistory:
		return anchor{}, c.diverged(ctx, last, seen, last.offset)
	case unknownHistory:
		c.notRecognized(ctx, last, seen.unknown)
	}
	if seen.update == nil {
		return anchor{}, nil
	}
	return last, c.compareContent(ctx, last, seen.update)
}

func (c *forkCheck) notRecognized(ctx context.Context, last anchor, why error) {
	if c.unrecognized {
		return
	}
	c.unrecognized = true
	c.logger.WarnContext(ctx, "whether the participant still has the history that is stored can't be found out",
		"stream", "updates", "update", last.id, "offset", int64(last.offset), "error", why)
}

// compareContent compares the anchor with what is stored of it. A difference does not mean a fork: an update's id and offset tell
// which one it is. The difference is logged; ingestion continues.
func (c *forkCheck) compareContent(ctx context.Context, last anchor, update *ledger.Update) error {
	if c.compared == last.offset {
		return nil
	}
	page := ledger.Page{From: last.offset - 1, To: last.offset, Updates: []ledger.Update{*update}}
	found, err := c.differences(ctx, page)
	if err == nil && found.Differences > 0 {
		// What counts is how the stream shows it: that was stored.
		page, err = c.source.ReadUpdates(ctx, page.From, page.To)
		if err == nil {
			found, err = c.differences(ctx, page)
		}
		if Lasting(err) {
			err, found = nil, ledger.Comparison{}
		}
	}
	if err != nil {
		return fmt.Errorf("compare the last stored update, %s at offset %d, with the ledger: %w", last.id, last.offset, err)
	}
	c.compared = last.offset
	if found.Differences == 0 {
		return nil
	}
	logger := c.logger.With("stream", "updates", "update", last.id, "offset", int64(last.offset), "differences", found.Differences,
		"first", found.First[0].String())
	if found.Differences == found.Lacking {
		logger.InfoContext(ctx, "the participant shows values of the last stored update that it did not show before, as one does that "+
			"was upgraded; `indexer verify --repair` stores them")
	} else {
		logger.ErrorContext(ctx, "the last stored update is not stored as the participant shows it: run `indexer verify --repair`")
	}
	return nil
}

func (c *forkCheck) differences(ctx context.Context, page ledger.Page) (found ledger.Comparison, err error) {
	err = c.stored.Compare(ctx, page, found.Add)
	return found, err
}

// accept lets a page pass that is certainly of the history that was read before. began is what Changes told before the page
// was asked for. Where another server may have begun to answer since then, or since something was last accepted, the
// anchor is looked for, and the page too: of two servers, either may have answered. The error is errAnotherHistory where
// they are not there: what was accepted before is to be stored, and then compared.
//
// Pages are accepted one after the other: one of another server that answers by then is to meet the one before as the anchor.
func (c *forkCheck) accept(ctx context.Context, began int64, page *ledger.Page) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.give()
	changes, err := c.confirm(ctx, false)
	if err != nil {
		return err
	}
	if changes != began {
		if err := c.confirmPage(ctx, page); err != nil {
			return err
		}
	}
	c.passed(page)
	return nil
}

// stuck looks for the anchor where the source can't go on: it may be another one. It returns nil where it is not, or where
// that can't be found out: why it is stuck says more.
func (c *forkCheck) stuck(ctx context.Context) error {
	if c.take(ctx) != nil {
		return nil
	}
	defer c.give()
	_, err := c.confirm(ctx, true)
	return err
}

// take waits until no other page is being accepted. Who took the turn gives it back.
func (c *forkCheck) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *forkCheck) give() { <-c.turn }

// confirm looks for the anchor where another server may have begun to answer, or in any case. changes is that of the source
// when all was seen to be as before.
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
		case seen.verdict == anotherHistory:
			return 0, fmt.Errorf("%w: update %s came at offset %d, and now %s", errAnotherHistory, c.last.id, c.last.offset, seen.instead)
		case seen.verdict == unknownHistory && !stuck:
			c.notRecognized(ctx, c.last, seen.unknown)
		}
	}
	c.changes = changes
	return changes, nil
}

// lookAgain asks for the anchor, and whether there is still nothing where nothing came.
func (c *forkCheck) lookAgain(ctx context.Context) (probe, error) {
	seen := probe{}
	var err error
	if c.last.offset > 0 {
		seen, err = c.look(ctx, c.last, c.last.offset)
	}
	for _, nothing := range c.empty {
		if err != nil || seen.verdict != sameHistory {
			break
		}
		seen, err = c.lookBehind(ctx, seen, nothing.From, nothing.To)
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
		seen, err = c.lookBehind(ctx, probe{}, page.From, page.To)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read offsets after %d up to %d again: %w", page.From, page.To, err)
	case seen.verdict == anotherHistory:
		return fmt.Errorf("%w: something else came after offset %d up to %d, and now %s", errAnotherHistory, page.From, page.To, seen.instead)
	}
	return nil
}

// passed takes in a page that was accepted.
func (c *forkCheck) passed(page *ledger.Page) {
	from := page.From
	if n := len(page.Updates); n > 0 {
		update := &page.Updates[n-1]
		from = update.Offset
		if update.Offset > c.last.offset {
			c.last = anchor{update.Offset, update.ID}
		}
	}
	c.nothing(ledger.Range{From: from, To: page.To})
}

// nothing notes a range in which nothing came, as far as it lies behind the anchor.
func (c *forkCheck) nothing(came ledger.Range) {
	var kept []ledger.Range
	i, _ := slices.BinarySearchFunc(c.empty, came.From, func(e ledger.Range, from ledger.Offset) int { return cmp.Compare(e.From, from) })
	for _, e := range slices.Insert(c.empty, i, came) {
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
