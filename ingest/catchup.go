package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

const (
	// writers is how many transactions write facts at a time.
	writers = 2
	// A batch is begun when so much has come for it.
	batchBytes = bytesInFlight / 4
	// The watermark moves over so many updates at a time: in large steps, contracts that come and go within one cost nothing.
	projectUpdates = 20_000
	// At most so many updates are fetched and not shown. They are remembered until then.
	unshownUpdates = 3 * projectUpdates
	// Where updates come so slowly that neither is reached, they are written and shown this often.
	lingerFor = 2 * time.Second
	// leastRoom is what is reserved for a page at least, in bytes: some updates are much larger than others.
	leastRoom = 1 << 20
	// A request that fails is repeated so many times in a row before the whole is tried again from the beginning.
	triesInPlace = 3
)

// catchUp brings a watermark that is far behind near the ledger's end. What is missing is cut into windows, and several of
// them are in work at a time:
//
//	plan ─ windows → fetch ─ pages → write ─ ranges → project
//
// Windows are fetched in any order and written in batches of pages that adjoin; the projector follows in order. One
// goroutine, that of run, owns all state and decides what begins. Requests and transactions run beside it, and report to it
// when they are done.
type catchUp struct {
	*updatesRun
	seen  *recognition
	meter *Meter

	plan      *plan
	reached   ledger.Offset // the highest offset that was fetched
	fetching  int
	room      int64         // bytes of JSON that requests may bring, or pages hold
	least     int64         // that is reserved for a request
	fetched   []ledger.Page // in order; not being written yet
	writing   int
	wrote     time.Time     // when a batch was last begun
	stored    []storedRange // behind the watermark, in order
	projected time.Time     // when a projection was last begun
	at        ledger.Offset // the watermark
	unshown   int           // updates that are fetched and not shown

	projecting, asking, pausing bool
	final                       bool      // the plan reaches as far as it will
	until                       time.Time // nothing is asked for before
	tries                       int       // requests that failed since one worked
	answered                    bool      // a request worked since a commit

	unread     error // why nothing is read from unreadFrom on; what is read below is still stored and shown
	unreadFrom ledger.Offset
	failed     error // why nothing more is begun at all

	reports  chan func()
	underWay int
}

// storedRange is a range that was written, or found to be.
type storedRange struct {
	ledger.Range
	updates int // not counted where it was found
}

// newCatchUp makes a catch-up from the watermark to an offset that is not beyond the ledger's end. What is stored ahead is
// not read again.
func newCatchUp(r *updatesRun, seen *recognition, meter *Meter, at, end ledger.Offset, ahead []ledger.Range) *catchUp {
	c := &catchUp{
		updatesRun: r, seen: seen, meter: meter, plan: newPlan(&r.sizes, at, end, ahead), reached: at, least: leastRoom,
		wrote: time.Now(), projected: time.Now(), at: at, reports: make(chan func()),
	}
	for _, stored := range ahead {
		c.stored = append(c.stored, storedRange{Range: stored})
	}
	return c
}

