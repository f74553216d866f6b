package ingest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

const (
	// writers is how many transactions write facts at a time.
	writers = 2
	// Where updates come more slowly than that, they are written this often.
	lingerFor = 2 * time.Second
	// leastRoom is what is reserved for a page at least, in bytes: some updates are much larger than others.
	leastRoom = 1 << 20
	// A request that fails is repeated so many times in a row before the whole is tried again from the beginning.
	triesInPlace = 3
)

// pace is what is known of how a source is best read. It outlasts a try.
type pace struct {
	retry Retry
	sizes sizes
	limit limiter
}

// newPace is for at most so many requests in flight, 0: DefaultMaxRequests, of a stream with this name in the log.
func newPace(maxRequests int, logger *slog.Logger, stream string) pace {
	return pace{retry: Retry{Logger: logger.With("stream", stream)}, limit: newLimiter(cmp.Or(maxRequests, DefaultMaxRequests))}
}

// loader brings what a plan says from a source into the database, several windows at a time:
//
//	plan ─ windows → fetch ─ pages → write
//
// The tail reads pages in a way of its own.
//
// Windows are fetched in the plan's order, come in any, and are written in batches of pages that adjoin. The goroutine of run
// owns all state.
type loader struct {
	eventLoop
	*pace
	source UpdateSource
	scope  ledger.Scope
	fork   *forkCheck
	plan   *plan
	// ordered: what came is written at once, in one transaction after the other.
	ordered bool

	reached  ledger.Offset // the highest offset that was fetched
	updates  int           // that were fetched
	fetching int
	room     int64     // bytes of JSON that requests may bring, or pages hold
	least    int64     // that is reserved for a request
	pages    []fetched // not being written yet, in the plan's order
	writing  int
	wrote    time.Time // when a batch was last begun

	pausing  bool
	until    time.Time // nothing is asked for before
	tries    int       // requests that failed since one worked
	answered bool      // a request worked since a batch was stored

	unreadFrom ledger.Offset // from where on unread counts; what is read below is still stored
}

// run is eventLoop.run.
func (l *loader) run(ctx context.Context, next func(reading context.Context)) error {
	l.least, l.wrote = leastRoom, time.Now()
	return l.eventLoop.run(ctx, next)
}

// resting tells whether nothing that was fetched, or is being fetched, is still to be written.
func (l *loader) resting() bool { return l.fetching == 0 && l.writing == 0 && len(l.pages) == 0 }

// fetch asks for the plan's next windows, as many as the limiter and the memory budget allow. If further is false, only windows
// below the highest fetched offset are requested. It reports whether the plan is exhausted.
func (l *loader) fetch(ctx context.Context, further bool) (exhausted bool) {
	for ctx.Err() == nil && !l.pausing && l.limit.allows(l.fetching) {
		window, ok := l.plan.next(l.limit.most)
		if !ok {
			return true
		}
		room := l.roomFor(window)
		full := l.room > 0 && l.room+room > bytesInFlight
		if full || !further && window.From >= l.reached {
			return false
		}
		l.plan.take(window)
		l.room += room
		l.fetching++
		busy := !l.limit.allows(l.fetching)
		l.begin(func() func() {
			began := time.Now()
			page, err := l.read(ctx, window, room)
			took := time.Since(began)
			return func() {
				l.fetching--
				l.room -= room
				if err != nil {
					l.notRead(ctx, window, room, err)
					return
				}
				if float64(len(page.Updates)) >= l.sizes.aim()/2 { // small ones come sooner
					l.limit.answered(took, busy)
				}
				l.arrived(window, room, &page)
			}
		})
	}
	return false
}

// roomFor is how many bytes a window may bring. Where nothing is known of it, that is all there is.
func (l *loader) roomFor(window ledger.Range) int64 {
	expected := l.sizes.expectBytes(window.To - window.From)
	if l.sizes.bytesEach() == 0 {
		expected = bytesInFlight
	}
	return min(bytesInFlight, max(expected+expected/2, l.least))
}

// read reads one page of a window.
func (l *loader) read(ctx context.Context, window ledger.Range, room int64) (page ledger.Page, err error) {
	read := l.source.ReadUpdates // nothing else is in memory
	if room < bytesInFlight {
		read = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			return l.source.ReadUpdatesWithin(ctx, after, to, room)
		}
	}
	err = l.confirmed(ctx, func() (*ledger.Page, error) {
		page, err = l.sizes.ask(ctx, read, window)
		return &page, err
	})
	return page, err
}

