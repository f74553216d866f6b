package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"ledgerindexer/findings"
	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// Selection selects the updates to read again.
type Selection struct {
	All      bool
	From, To *ledger.Offset // from exclusive, to inclusive; nil: the history floor, or the watermark
	Sample   int            // without All, From and To: this many pages from random offsets
	Seed     uint64         // of the random offsets; 0: a new one each time
}

// Progress is the progress of a step of the verification.
type Progress struct {
	Step     string // what is compared, for messages
	Done, Of int64  // in offsets, entries or records; Of is 0 if it is not known
}

// Updates verifies what is stored of a participant's updates. It may run beside the daemon, while the ledger grows: it
// compares what was stored when it began.
type Updates struct {
	Source    UpdateSource
	Database  UpdateDatabase
	Repairer  UpdateRepairer // nil: nothing is written
	Scope     ledger.Scope
	Selection Selection
	// Stretches returns approximately the parts of a range in which there are updates, in order. Random offsets are picked
	// in these. nil: updates are everywhere.
	Stretches func(ctx context.Context, r ledger.Range) ([]ledger.Range, error)
	Found     Found
	Progress  func(Progress)
	Logger    *slog.Logger

	result       UpdatesResult
	end          *ledger.Offset // of the ledger; nil: the server does not report it
	beyond       *ledger.Offset // the end if the watermark is beyond it; else nil
	pruned       ledger.Offset
	carriedRead  bool
	carriedWhole bool // what pruning kept here is what the participant shows there

	// where interface views are rendered otherwise: a repair stores them so, and what follows from them differs then
	refreshed suspects

	undecided bool  // a note says that a fork can't be ruled out
	changes   int64 // of the source when a fork was last looked for
}

// UpdatesResult is what was compared. Its JSON form is for scripts.
type UpdatesResult struct {
	ledger.Bounds
	ActiveAt  ledger.Offset `json:"active_at,omitempty"` // where the active set was compared
	Updates   int64         `json:"updates"`             // that were read again
	Active    int64         `json:"active_contracts"`    // entries of the snapshot that were compared
	Carried   int64         `json:"carried_entries"`     // entries of the carried snapshot that were compared
	Lookups   int64         `json:"-"`                   // contracts that were looked up again
	Repaired  int64         `json:"repairs"`             // windows that were written again
	Remaining int64         `json:"-"`                   // differences that a repair has left
	Seed      uint64        `json:"seed,omitempty"`      // of the random offsets that were read; 0: none were
	Notes     []string      `json:"-"`                   // what was not compared, and why
	// at least one answer of the source was compared, an empty one included
	Compared bool `json:"-"`
	// a range was chosen, and nothing in it was compared
	Unread bool `json:"-"`
}

// currentPatience is how long the watermark is waited for, so that the active set can be compared at the ledger's end.
const currentPatience = 10 * time.Second

func errUnstarted() error {
	return &ledger.Problem{What: "nothing has been indexed into the database yet, so there is nothing to verify",
		Do: "let the indexer, or a backfill, begin"}
}

// Run compares, and repairs if there is a Repairer. It passes each difference to Found. The result says what was
// compared, also if an error ended the comparison.
func (u *Updates) Run(ctx context.Context) (UpdatesResult, error) {
	u.Source = &inRanges{UpdateSource: u.Source, logger: u.Logger}
	err := u.run(ctx)
	if bounds, _, asked := u.Database.Bounds(ctx); asked == nil && bounds.Watermark < u.result.Bounds.Watermark {
		reset := fmt.Errorf("the database was reset to offset %d while it was verified, and what it lost seemed to be "+
			"missing: verify again", bounds.Watermark)
		err = errors.Join(reset, err)
	}
	return u.result, err
}

