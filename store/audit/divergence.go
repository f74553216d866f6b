package audit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/pg"
)

// Divergence is where a participant and a database part: up to Common both have the same updates at the same offsets,
// and not after it.
type Divergence struct {
	From      ledger.Offset `json:"from"` // what lies after it was compared
	Watermark ledger.Offset `json:"watermark"`
	Common    ledger.Offset `json:"common"` // of the last update before they part; From: there is none
	Equal     int64         `json:"equal"`  // updates up to Common
	// false: all that is stored is equal, and Common is of the last update; what follows is zero
	Parted bool `json:"parted"`

	Stored *ledger.UpdateRef `json:"stored"` // the first update after Common; nil: there is none
	Served *ledger.UpdateRef `json:"served"`

	// Of the updates after Common.
	Moved int64 `json:"moved"` // both have, at other offsets
	Kept  int64 `json:"kept"`  // both have, at the same offset
	New   int64 `json:"new"`   // only the participant has
	Lost  int64 `json:"lost"`  // only the database has
	// of Lost: recorded after all that the participant shows of their synchronizer, so that it may receive them yet
	Later int64 `json:"later"`

	Missing []ledger.UpdateRef `json:"missing"` // the first ones of Lost that are not of Later
}

const (
	mostMissing = 5
	refsBatch   = 10_000
	// If the server does not report its end, reads are open-ended: for this many updates, or until none has come for this
	// long.
	openLimit = 200
	openIdle  = time.Second
)

// FindForkPoint compares which updates a participant shows with those that are stored, and their offsets: from the
// floor, from where the participant is pruned, or from the last stored update at or below since on, where that is
// higher. It writes nothing.
func FindForkPoint(
	ctx context.Context, source ingest.UpdateSource, db *store.Store, since ledger.Offset, progress func(Progress),
	logger *slog.Logger,
) (Divergence, error) {
	p := divergence{source: source, db: db, progress: progress, logger: logger, latest: map[string]time.Time{},
		found: offsetSet{}}
	err := p.find(ctx, since)
	return p.Divergence, err
}

// divergence is a running FindForkPoint.
type divergence struct {
	Divergence
	source   ingest.UpdateSource
	db       *store.Store
	progress func(Progress)
	logger   *slog.Logger
	ranges   ingest.Ranges

	end     *ledger.Offset       // of the ledger; nil: the server does not report it
	covered []ledger.Range       // the stored ranges, when the comparison began
	latest  map[string]time.Time // the latest record time that the participant showed, by synchronizer
	found   offsetSet            // stored updates after Common that the participant has
}

func (p *divergence) find(ctx context.Context, since ledger.Offset) error {
	if err := p.begin(ctx, since); err != nil {
		return err
	}
	stored, began := p.covered[len(p.covered)-1].To, time.Now()
	at := p.From
	for p.Parted || at < stored {
		of := stored
		if p.end != nil {
			of = max(of, *p.end)
		}
		p.progress(Progress{Step: "updates", Done: int64(at - p.From), Of: int64(of - p.From)})
		page, more, err := p.next(ctx, at)
		if err != nil {
			return err
		}
		if err := p.compare(ctx, &page); err != nil {
			return err
		}
		at = page.To
		// Silence for ingest.LongPoll would be taken for the end, and a ledger that is at work may never be silent so long.
		if !more || p.Parted && p.end == nil &&
			slices.ContainsFunc(page.Updates, func(u ledger.Update) bool { return u.RecordTime.Time.After(began) }) {
			break
		}
	}
	if !p.Parted && at < stored {
		if err := p.endsBelow(ctx, at, stored); err != nil {
			return err
		}
	}
	if !p.Parted {
		return nil
	}
	return p.lost(ctx)
}

