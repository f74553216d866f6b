package ingest

import (
	"context"
	"iter"
	"log/slog"

	"ledgerindexer/ledger"
)

// PageSource has the updates of a ledger from its beginning up to some offset, to be read in order, as files do.
type PageSource interface {
	// End returns the offset of the last update; 0 if there is none.
	End() ledger.Offset
	// Pages reads the updates of a range that does not reach beyond End, in order, as adjacent pages. After an error
	// nothing follows.
	Pages(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Page, error]
}

// feed reads what is missing from a PageSource, one page after the other.
type feed struct {
	source  PageSource
	missing []ledger.Range // in order
	next    func() (ledger.Page, error, bool)
	stop    func()
	done    bool // every page was read
}

// newFeed returns a feed of ranges. What lies beyond the end of the source is left out.
func newFeed(source PageSource, missing []ledger.Range) *feed {
	f := &feed{source: source}
	for _, r := range missing {
		if r.To = min(r.To, source.End()); r.From < r.To {
			f.missing = append(f.missing, r)
		}
	}
	return f
}

// read returns the next page; ok is false if there is none.
func (f *feed) read(ctx context.Context) (page ledger.Page, ok bool, err error) {
	for {
		if f.next == nil {
			if len(f.missing) == 0 {
				return page, false, nil
			}
			f.next, f.stop = iter.Pull2(f.source.Pages(ctx, f.missing[0]))
			f.missing = f.missing[1:]
		}
		if page, err, ok = f.next(); ok {
			return page, err == nil, err
		}
		f.next = nil
	}
}

// close ends the reading of a range that is not read to its end.
func (f *feed) close() {
	if f.next != nil {
		f.stop()
	}
}

// load reads the next page for a loader, in place of fetch. It reports whether there are no more.
func (f *feed) load(ctx context.Context, l *loader, further bool) (exhausted bool) {
	if f.done {
		return true
	}
	if ctx.Err() != nil || l.unread != nil || l.fetching > 0 || l.room > mostRoom || !further {
		return false
	}
	l.fetching++
	l.begin(func() func() {
		page, ok, err := f.read(ctx)
		return func() {
			l.fetching--
			switch {
			case ctx.Err() != nil:
			case err != nil:
				l.giveUp(0, err)
			case !ok:
				f.done = true
			default:
				l.hold(page.Bytes)
				l.reached = page.To
				l.pages = append(l.pages, l.counted(&page))
			}
		}
	})
	return false
}

// Files is the loop that reads files from the watermark on up to their end, and writes them as catching up does. It is
// used once. A later run continues where an earlier one ended.
type Files struct {
	Source PageSource
	Sink   UpdateSink
	Scope  ledger.Scope
	// ParticipantID is recorded with the first watermark.
	ParticipantID string
	// Check, if set, checks before each try that source and sink belong together.
	Check  func(context.Context) error
	Logger *slog.Logger
	Watch  Watch
}

// Run works until everything is stored and visible. It returns the watermark. In a new database it begins at the
// beginning of the ledger. When ctx ends it finishes the transactions under way and returns ctx's error.
func (f *Files) Run(ctx context.Context) (at ledger.Offset, err error) {
	r := updatesRun{
		Updates: &Updates{Sink: f.Sink, Scope: f.Scope, ParticipantID: f.ParticipantID, Logger: f.Logger, Watch: f.Watch},
		pace:    newPace(0, f.Logger, "updates"),
	}
	err = r.retry.Do(ctx, func(ctx context.Context) error {
		at, err = f.try(ctx, &r)
		return err
	})
	if err != nil && !Lasting(err) && ctx.Err() != nil {
		err = ctx.Err()
	}
	return at, err
}

func (f *Files) try(ctx context.Context, r *updatesRun) (at ledger.Offset, err error) {
	if f.Check != nil {
		if err := f.Check(ctx); err != nil {
			return at, err
		}
	}
	at, started, err := f.Sink.Watermark(ctx)
	if err == nil && !started {
		err = f.Sink.Start(ctx, f.ParticipantID, f.Scope, 0, true)
	}
	if err != nil {
		return at, err
	}
	ahead, err := f.Sink.StoredAhead(ctx)
	if err != nil {
		return at, err
	}
	if len(ahead) == 0 && f.Source.End() <= at {
		return at, nil
	}
	meter := NewMeter(f.Logger, ledger.Progress{Stream: "updates", Unit: "updates", Start: int64(at)}, f.Watch.Progress)
	defer meter.Idle()
	meter.SetEnd(int64(f.Source.End()))
	c := newCatchUp(r, meter, at, f.Source.End(), ahead)
	files := newFeed(f.Source, c.load.plan.missing)
	defer files.close()
	c.load.plan.missing, c.whole = nil, true
	c.fetch = func(ctx context.Context, further bool) bool { return files.load(ctx, c.load, further) }
	err = c.run(ctx)
	return c.at, err
}