func (u *Updates) run(ctx context.Context) error {
	if err := u.ask(ctx); err != nil {
		return err
	}
	u.changes = u.Source.Changes()
	if err := u.checkFork(ctx, maxOffset, false); err != nil {
		return err
	}
	holes, certain, err := u.coverage(ctx)
	if err != nil {
		return err
	}
	bounds, started, err := u.Database.Bounds(ctx)
	if err != nil {
		return err
	}
	if !started {
		return errUnstarted()
	}
	u.result.Bounds = bounds
	if certain {
		if err := u.checkFork(ctx, bounds.Watermark, true); err != nil {
			return err
		}
	}
	for _, hole := range holes {
		hole = u.stillServed("updates that are not covered,", hole)
		if err := u.readRange(ctx, "offsets that are not covered", hole, u.cover); err != nil {
			return err
		}
	}
	if err := u.selected(ctx); err != nil {
		return err
	}
	if u.Selection.All {
		if err := u.carried(ctx); err != nil {
			return err
		}
	}
	if err := u.derived(ctx); err != nil {
		return err
	}
	if u.Selection.All {
		if err := u.lookups(ctx); err != nil {
			return err
		}
	}
	return u.active(ctx)
}

// ask asks the participant which offsets it serves. It reads the watermark first: if that is beyond the ledger's end,
// no daemon has moved it meanwhile.
func (u *Updates) ask(ctx context.Context) error {
	claimed, started, err := u.Database.Bounds(ctx)
	if err != nil {
		u.Logger.WarnContext(ctx, "the recorded floors and watermark can't be read", "error", err)
	}
	served, err := withRetry(ctx, u.Logger, func() (ingest.Served, error) { return ingest.AskServed(ctx, u.Source) })
	u.end, u.pruned = served.End, served.Pruned
	if started && u.end != nil && *u.end < claimed.Watermark {
		u.beyond = u.end
	}
	return err
}

// coverage compares the watermark with the ledger's end, and looks for holes. certain says that the watermark is right
// now.
func (u *Updates) coverage(ctx context.Context) (holes []ledger.Range, certain bool, err error) {
	u.Progress(Progress{Step: "coverage, checkpoint and floors"})
	differences, err := u.compared(ctx, func(found Found) (err error) {
		holes, err = u.Database.CompareCoverage(ctx, u.beyond, found)
		return err
	}, func() error { return u.Repairer.RepairCoverage(ctx, u.beyond) })
	return holes, differences == 0 || u.Repairer != nil, err
}

// compared compares, repairs what differs or is rendered otherwise, and compares again.
func (u *Updates) compared(ctx context.Context, compare func(Found) error,
	repair func() error) (differences int64, err error) {
	rendered := false
	err = compare(func(d findings.Difference) error {
		if d.Rendering == nil {
			differences++
		} else {
			rendered = true
			u.refreshed.add(d.Offset)
		}
		return u.Found(d)
	})
	if err != nil || differences == 0 && !rendered || u.Repairer == nil {
		return differences, err
	}
	return differences, u.repaired(ctx, compare, repair)
}

// repaired repairs what differs, and compares again. Holes in the coverage do not count as left: a later step closes
// them.
func (u *Updates) repaired(ctx context.Context, compare func(Found) error, repair func() error) error {
	if err := repairPatiently(ctx, u.Logger, repair); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	u.result.Repaired++
	return compare(func(d findings.Difference) error {
		if d.Relation == "coverage" && d.Kind == findings.Missing {
			return nil
		}
		return u.countRemaining(ctx, d)
	})
}

func (u *Updates) selected(ctx context.Context) error {
	s, bounds := u.Selection, u.result.Bounds
	if s.From != nil && *s.From > bounds.Watermark || s.To != nil && *s.To < bounds.Floor {
		return &ledger.Problem{
			What: "no updates are stored in the range that is to be read again",
			Do: fmt.Sprintf("choose --from and --to between the history floor, %d, and the watermark, %d", bounds.Floor,
				bounds.Watermark),
		}
	}
	wanted := ledger.Range{From: bounds.Floor, To: bounds.Watermark}
	if u.end != nil {
		wanted.To = min(wanted.To, *u.end)
	}
	if s.From != nil {
		wanted.From = max(wanted.From, *s.From)
	}
	if s.To != nil {
		wanted.To = min(wanted.To, *s.To)
	}
	chosen := s.From != nil || s.To != nil
	if wanted.From >= wanted.To {
		if chosen { // else nothing was left out
			u.note("updates: none are stored after offset %d up to %d", wanted.From, wanted.To)
			u.result.Unread = true
		}
		return nil
	}
	served := u.stillServed("updates", wanted)
	u.result.Unread = chosen && served.From >= served.To
	if !chosen && !s.All && served.From < served.To {
		return u.sample(ctx, served)
	}
	return u.readRange(ctx, "updates", served, nil)
}