// endsBelow decides about a ledger that ends at an offset below the end of what is stored. They part there if an update
// is stored after it, or if the participant refuses to read on from the stored end. A participant that does not report
// its end may only not have shown all yet.
func (p *divergence) endsBelow(ctx context.Context, at, stored ledger.Offset) error {
	rest, err := p.db.UpdateRefs(ctx, ledger.Range{From: at, To: stored}, 1)
	if err != nil {
		return err
	}
	p.Parted = p.end != nil || len(rest) > 0
	if p.Parted {
		return nil
	}
	err = Retry(ctx, p.logger, func() error {
		_, _, err := p.source.TailUpdates(ctx, stored, 1, time.Millisecond)
		return err
	})
	if ingest.Lasting(err) {
		p.Parted, err = true, nil
	}
	return err
}

func (p *divergence) begin(ctx context.Context, since ledger.Offset) error {
	held, err := indexed(ctx, p.db)
	if err != nil {
		return err
	}
	ahead, err := p.db.StoredAhead(ctx)
	if err != nil {
		return err
	}
	p.covered = append([]ledger.Range{{From: held.HistoryFloor, To: held.Watermark}}, ahead...)
	served, err := withRetry(ctx, p.logger, func() (ingest.Served, error) { return ingest.AskServed(ctx, p.source) })
	if err != nil {
		return err
	}
	last, _, err := p.db.LastUpdate(ctx, since)
	if err != nil {
		return err
	}
	p.end, p.Watermark = served.End, held.Watermark
	p.From = max(held.HistoryFloor, served.Pruned, last-1)
	p.Common = p.From
	return nil
}

// next reads the page after an offset; more is false if it is the last.
func (p *divergence) next(ctx context.Context, at ledger.Offset) (page ledger.Page, more bool, err error) {
	defer pg.Wrap(&err, "read the updates after offset %d", at)
	if p.end != nil && at >= *p.end {
		return ledger.Page{From: at, To: at}, false, nil
	}
	page, err = withRetry(ctx, p.logger, func() (ledger.Page, error) {
		if p.end == nil {
			page, _, err := p.source.TailUpdates(ctx, at, openLimit, openIdle)
			if err == nil && page.To == at {
				page, _, err = p.source.TailUpdates(ctx, at, openLimit, ingest.LongPoll)
			}
			return page, err
		}
		return p.ranges.Read(ctx, p.logger, p.source.ReadUpdates, ledger.Range{From: at, To: *p.end})
	})
	return page, page.To > at, err
}

func (p *divergence) compare(ctx context.Context, page *ledger.Page) error {
	served := make([]ledger.UpdateRef, len(page.Updates))
	for i := range page.Updates {
		u := page.Updates[i].Ref()
		served[i] = u
		if u.RecordTime.After(p.latest[u.SynchronizerID]) {
			p.latest[u.SynchronizerID] = u.RecordTime
		}
	}
	if !p.Parted {
		var err error
		if served, err = p.agree(ctx, ledger.Range{From: page.From, To: page.To}, served); err != nil {
			return err
		}
	}
	if !p.Parted || len(served) == 0 {
		return nil
	}
	return p.match(ctx, served)
}

// agree compares a page with what is stored, offset by offset. If they part in it, it returns the served updates after
// that.
func (p *divergence) agree(ctx context.Context, within ledger.Range,
	all []ledger.UpdateRef) (rest []ledger.UpdateRef, err error) {
	stored, err := p.db.UpdateRefs(ctx, within, len(all)+1)
	if err != nil {
		return nil, err
	}
	served := p.inCovered(all)
	stored = p.inCovered(stored) // without what the indexer stores meanwhile
	n := 0
	for n < len(served) && n < len(stored) && served[n].Offset == stored[n].Offset &&
		served[n].Equal(stored[n].UpdateKey) {
		n++
	}
	if p.Equal += int64(n); n > 0 {
		p.Common = served[n-1].Offset
	}
	if n == len(served) && n == len(stored) {
		return nil, nil
	}
	p.Parted = true
	if n < len(stored) {
		p.Stored = &stored[n]
	}
	for i := range all {
		if all[i].Offset > p.Common {
			p.Served = &all[i]
			return all[i:], nil
		}
	}
	return nil, nil
}

