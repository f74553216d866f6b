package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// How much a loader writes at a time, and reserves for what it reads.
const (
	// writers is how many transactions write facts at a time.
	writers = 2
	// mostRoom is how much JSON may be asked for, or fetched and not committed yet, in bytes. The tail may hold one page
	// more, and a larger page is read by itself.
	mostRoom = 24 << 20
	// leastRoom is the least that is reserved for a page, in bytes: some updates are much larger than others.
	leastRoom = 1 << 20
)

// loader reads the ranges of a plan and stores them, several windows at a time:
//
//	plan ─ windows → fetch ─ pages → write
//
// Windows are requested in the plan's order, arrive in any order, and are written in batches of adjacent pages. The
// goroutine of run owns all state. The tail uses the loader with one window, and reads its pages itself.
type loader struct {
	eventLoop
	*pace
	source UpdateSource
	scope  ledger.Scope
	fork   *forkCheck
	plan   *plan
	// ordered: pages are written at once, in one transaction after the other.
	ordered bool

	reached  ledger.Offset // the highest offset that was fetched
	events   int           // how many were fetched
	fetching int           // requests in flight
	room     int64         // bytes of JSON: reserved for requests in flight, and held
	held     int64         // bytes of JSON of the pages that are fetched and not written
	least    int64         // bytes reserved for a request at least
	pages    []fetched     // not being written yet, in the plan's order
	writing  int           // transactions under way
	wrote    time.Time     // when a transaction was last begun

	answered bool // a request worked since a batch was stored

	unreadFrom ledger.Offset // reading stopped from here on (unread says why); what lies below is still read and stored
}

func (l *loader) run(ctx context.Context, next func(reading context.Context)) error {
	l.least, l.wrote = leastRoom, time.Now()
	defer func() { l.hold(-l.held) }() // what was not written is dropped
	return l.eventLoop.run(ctx, next)
}

// hold adds the bytes of a page that was fetched, or takes those that were written.
func (l *loader) hold(bytes int64) {
	l.room += bytes
	l.held += bytes
	if l.queued != nil {
		l.queued(l.held)
	}
}

// resting reports whether nothing is being fetched or written, and nothing waits to be written.
func (l *loader) resting() bool { return l.fetching == 0 && l.writing == 0 && len(l.pages) == 0 }

// fetch asks for the plan's next windows, as many as the limiter and the memory budget allow. If further is false, only
// windows below the highest fetched offset are requested. It reports whether the plan is exhausted.
func (l *loader) fetch(ctx context.Context, further bool) (exhausted bool) {
	for ctx.Err() == nil && l.limit.allows(l.fetching) {
		if l.wakeAt = l.waitsUntil(); !l.wakeAt.IsZero() {
			return false
		}
		window, ok := l.plan.next(l.limit.most)
		if !ok {
			return true
		}
		room := l.roomFor(window)
		full := l.room > 0 && l.room+room > mostRoom
		if full || !further && window.From >= l.reached {
			return false
		}
		l.plan.take(window)
		l.room += room
		l.fetching++
		l.rate.begun(time.Now())
		busy := !l.limit.allows(l.fetching)
		reading, trail := l.startTrail(ctx)
		l.begin(func() func() {
			began := time.Now()
			page, err := l.read(reading, window, room)
			took := time.Since(began)
			return func() {
				l.fetching--
				l.room -= room
				if err != nil {
					l.notRead(ctx, window, room, trail, err)
					return
				}
				l.requestWorked()
				if float64(len(page.Updates)) >= l.sizes.aim()/2 { // smaller pages take less time, which says nothing about load
					l.limit.answered(took, busy)
				}
				l.arrived(window, room, &page, trail)
			}
		})
	}
	return false
}

// roomFor returns how many bytes to reserve for a window: while the size of updates is not known, the whole budget.
func (l *loader) roomFor(window ledger.Range) int64 {
	expected := l.sizes.expectBytes(window.To - window.From)
	if l.sizes.bytesEach() == 0 {
		expected = mostRoom
	}
	return min(mostRoom, max(expected+expected/2, l.least))
}

func (l *loader) read(ctx context.Context, window ledger.Range, room int64) (page ledger.Page, err error) {
	read := l.source.ReadUpdates // without a limit, if the whole budget is reserved
	if room < mostRoom {
		read = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			return l.source.ReadUpdatesWithin(ctx, after, to, room)
		}
	}
	err = l.readChecked(ctx, func() (*ledger.Page, error) {
		page, err = l.sizes.ask(ctx, read, window)
		return &page, err
	})
	return page, err
}