// stillServed returns the part of a range that the participant still serves, and adds a note about the rest.
func (u *Updates) stillServed(what string, r ledger.Range) ledger.Range {
	if u.pruned > r.From && r.From < r.To {
		u.note("%s after offset %d up to %d: the participant has pruned them (`verify --offline` compares them with the "+
			"digests of sealed windows)",
			what, r.From, min(u.pruned, r.To))
		r.From = u.pruned
	}
	return r
}

// sample reads pages from random offsets, none of them twice.
func (u *Updates) sample(ctx context.Context, r ledger.Range) error {
	places, err := u.places(ctx, r)
	if err != nil {
		return err
	}
	u.result.Seed = cmp.Or(u.Selection.Seed, rand.Uint64())
	random := rand.New(rand.NewPCG(u.result.Seed, 0))
	var read []ledger.Range
	for i := range u.Selection.Sample {
		u.Progress(Progress{Step: "updates, at random", Done: int64(i), Of: int64(u.Selection.Sample)})
		place := ledger.Range{From: places.pick(random), To: r.To}
		for _, before := range read {
			switch {
			case place.From < before.From:
				place.To = min(place.To, before.From)
			case place.From < before.To:
				place.To = place.From
			}
		}
		if place.From >= place.To {
			continue
		}
		page, err := u.compareWindow(ctx, place)
		if err != nil {
			return err
		}
		read = append(read, ledger.Range{From: page.From, To: page.To})
	}
	return nil
}

// stretches are ranges from which random offsets are picked.
type stretches []ledger.Range

// places returns the stretches of a range.
func (u *Updates) places(ctx context.Context, r ledger.Range) (list stretches, err error) {
	if u.Stretches != nil {
		list, err = withRetry(ctx, u.Logger, func() ([]ledger.Range, error) { return u.Stretches(ctx, r) })
	}
	if len(list) == 0 {
		list = stretches{r}
	}
	return list, err
}

// pick returns a random offset in one of the stretches, all being equally likely.
func (s stretches) pick(random *rand.Rand) ledger.Offset {
	var all ledger.Offset
	for _, r := range s {
		all += r.To - r.From
	}
	at := ledger.Offset(random.Int64N(int64(all)))
	for _, r := range s {
		if at < r.To-r.From {
			return r.From + at
		}
		at -= r.To - r.From
	}
	panic("verify: a random offset lies in one of the ranges")
}

// readRange reads a range again, page by page, and compares it. It calls after, if not nil, with each page.
func (u *Updates) readRange(ctx context.Context, step string, r ledger.Range,
	after func(context.Context, ledger.Page) error) error {
	for at := r.From; at < r.To; {
		u.Progress(Progress{Step: step, Done: int64(at - r.From), Of: int64(r.To - r.From)})
		page, err := u.compareWindow(ctx, ledger.Range{From: at, To: r.To})
		if err == nil && after != nil {
			err = after(ctx, page)
		}
		if err != nil {
			return err
		}
		at = page.To
	}
	return nil
}

// cover writes a page without a coverage row, also if all of its facts are stored.
func (u *Updates) cover(ctx context.Context, page ledger.Page) error {
	if u.Repairer == nil {
		return nil
	}
	return repairPatiently(ctx, u.Logger, func() error { return u.Repairer.RepairUpdates(ctx, u.Scope, page) })
}

// compareWindow reads the beginning of a range again, and compares it.
func (u *Updates) compareWindow(ctx context.Context, r ledger.Range) (page ledger.Page, err error) {
	page, err = withRetry(ctx, u.Logger, func() (ledger.Page, error) { return u.Source.ReadUpdates(ctx, r.From, r.To) })
	if err != nil {
		return page, fmt.Errorf("read the updates after offset %d up to %d: %w", r.From, r.To, err)
	}
	if page.From != r.From || page.To <= r.From || page.To > r.To {
		return page, fmt.Errorf("read the updates after offset %d up to %d: the page covers offsets after %d up to %d",
			r.From, r.To, page.From, page.To)
	}
	if err := u.sameLedger(ctx); err != nil {
		return page, err
	}
	u.result.Compared = true
	u.result.Updates += int64(len(page.Updates))
	_, err = u.compared(ctx, func(found Found) error {
		return u.Database.Compare(ctx, page, found)
	}, func() error { return u.Repairer.RepairUpdates(ctx, u.Scope, page) })
	return page, err
}