// confirmed reads a page that is used once it is certain that it is of the history that was read before.
func (l *loader) confirmed(ctx context.Context, read func() (*ledger.Page, error)) error {
	changes := l.source.Changes()
	page, err := read()
	if err == nil {
		return l.fork.accept(ctx, changes, page)
	}
	if Lasting(err) { // it may be another server that can't go on
		if changed := l.fork.stuck(ctx); changed != nil {
			return changed
		}
	}
	return err
}

// arrived takes in a page of a window. What the page leaves of it is read later.
func (l *loader) arrived(window ledger.Range, room int64, page *ledger.Page) {
	l.tries, l.answered = 0, true
	if room >= l.least { // else it says nothing of a window that needs more room, and waits for it
		l.least = max(leastRoom, l.least/2)
	}
	l.sizes.learn(page, page.To < window.To)
	l.plan.giveBack(ledger.Range{From: page.To, To: window.To})
	l.room += page.Bytes
	l.updates += len(page.Updates)
	l.reached = max(l.reached, page.To)
	i, _ := slices.BinarySearchFunc(l.pages, page, func(f fetched, page *ledger.Page) int { return l.plan.compare(&f.page, page) })
	l.pages = slices.Insert(l.pages, i, fetched{page: *page})
}

// notRead decides what an error means that came instead of a page.
func (l *loader) notRead(ctx context.Context, window ledger.Range, room int64, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, ledger.ErrNoRoom) && room < bytesInFlight:
		l.least = min(bytesInFlight, 4*room)
		l.plan.giveBack(window)
	case Lasting(err), errors.Is(err, errAnotherHistory):
		l.giveUp(window.From, err)
	default:
		l.plan.giveBack(window)
		l.trouble(ctx, err)
	}
}

// giveUp ends the reading: from an offset on, where what lies below can still be had and is to come first.
func (l *loader) giveUp(from ledger.Offset, err error) {
	if errors.Is(err, errAnotherHistory) || !Lasting(err) || l.plan.newestFirst {
		from = 0
	}
	if l.unread == nil || from < l.unreadFrom {
		l.unread, l.unreadFrom = err, from
	}
	l.plan.cut(from)
}

// trouble lets a pause go by after a request that failed and may be repeated. Others that were on their way with it may
// fail too, which says nothing new, but may ask for a longer pause.
func (l *loader) trouble(ctx context.Context, err error) {
	if l.pausing {
		l.until = later(l.until, time.Now().Add(asksFor(err)))
		return
	}
	l.limit.failed()
	if l.tries++; l.tries > triesInPlace {
		l.giveUp(0, err)
		return
	}
	l.until = time.Now().Add(l.retry.Pause(ctx, err))
	l.pause(ctx)
}

func (l *loader) pause(ctx context.Context) {
	l.pausing = true
	wait := time.Until(l.until)
	l.begin(func() func() {
		Sleep(ctx, wait)
		return func() {
			l.pausing = false
			if ctx.Err() == nil && time.Now().Before(l.until) {
				l.pause(ctx)
			}
		}
	})
}

// write begins transactions for batches of pages that adjoin, those that are planned first before others. stored is called when
// one was committed, or has nothing to commit.
func (l *loader) write(ctx context.Context, store func(context.Context, ledger.Scope, []ledger.Page) error, stored func(batch)) {
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
		l.begin(func() func() {
			var err error
			if len(b.pages) > 0 {
				err = store(context.WithoutCancel(ctx), l.scope, b.pages) // finished once it was begun
			}
			return func() {
				l.writing--
				l.room -= b.bytes
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

// nextBatch takes the first pages that adjoin and are enough for a transaction, or any at all.
func (l *loader) nextBatch(all bool) (b batch, ok bool) {
	for first := 0; first < len(l.pages); {
		b = batch{}
		next := first
		for next < len(l.pages) && !b.full() && (next == first || l.plan.follows(&l.pages[next-1].page, &l.pages[next].page)) {
			b.take(l.pages[next])
			next++
		}
		if all || b.full() {
			l.pages = slices.Delete(l.pages, first, next)
			if l.plan.newestFirst {
				slices.Reverse(b.pages)
			}
			return b, true
		}
		first = next
	}
	return b, false
}