// readChecked reads a page, and passes it through the fork check.
func (l *loader) readChecked(ctx context.Context, read func() (*ledger.Page, error)) error {
	changes := l.source.Changes()
	page, err := read()
	if err == nil {
		return l.fork.accept(ctx, changes, page)
	}
	if Lasting(err) { // perhaps another server answered, with other updates
		if changed := l.fork.stuck(ctx); changed != nil {
			return changed
		}
	}
	return err
}

// arrived records a page. The rest of its window goes back to the plan.
func (l *loader) arrived(window ledger.Range, room int64, page *ledger.Page, trail Trail) {
	l.answered = true
	if room >= l.least { // a page with less room says nothing about the window that needed more
		l.least = max(leastRoom, l.least/2)
	}
	l.sizes.learn(page, page.To < window.To)
	l.plan.giveBack(ledger.Range{From: page.To, To: window.To})
	l.hold(page.Bytes)
	l.reached = max(l.reached, page.To)
	i, _ := slices.BinarySearchFunc(l.pages, page,
		func(f fetched, page *ledger.Page) int { return l.plan.compare(&f.page, page) })
	f := l.counted(page)
	f.trail = trail
	l.pages = slices.Insert(l.pages, i, f)
}

// counted counts a page's events. An update without any counts as one.
func (l *loader) counted(page *ledger.Page) fetched {
	f := fetched{page: *page}
	for i := range page.Updates {
		f.events += max(1, page.Updates[i].Elements())
	}
	l.events += f.events
	return f
}

// notRead handles the error of a request.
func (l *loader) notRead(ctx context.Context, window ledger.Range, room int64, trail Trail, err error) {
	if ctx.Err() == nil {
		l.endTrail(trail, Work{Name: "read", Range: window}, err)
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, ledger.ErrByteLimit) && room < mostRoom:
		l.least = min(mostRoom, 4*room)
		l.plan.giveBack(window)
	case Lasting(err), errors.Is(err, errForked):
		l.giveUp(window.From, err)
	default:
		l.plan.giveBack(window)
		l.pauseAfter(ctx, err)
	}
}

// giveUp stops reading: from an offset on, if what lies below can still be read and comes first; else altogether.
func (l *loader) giveUp(from ledger.Offset, err error) {
	if errors.Is(err, errForked) || !Lasting(err) {
		from = 0
	}
	if l.unread == nil || from < l.unreadFrom {
		l.unread, l.unreadFrom = err, from
	}
	l.plan.cut(from)
}

// pauseAfter pauses after a request failed that may be repeated, or gives up.
func (l *loader) pauseAfter(ctx context.Context, err error) {
	if l.requestFailed(ctx, err) {
		l.giveUp(0, err)
	}
}

// write starts transactions for batches of adjacent pages, in the plan's order. stored is called with a batch when it
// is committed, or has nothing to commit.
func (l *loader) write(ctx context.Context, store func(context.Context, ledger.Scope, []ledger.Page) error,
	stored func(batch)) {
	most := writers
	if l.ordered {
		most = 1
	}
	for ctx.Err() == nil && l.failed == nil && l.writing < most {
		all := l.ordered || l.fetching == 0 || time.Since(l.wrote) > lingerFor
		b, ok := l.nextBatch(all)
		if !ok {
			return
		}
		l.writing++
		l.wrote = time.Now()
		writing, trail := l.startTrail(context.WithoutCancel(ctx)) // a transaction that has begun is finished
		l.begin(func() func() {
			var err error
			if len(b.pages) > 0 {
				err = store(writing, l.scope, b.pages)
			}
			return func() {
				l.writing--
				l.hold(-b.bytes)
				if len(b.pages) > 0 {
					l.endTrail(trail, Work{Name: "batch", Range: b.span(), Updates: b.updates}, err, b.trails...)
				}
				if err != nil {
					l.fail(err)
					return
				}
				stored(b)
				if l.answered {
					l.answered = false
					l.retry.Worked()
				}
			}
		})
	}
}

// nextBatch takes the first adjacent pages that fill a batch; with all, the first adjacent pages.
func (l *loader) nextBatch(all bool) (b batch, ok bool) {
	for first := 0; first < len(l.pages); {
		b = batch{}
		next := first
		for next < len(l.pages) && !b.full() &&
			(next == first || l.plan.follows(&l.pages[next-1].page, &l.pages[next].page)) {
			b.take(l.pages[next])
			next++
		}
		if all || b.full() {
			l.pages = slices.Delete(l.pages, first, next)
			return b, true
		}
		first = next
	}
	return b, false
}