// inCovered returns the updates that lie in the stored ranges.
func (p *divergence) inCovered(all []ledger.UpdateRef) (list []ledger.UpdateRef) {
	for _, u := range all {
		if slices.ContainsFunc(p.covered, func(r ledger.Range) bool { return u.Offset > r.From && u.Offset <= r.To }) {
			list = append(list, u)
		}
	}
	return list
}

// match looks for served updates after Common among the stored ones, by their ids.
func (p *divergence) match(ctx context.Context, served []ledger.UpdateRef) error {
	if p.Served == nil {
		p.Served = &served[0]
	}
	var ids []string
	for _, u := range served {
		if u.ID != "" {
			ids = append(ids, u.ID)
		}
	}
	named, err := p.db.UpdateRefsByID(ctx, ids, p.Common)
	if err != nil {
		return err
	}
	places := map[string][]ledger.UpdateRef{}
	for _, u := range named {
		places[u.ID] = append(places[u.ID], u)
	}
	for _, u := range served {
		stored := p.placeOf(u, places[u.ID])
		switch {
		case stored == 0:
			p.New++
			continue
		case stored == u.Offset:
			p.Kept++
		default:
			p.Moved++
		}
		p.found.add(stored)
	}
	return nil
}

// placeOf returns the offset of the stored update that a served one is, among those that have its id; 0: it is none of
// them. Updates of several synchronizers may share an id. Of equal ones it is the one at the same offset, or else the
// first that is not found yet.
func (p *divergence) placeOf(u ledger.UpdateRef, named []ledger.UpdateRef) (at ledger.Offset) {
	for _, stored := range named {
		switch {
		case !u.Equal(stored.UpdateKey):
		case stored.Offset == u.Offset:
			return u.Offset
		case at == 0 && !p.found.has(stored.Offset):
			at = stored.Offset
		}
	}
	return at
}

// lost counts the updates that are stored after Common and were not served.
func (p *divergence) lost(ctx context.Context) error {
	for after := p.Common; ; {
		batch, err := p.db.UpdateRefs(ctx, ledger.Range{From: after, To: maxOffset}, refsBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		if p.Stored == nil {
			p.Stored = &batch[0]
		}
		for _, u := range batch {
			switch {
			case p.found.has(u.Offset):
				continue
			case u.RecordTime.After(p.latest[u.SynchronizerID]):
				p.Later++
			case len(p.Missing) < mostMissing:
				p.Missing = append(p.Missing, u)
			}
			p.Lost++
		}
		after = batch[len(batch)-1].Offset
	}
}

// offsetSet is a set of offsets, 64 to a word.
type offsetSet map[ledger.Offset]uint64

func (s offsetSet) add(at ledger.Offset)      { s[at>>6] |= 1 << (at & 63) }
func (s offsetSet) has(at ledger.Offset) bool { return s[at>>6]>>(at&63)&1 == 1 }

// Target returns the offset to which the database has to be reset, so that what lies after it is read again. What that
// can't cure is a *ledger.Problem.
func (p *Divergence) Target() (ledger.Offset, error) {
	switch {
	case p.Equal == 0 && p.From > 0:
		return 0, &ledger.Problem{
			What: fmt.Sprintf("the participant does not have the first update that is stored after offset %d there: they part "+
				"there or further down, and what lies below was not compared", p.From),
			Do: "give an earlier --since, if you gave one. Else the database begins above where they part, or the participant " +
				"is pruned there, and what is stored can't be read again: index into a new database, seeded with `backfill`, and " +
				"keep this one for the past",
		}
	case p.Equal == 0 && p.Moved == 0:
		return 0, &ledger.Problem{
			What: "the participant has none of the updates that are stored, whatever their offsets: it is of another ledger, " +
				"or has not received them again yet",
			Do: "check --ledger-url and --database-url; if the ledger was created again, index it into a new database",
		}
	}
	return min(p.Common, p.Watermark), nil
}
