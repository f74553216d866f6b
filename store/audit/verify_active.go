package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// active compares the active set with a snapshot. The active set follows from the facts, so a difference comes from
// facts that were not read again: a repair reads these.
func (u *Updates) active(ctx context.Context) error {
	switch {
	case u.result.StateFloor == nil:
		u.Note("the active set: it is not known, because indexing began at offset %d without a snapshot",
			u.result.HistoryFloor)
		return nil
	case !u.Scope.Reassignments:
		u.Note("the active set: reassignments are not read (--no-reassignments), so contracts that moved to another " +
			"synchronizer are not known")
		return nil
	}
	newest, seldom, err := u.newestSnapshot(ctx)
	switch {
	case errors.Is(err, ledger.ErrNotOffered):
		u.Note("the active set: %v", err)
		return nil
	case err != nil:
		return err
	case seldom && !u.Selection.All:
		u.Note("the active set: its source's snapshot at offset %d takes a request for each contract; --all reads it", newest)
		return nil
	}
	at, first := newest, (*ledger.SnapshotPage)(nil)
	if !seldom {
		if at, first, err = u.beginActive(ctx); err != nil {
			return err
		}
	}
	switch {
	case at < u.pruned:
		u.Note("the active set at offset %d: the participant has pruned it", at)
		return nil
	case at < *u.result.StateFloor:
		u.Note("the active set: the newest snapshot is at offset %d, before offset %d, from where the active set is known",
			at, *u.result.StateFloor)
		return nil
	}
	u.result.ActiveAt = at
	var doubtful suspects
	differs := false
	err = u.compareActive(ctx, at, first, func(d Difference) {
		differs = true
		doubtful.add(d.Offset)
		u.Found(d)
	})
	if err != nil || !differs || u.Repairer == nil {
		return err
	}
	if err := u.rereadSuspects(ctx, &doubtful); err != nil {
		return err
	}
	if err := u.derived(ctx); err != nil {
		return err
	}
	if u.Selection.All && u.Left == 0 {
		if err := u.takeIn(ctx, at); err != nil {
			return err
		}
	}
	before := u.Left
	err = u.compareActive(ctx, at, nil, u.remains)
	if u.Left > before && !u.Selection.All {
		u.Note("what made the active set differ lies in updates that were not read again: run `indexer verify --all " +
			"--repair`")
	}
	return err
}

// mostTakenIn bounds what one repair takes in, which is in memory meanwhile: another one takes in the rest.
const mostTakenIn = 50_000

// takenIn is what a repair takes in, of what differs in the active set.
type takenIn struct {
	missing []ledger.ContractEntry
	gone    []EntryKey
}

// missingOf returns what collects those of a page's entries that are not active here.
func (t *takenIn) missingOf(entries []ledger.ContractEntry) Found {
	byRow := make(map[string]*ledger.ContractEntry, len(entries))
	for i := range entries {
		if a := entries[i].Active; a != nil {
			byRow[activeRow(a.Created.ContractID, a.SynchronizerID)] = &entries[i]
		}
	}
	return func(d Difference) {
		e := byRow[d.Row]
		if e != nil && d.Kind == Missing && slices.Contains(ofActiveSet, d.Relation) && len(t.missing) < mostTakenIn {
			t.missing = append(t.missing, *e)
		}
	}
}

func (t *takenIn) extra(key EntryKey, _ Difference) {
	if len(t.gone) < mostTakenIn {
		t.gone = append(t.gone, key)
	}
}

// takeIn takes in what the participant shows as active as of an offset, and ends what it does not show, although all
// updates were read again and say otherwise: it may have come, or gone, without an update.
func (u *Updates) takeIn(ctx context.Context, at ledger.Offset) error {
	var taken takenIn
	err := u.walkActive(ctx, at, nil, taken.missingOf, taken.extra)
	if err != nil || len(taken.missing)+len(taken.gone) == 0 {
		return err
	}
	u.Note("contracts that begin or end at offset %d because the participant shows otherwise there than its updates say: "+
		"%d and %d", at, len(taken.missing), len(taken.gone))
	if max(len(taken.missing), len(taken.gone)) == mostTakenIn {
		u.Note("the rest of such contracts: one repair takes in, and ends, %d at most: run `indexer verify --all --repair` "+
			"again", mostTakenIn)
	}
	return u.repair(ctx, func() error { return u.Repairer.TakeIn(ctx, u.Scope, at, taken.missing, taken.gone) })
}

// currentPatience is how long the watermark is waited for, so that the active set can be compared at the ledger's end.
const currentPatience = 10 * time.Second

// mostEnds is how often the ledger's end is asked for before the active set is compared at the watermark instead.
const mostEnds = 10

// newestSnapshot returns the offset of the newest snapshot that can be compared. seldom: the source has snapshots at
// few offsets; else it has one at every offset.
func (u *Updates) newestSnapshot(ctx context.Context) (at ledger.Offset, seldom bool, err error) {
	upTo := u.result.Watermark
	if u.end != nil {
		upTo = min(upTo, *u.end)
	}
	at, err = withRetry(ctx, u.Logger, func() (ledger.Offset, error) { return u.Source.SnapshotOffset(ctx, upTo) })
	return at, at != upTo, err
}

// beginActive chooses the offset at which the active set is compared: the ledger's end if the watermark reaches it,
// because some participants serve a snapshot with reassignments in flight only there; else the watermark. The ledger's
// end may move soon, so beginActive reads the first page there at once, and then waits for the watermark. It returns
// the page too.
func (u *Updates) beginActive(ctx context.Context) (at ledger.Offset, first *ledger.SnapshotPage, err error) {
	refused := ledger.Offset(-1)
	for try := 0; u.end != nil && try < mostEnds; try++ {
		end, err := withRetry(ctx, u.Logger, func() (ledger.Offset, error) { return u.Source.LedgerEnd(ctx) })
		if err != nil {
			return 0, nil, err
		}
		if end == refused {
			break
		}
		page, err := u.snapshotPage(ctx, end, ledger.Token{})
		if ingest.Lasting(err) { // perhaps this is not the end any more
			refused = end
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		at, err := u.reached(ctx, end)
		if err != nil {
			return 0, nil, err
		}
		if at == end {
			return end, &page, nil
		}
		return at, nil, nil
	}
	watermark, _, err := u.Database.Watermark(ctx)
	return watermark, nil, err
}

// reached waits until the watermark reaches an offset, and returns the offset; or the watermark, if it does not get
// there, or nobody moves it.
func (u *Updates) reached(ctx context.Context, at ledger.Offset) (ledger.Offset, error) {
	deadline := time.Now().Add(currentPatience)
	for {
		watermark, _, err := u.Database.Watermark(ctx)
		switch {
		case err != nil:
			return 0, err
		case watermark >= at:
			return at, nil
		case time.Now().After(deadline):
			return watermark, nil
		}
		if leads, err := u.Database.Leadership(ctx, store.LeaseUpdates); err != nil || !leads.Leads {
			return watermark, err
		}
		if ingest.Sleep(ctx, currentPatience/50); ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}