// run works until the ledger's end is near (nil) and everything is shown, or until something fails or ctx ends. It returns
// when all that it began has ended.
func (c *catchUp) run(ctx context.Context) error {
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	for {
		c.fetch(reading)
		c.write(ctx)
		c.project(ctx)
		if c.underWay == 0 {
			break
		}
		report := <-c.reports
		report()
		if c.failed != nil {
			stopReading()
		}
	}
	switch {
	case c.failed != nil:
		return c.failed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return c.unread
}

// begin does something beside run, which then gets its report.
func (c *catchUp) begin(do func() (report func())) {
	c.underWay++
	go func() {
		report := do()
		c.reports <- func() {
			c.underWay--
			report()
		}
	}()
}

// fetch asks for windows, the lowest first, as many as the source and the memory bear.
func (c *catchUp) fetch(ctx context.Context) {
	for ctx.Err() == nil && !c.pausing && c.limit.allows(c.fetching) {
		window, ok := c.plan.next(c.limit.most)
		if !ok {
			c.extend(ctx)
			return
		}
		room := c.roomFor(window)
		full := c.room > 0 && c.room+room > bytesInFlight
		if full || c.unshown >= unshownUpdates && window.From >= c.reached {
			return
		}
		c.plan.take(window)
		c.room += room
		c.fetching++
		busy := !c.limit.allows(c.fetching)
		c.begin(func() func() {
			began := time.Now()
			page, err := c.read(ctx, window, room)
			took := time.Since(began)
			return func() {
				c.fetching--
				c.room -= room
				if err != nil {
					c.notRead(ctx, window, room, took, err)
					return
				}
				if float64(len(page.Updates)) >= c.sizes.aim()/2 { // small ones come sooner
					c.limit.answered(took, busy)
				}
				c.arrived(window, room, &page)
			}
		})
	}
}

// roomFor is how many bytes a window may bring. Where nothing is known of it, that is all there is.
func (c *catchUp) roomFor(window ledger.Range) int64 {
	expected := c.sizes.expectBytes(window.To - window.From)
	if c.sizes.bytesEach() == 0 {
		expected = bytesInFlight
	}
	return min(bytesInFlight, max(2*expected, c.least))
}

// read reads one page of a window. It is accepted: of the history that was read before.
func (c *catchUp) read(ctx context.Context, window ledger.Range, room int64) (page ledger.Page, err error) {
	changes := c.Source.Changes()
	if room < bytesInFlight {
		page, err = c.Source.ReadUpdatesWithin(ctx, window.From, window.To, room)
	} else { // nothing else is in memory
		page, err = c.Source.ReadUpdates(ctx, window.From, window.To)
	}
	if err == nil {
		return page, c.seen.accept(ctx, changes, &page)
	}
	if Lasting(err) { // it may be another server that can't go on
		if changed := c.seen.stuck(ctx); changed != nil {
			err = changed
		}
	}
	return page, err
}

// arrived takes in a page of a window. What the page leaves of it is read later.
func (c *catchUp) arrived(window ledger.Range, room int64, page *ledger.Page) {
	c.tries, c.answered = 0, true
	if room >= c.least { // else it says nothing of a window that needs more room, and waits for it
		c.least = max(leastRoom, c.least/2)
	}
	c.sizes.learn(page, page.To < window.To)
	c.plan.giveBack(ledger.Range{From: page.To, To: window.To})
	c.room += page.Bytes
	c.unshown += len(page.Updates)
	c.reached = max(c.reached, page.To)
	i, _ := slices.BinarySearchFunc(c.fetched, page.From, func(p ledger.Page, from ledger.Offset) int { return int(p.From - from) })
	c.fetched = slices.Insert(c.fetched, i, *page)
}

// notRead decides what an error means that came instead of a page.
func (c *catchUp) notRead(ctx context.Context, window ledger.Range, room int64, took time.Duration, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, ledger.ErrNoRoom) && room < bytesInFlight:
		c.least = min(bytesInFlight, 4*room)
		c.plan.giveBack(window)
	case Lasting(err), errors.Is(err, errAnotherHistory):
		c.giveUp(window.From, err)
	default:
		c.plan.giveBack(window)
		c.sizes.failed(window.To-window.From, took)
		c.trouble(ctx, err)
	}
}

// giveUp ends the reading from an offset on.
func (c *catchUp) giveUp(from ledger.Offset, err error) {
	if errors.Is(err, errAnotherHistory) || !Lasting(err) {
		from = c.at // nothing more can be trusted, or had
	}
	if c.unread == nil || from < c.unreadFrom {
		c.unread, c.unreadFrom = err, from
	}
	c.plan.cut(from)
}

// trouble lets a pause go by after a request that failed and may be repeated. Others that were on their way with it may
// fail too, which says nothing new, but may ask for a longer pause.
func (c *catchUp) trouble(ctx context.Context, err error) {
	if c.pausing {
		c.until = later(c.until, time.Now().Add(asksFor(err)))
		return
	}
	c.limit.failed()
	if c.tries++; c.tries > triesInPlace {
		c.giveUp(c.at, err)
		return
	}
	c.until = time.Now().Add(c.retry(ctx, err))
	c.pause(ctx)
}

func (c *catchUp) pause(ctx context.Context) {
	c.pausing = true
	wait := time.Until(c.until)
	c.begin(func() func() {
		Sleep(ctx, wait)
		return func() {
			c.pausing = false
			if ctx.Err() == nil && time.Now().Before(c.until) {
				c.pause(ctx)
			}
		}
	})
}

// extend asks for the ledger's end when everything is planned, and plans on where it is far.
func (c *catchUp) extend(ctx context.Context) {
	if c.final || c.asking || c.unread != nil {
		return
	}
	c.asking = true
	c.begin(func() func() {
		end, err := c.Source.LedgerEnd(ctx)
		return func() {
			c.asking = false
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, ledger.ErrNotOffered): // any more; what is stored ahead shows that it was
				c.final = true
			case Lasting(err):
				c.giveUp(c.plan.end, err)
			case err != nil:
				c.trouble(ctx, err)
			default:
				c.learnEnd(end, c.meter)
				if c.final = !c.sizes.far(end - c.plan.end); !c.final {
					c.plan.extend(end)
				}
			}
		}
	})
}
