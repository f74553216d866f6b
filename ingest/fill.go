package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"ledgerindexer/ledger"
)

// FillSink is the database of a Fill.
type FillSink interface {
	StoredUpdates
	// Bounds returns what is stored; started is false where nothing was indexed yet.
	Bounds(ctx context.Context) (bounds ledger.Bounds, started bool, err error)
	// Unfilled returns the parts of a range that are not stored, in order.
	Unfilled(ctx context.Context, r ledger.Range) ([]ledger.Range, error)
	// Fill stores consecutive pages, all of them or none, and lowers the history floor as far as everything below it is
	// stored without a gap. Ranges may be filled in any order. It is safe for concurrent use.
	Fill(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	// FillState takes a step towards a lower state floor, where updates are filled in from the beginning of the ledger or
	// from a snapshot on. It returns the offset that was reached, and the one at which it ends for now.
	FillState(ctx context.Context) (at, end ledger.Offset, done bool, err error)
	// EarlierScope returns what is stored in a scope that lacks something of the one in force, in order.
	EarlierScope(ctx context.Context) ([]ledger.EarlierRange, error)
	// Refill completes a page's range, which is the upper end of what is stored in an earlier scope, for the scope in
	// force. The page was read in scope, which shows everything that either of them shows.
	Refill(ctx context.Context, scope ledger.Scope, page ledger.Page) error
	// RefillSnapshot replaces the carried rows of a page of the carried snapshot by those of the page, which follows the
	// first `before` entries. With the last page the snapshot is of that scope. Refill has completed all updates above
	// before.
	RefillSnapshot(ctx context.Context, scope ledger.Scope, at ledger.Offset, before int64, page ledger.SnapshotPage) error
}

// ScopedSource reads a ledger in one scope.
type ScopedSource interface {
	UpdateSource
	SnapshotSource
}

// Fill is the loop that reads the updates below the history floor, while the indexer continues above. It is used once.
// A later run continues where an earlier one ended, because it asks what is stored.
type Fill struct {
	Source      UpdateSource
	Sink        FillSink
	Scope       ledger.Scope
	From        *ledger.Offset // nil: the beginning of the ledger, or what the participant was pruned up to
	To          *ledger.Offset // at most the watermark; nil: up to what is stored
	PrunedToo   bool           // fill in what an operator pruned too
	NewestFirst bool           // downwards, so that the history floor goes down with each window
	// Snapshot, if set, carries a snapshot at From, so that the active contracts are known from there on. Fill sets its
	// offset.
	Snapshot *Snapshot
	// Files, if set, are read first, up to their end. Only what is missing then is requested from Source.
	Files PageSource
	// Check, if set, checks before each try that source and sink belong together.
	Check func(context.Context) error
	// In returns a source that reads in a scope; nil: Source reads in the only one.
	In func(context.Context, ledger.Scope) (ScopedSource, error)
	// Past, if set, reads what is stored in the scope in which it was read, to detect a fork; nil: Source.
	Past UpdateReader
	// MaxRequests limits the requests in flight; 0 means DefaultMaxRequests.
	MaxRequests int
	Logger      *slog.Logger
	Progress    func(ledger.Progress) // see NewMeter; may be nil
}

// Filled is what a run did.
type Filled struct {
	Range   ledger.Range // to be filled in; From is not less than To if there was nothing to do
	Changed int64        // offsets that were read again because the scope was changed
	Updates int64
	Bounds  ledger.Bounds // after the run
	// Snapshot is the carried snapshot; nil: none was requested, or it was not needed.
	Snapshot *ledger.SnapshotProgress
}

// Run works until the range is filled in, and the state floor lowered if the filled-in updates reach down to the
// beginning of the ledger or to a snapshot. When ctx ends it finishes the transactions under way and returns ctx's
// error.
func (f *Fill) Run(ctx context.Context) (Filled, error) {
	r := fillRun{
		Fill: f, pace: newPace(f.MaxRequests, f.Logger, "backfill"),
		fork: newForkCheck(f.Source, f.Past, f.Sink, f.Logger),
	}
	err := r.retry.Do(ctx, r.try)
	if err != nil && !Lasting(err) {
		err = ctx.Err()
	}
	return r.filled, withFillCure(err)
}

// fillRun is the state that is kept over retries.
type fillRun struct {
	*Fill
	pace
	fork      *forkCheck
	chosen    bool
	filled    Filled
	restarted bool // the snapshot was restarted, because the unfinished one could not be continued
}

// try works until something fails. If the participant was pruned meanwhile, it begins again with what is left.
func (r *fillRun) try(ctx context.Context) error {
	for {
		err := r.work(ctx)
		if err == nil {
			r.filled.Bounds, _, err = r.Sink.Bounds(ctx)
		}
		if !Lasting(err) || !r.prunedMeanwhile(ctx) {
			return err
		}
	}
}

func (r *fillRun) work(ctx context.Context) error {
	if r.Check != nil {
		if err := r.Check(ctx); err != nil {
			return err
		}
	}
	bounds, started, err := r.Sink.Bounds(ctx)
	if err != nil {
		return err
	}
	if !started {
		return &ledger.Problem{
			What: "nothing has been indexed yet, so there is nothing below which history could be filled in",
			Do:   "let the indexer, or a backfill, begin; history can be filled in as soon as it has",
		}
	}
	if err := r.fork.begin(ctx, bounds.Watermark, nil); err != nil {
		return err
	}
	if !r.chosen {
		if r.filled.Range, err = r.choose(ctx, bounds); err != nil {
			return err
		}
		r.chosen = true
	}
	if err := r.refill(ctx); err != nil {
		return err
	}
	if err := r.carry(ctx, bounds); err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	return r.lowerStateFloor(ctx)
}

func (r *fillRun) fill(ctx context.Context) error {
	if r.filled.Range.From >= r.filled.Range.To {
		return nil
	}
	missing, err := r.Sink.Unfilled(ctx, r.filled.Range)
	if err != nil || len(missing) == 0 {
		return err
	}
	var all, done int64
	for _, m := range missing {
		all += int64(m.To - m.From)
	}
	r.Logger.InfoContext(ctx, "filling in history", "stream", "backfill", "after", int64(r.filled.Range.From),
		"up_to", int64(r.filled.Range.To),
		"missing_offsets", all)
	meter := NewMeter(r.Logger, ledger.Progress{Stream: "backfill", Unit: "updates", End: all}, r.Progress)
	defer meter.Idle()
	written := func(b batch) {
		done += int64(b.to() - b.pages[0].From)
		r.filled.Updates += int64(b.updates)
		meter.Add(ctx, done, b.updates)
	}
	if r.Files != nil {
		if err := r.fillFromFiles(ctx, missing, written); err != nil {
			return err
		}
		if missing, err = r.Sink.Unfilled(ctx, r.filled.Range); err != nil || len(missing) == 0 {
			return err
		}
	}
	load := loader{
		pace: &r.pace, source: r.Source, scope: r.Scope, fork: r.fork,
		plan: &plan{sizes: &r.sizes, missing: missing, limit: math.MaxInt64, newestFirst: r.NewestFirst},
	}
	return load.run(ctx, func(reading context.Context) {
		load.fetch(reading, true)
		load.write(ctx, r.Sink.Fill, written)
	})
}

func (r *fillRun) choose(ctx context.Context, bounds ledger.Bounds) (ledger.Range, error) {
	chosen := ledger.Range{To: bounds.Floor}
	if r.To != nil {
		if *r.To > bounds.Watermark {
			return chosen, &ledger.Problem{
				What: fmt.Sprintf("offset %d lies beyond the watermark, %d: what is there `indexer run` reads", *r.To,
					bounds.Watermark),
				Do: fmt.Sprintf("leave --to out, or give it an offset up to %d, where the stored history begins", bounds.Floor),
			}
		}
		chosen.To = min(*r.To, bounds.Floor) // everything above the floor is stored
	}
	pruned, err := AskPruned(ctx, r.Source)
	if err != nil {
		return chosen, err
	}
	if chosen.From = pruned; r.From != nil {
		chosen.From = *r.From
	} else if pruned > 0 {
		r.Logger.WarnContext(ctx, "the participant is pruned: history can be filled in from there on only", "stream",
			"backfill", "offset", int64(pruned))
	}
	if !r.PrunedToo && chosen.From < min(bounds.PrunedTo, chosen.To) {
		if r.From != nil {
			return chosen, &ledger.Problem{
				What: fmt.Sprintf("history up to offset %d was pruned (`indexer prune`), and is not brought back by accident",
					bounds.PrunedTo),
				Do: "add --pruned-too to fill it in again, and end the daemon's --retain, which would prune it again",
			}
		}
		r.Logger.WarnContext(ctx, "history was pruned: it is filled in after that only", "stream", "backfill",
			"offset", int64(bounds.PrunedTo))
		chosen.From = bounds.PrunedTo
	}
	if chosen.From >= chosen.To {
		return chosen, nil // nothing is to be read
	}
	return chosen, Served{Pruned: pruned}.checkPruned(chosen.From,
		fmt.Sprintf("give --from an offset of at least %d, or leave it out; or fill in from a participant's replica that "+
			"still has it", pruned))
}

// withFillCure replaces the cure of ledger.ErrPruned by the one for a Fill: less can be filled in, and nothing that is
// stored is lost.
func withFillCure(err error) error {
	var p *ledger.Problem
	if !errors.Is(err, ledger.ErrPruned) || !errors.As(err, &p) {
		return err
	}
	return &ledger.Problem{
		What: p.What, Err: p.Err,
		Do: "give --from the offset up to which it is pruned, or a later one; or fill in from a participant's replica that " +
			"still has it; what is stored stays",
	}
}

// prunedMeanwhile raises the beginning of the range, if From was not given and the participant was pruned since the
// range was chosen. It reports whether it did.
func (r *fillRun) prunedMeanwhile(ctx context.Context) bool {
	if !r.chosen || r.From != nil || ctx.Err() != nil {
		return false
	}
	pruned, err := AskPruned(ctx, r.Source)
	if err != nil || pruned <= r.filled.Range.From {
		return false
	}
	r.Logger.WarnContext(ctx, "the participant was pruned: history can be filled in from there on only", "stream",
		"backfill", "offset", int64(pruned))
	r.filled.Range.From = pruned
	return true
}

// lowerStateFloor lowers the state floor, if the stored updates reach down to the beginning of the ledger or to a
// snapshot.
func (r *fillRun) lowerStateFloor(ctx context.Context) error {
	meter := NewMeter(r.Logger, ledger.Progress{Stream: "backfill", Unit: "offsets"}, r.Progress)
	defer meter.Idle()
	for last := ledger.Offset(0); ; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at, end, done, err := r.Sink.FillState(context.WithoutCancel(ctx))
		if err != nil || done {
			return err
		}
		if last == 0 {
			r.Logger.InfoContext(ctx, "computing what was active below", "stream", "backfill", "offset", int64(end))
		}
		meter.SetEnd(int64(end))
		meter.Add(ctx, int64(at), int(max(0, at-last)))
		last = at
		r.retry.Worked()
	}
}
