package ingest

import (
	"cmp"
	"math"
	"slices"

	"ledgerindexer/ledger"
)

// How wide the windows of a catch-up are: what they aim at, and what is learned for it from the pages that came.
const (
	// mostServed is the most updates that servers put in a page. A lower limit of a server is learned from the first page
	// that is cut short.
	mostServed = 2_000
	// fewestAimedAt is the least number of updates that a window aims at: a page may be cut short for other reasons than
	// its limit.
	fewestAimedAt = 100
	// windowBytes is the most JSON that a window aims at, so that several can be in flight.
	windowBytes = 2 << 20
	// firstWidth is the width of the first window, in offsets.
	firstWidth = 200
	// A page that is cut short and is muchDenser times denser than the windows before it replaces what they taught.
	muchDenser = 10
	// The ledger's end is near if it is at most this many full pages away.
	nearPages = 3
)

// windowSizes learns from the pages how dense the updates are, how large, and how many the server puts in a page. Older
// windows count less with each new one.
type windowSizes struct {
	Ranges
	offsets, updates, bytes float64 // of recent windows
	page                    float64 // updates in a full page; 0: nothing was learned yet
	width                   float64 // of the next window, in offsets
}

// learn learns from a page; cut says that it ended before the range that was asked for.
func (s *windowSizes) learn(page *ledger.Page, cut bool) {
	const keep = 0.8
	covered, updates := float64(page.To-page.From), float64(len(page.Updates))
	s.offsets = keep*s.offsets + covered
	s.updates = keep*s.updates + updates
	s.bytes = keep*s.bytes + float64(page.Bytes)
	if cut && updates > muchDenser*covered*s.density() { // a long range without updates came before
		s.offsets, s.updates, s.bytes = covered, updates, float64(page.Bytes)
	}
	switch {
	case cut:
		s.page = updates
	case updates >= 0.8*s.aim():
		s.page = min(mostServed, 1.005*s.fullPage()) // the server's limit may have been raised
	}
	grown := max(s.nextWidth(), 2*covered) // in a sparse ledger, windows grow step by step
	s.width = min(grown, max(1, s.aim()/s.density()))
	s.answered(page.To - page.From)
}

func (s *windowSizes) fullPage() float64 {
	if s.page == 0 {
		return mostServed
	}
	return max(s.page, fewestAimedAt)
}

// aim returns how many updates a window should bring: a little less than a full page, because one more would cost a
// second request.
func (s *windowSizes) aim() float64 {
	aim := max(0.9*s.fullPage(), fewestAimedAt)
	if each := s.bytesEach(); each > 0 {
		aim = min(aim, windowBytes/each)
	}
	return max(1, aim)
}

// density returns the updates per offset; 1 before anything was learned.
func (s *windowSizes) density() float64 {
	if s.offsets == 0 {
		return 1
	}
	return max(s.updates/s.offsets, 1e-12)
}

// bytesEach returns the bytes of JSON per update; 0: not known.
func (s *windowSizes) bytesEach() float64 {
	if s.updates < 0.5 {
		return 0
	}
	return s.bytes / s.updates
}

// expectBytes returns how many bytes of JSON a range is expected to bring; 0: not known.
func (s *windowSizes) expectBytes(offsets ledger.Offset) int64 {
	return int64(min(float64(offsets)*s.density()*s.bytesEach(), math.MaxInt32))
}

func (s *windowSizes) nextWidth() float64 {
	if s.width == 0 {
		return firstWidth
	}
	return s.width
}

// far reports whether a range is long enough to be read in parallel.
func (s *windowSizes) far(offsets ledger.Offset) bool {
	return float64(offsets)*s.density() > nearPages*s.fullPage()
}

// plan is what is still to be read: ranges in order, from which windows are cut.
type plan struct {
	sizes   *windowSizes
	missing []ledger.Range
	end     ledger.Offset // the end of all ranges that were ever planned
	limit   ledger.Offset // nothing is read from here on
}

// newPlan plans the range after an offset up to another one, without the ranges that are stored, which are in order.
func newPlan(sizes *windowSizes, at, end ledger.Offset, stored []ledger.Range) *plan {
	p := &plan{sizes: sizes, end: at, limit: math.MaxInt64}
	for _, r := range stored {
		p.extend(r.From)
		p.end = max(p.end, r.To)
	}
	p.extend(end)
	return p
}

// extend adds what lies between the end of the plan and an offset.
func (p *plan) extend(end ledger.Offset) {
	if end > p.end {
		p.missing = append(p.missing, ledger.Range{From: p.end, To: end})
		p.end = end
	}
}

// next returns the next window to read; ok is false if there is none. If little is left, the window is narrower, down
// to a quarter, so that parallel requests share it.
func (p *plan) next(parallel int) (window ledger.Range, ok bool) {
	if len(p.missing) == 0 {
		return ledger.Range{}, false
	}
	var left ledger.Offset
	for _, r := range p.missing {
		left += r.To - r.From
	}
	width := p.sizes.nextWidth()
	width = max(1, min(width, max(float64(left)/float64(parallel), width/4)))
	window = p.missing[0]
	offsets := window.To - window.From
	if width < float64(offsets) {
		offsets = ledger.Offset(width)
	}
	offsets = p.sizes.clamp(offsets)
	window.To = window.From + offsets
	return window, true
}

// take removes a window that next returned from the plan.
func (p *plan) take(window ledger.Range) {
	rest := &p.missing[0]
	if rest.From = window.To; rest.From == rest.To {
		p.missing = slices.Delete(p.missing, 0, 1)
	}
}

// giveBack returns a range that was not read to the plan.
func (p *plan) giveBack(r ledger.Range) {
	if r.From == r.To || r.From >= p.limit {
		return
	}
	i := 0
	for i < len(p.missing) && p.missing[i].From < r.From {
		i++
	}
	switch {
	case i < len(p.missing) && p.missing[i].From == r.To:
		p.missing[i].From = r.From
	case i > 0 && p.missing[i-1].To == r.From:
		p.missing[i-1].To = r.To
	default:
		p.missing = slices.Insert(p.missing, i, r)
	}
}

// cut removes everything from an offset on.
func (p *plan) cut(from ledger.Offset) {
	p.limit = min(p.limit, from)
	p.missing = slices.DeleteFunc(p.missing, func(r ledger.Range) bool { return r.From >= p.limit })
}

// compare orders pages as the plan does.
func (p *plan) compare(a, b *ledger.Page) int {
	return cmp.Compare(a.From, b.From)
}

// follows reports whether a page is adjacent to the one before it in the plan's order.
func (p *plan) follows(before, page *ledger.Page) bool {
	return page.From == before.To
}