// derived compares the tables that follow from the facts. If facts or dictionary rows turn out to be missing or
// altered, it reads their updates again before the repair, and so it does for rows that follow from nothing, where not
// everything was read again. Derived rows without facts may be all that is left of facts that were pruned, here or by
// the participant: then it does not repair.
func (u *Updates) derived(ctx context.Context) error {
	step := func(what string) { u.Progress(Progress{Step: what}) }
	compare := func(found Found) error { return u.Database.CompareDerived(ctx, step, found) }
	var doubtful suspects
	var beyond ledger.Offset // the lowest of the updates beyond the watermark that can't be read again
	pruned, err := u.prunedTo(ctx)
	if err != nil {
		return err
	}
	differences, named, remnants, unread := 0, false, false, false
	err = compare(func(d findings.Difference) error {
		differences++
		if u.Repairer != nil && (u.refreshed.has(d.Offset) || u.refreshed.has(d.Since)) {
			d.Rendering = &findings.Rendering{}
		}
		remnants = remnants || pruned > 0 && remnant(d)
		name := d.Relation == "templates" || d.Relation == "synchronizers" || d.Relation == "party_lists"
		switch {
		case name && d.Kind != findings.Extra, d.Relation == "updates" && d.Kind == findings.Missing:
			named = named || name
			doubtful.add(d.Offset)
		// what it follows from may be lost, and was not read again
		case d.Kind == findings.Extra && remnant(d) && pruned == 0 && !u.Selection.All:
			unread = true
			doubtful.add(d.Offset)
			doubtful.add(d.Since)
		case d.Relation == "updates" && d.Offset > u.result.Bounds.Watermark && d.Offset <= u.pruned &&
			(beyond == 0 || d.Offset < beyond):
			beyond = d.Offset
		}
		return u.Found(d)
	})
	if err != nil || differences == 0 || u.Repairer == nil {
		return err
	}
	if beyond > 0 {
		return &ledger.Problem{
			What: fmt.Sprintf("the update at offset %d is stored although the database claims to hold nothing after offset "+
				"%d, and the participant has pruned its ledger up to offset %d: what is stored there can't be read again, so it "+
				"is not removed", beyond,
				u.result.Bounds.Watermark, u.pruned),
			Do: "restore the checkpoint and the coverage of the updates from a backup of the database, or index into a new " +
				"database",
		}
	}
	if err := u.rereadSuspects(ctx, &doubtful); err != nil {
		return err
	}
	if named && u.Selection.All { // perhaps only a look-up refers to the name
		if err := u.lookups(ctx); err != nil {
			return err
		}
	}
	return u.repaired(ctx, compare, func() error {
		if remnants {
			u.note("what follows from the facts was not repaired: rows of contracts stand without the facts that they follow "+
				"from, which may be lost where they were pruned, up to offset %d (`verify --all` compares what was kept with "+
				"what the participant shows "+
				"there; `verify --offline` names "+
				"damaged windows; restore a backup of the database)", pruned)
			return nil
		}
		if unread && doubtful.more { // a note says so
			return nil
		}
		return u.Repairer.RepairDerived(ctx, step)
	})
}

// prunedTo returns the offset up to which facts that are lost can't be read again, because they were pruned; 0: there
// are none.
func (u *Updates) prunedTo(ctx context.Context) (ledger.Offset, error) {
	begun, err := u.Database.FinishedSnapshot(ctx)
	switch {
	case err != nil:
		return 0, err
	case u.pruned > u.result.Bounds.Floor:
		return u.pruned, nil
	case begun != nil && begun.Pruned && !u.carriedWhole:
		return begun.At, nil
	}
	return 0, nil
}

// remnant reports whether a difference in a derived table may mean that facts are lost.
func remnant(d findings.Difference) bool {
	switch d.Relation {
	case "lifetimes", "active_contracts":
		return d.Kind == findings.Extra
	case "lookups":
		return d.Kind == findings.Missing
	}
	return false
}

func (u *Updates) note(format string, args ...any) {
	u.result.Notes = append(u.result.Notes, fmt.Sprintf(format, args...))
}
