package export

import (
	"context"
	"fmt"
	"slices"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Held says how much of a database the files of an export hold.
type Held struct {
	To  ledger.Offset // the end of a range: the files hold everything that the database shows up to here
	Why string        // why that is less than was asked for, with the file; empty: it is not less
	// Behind says that an export that runs would have written more: of what was asked for and is not exported there is as
	// much as its largest range has.
	Behind bool
	// Change is the number of the newest change (ledger.rewrites). As long as nothing up to To changes after that, no
	// export removes the files.
	Change int64
}

// Holds says how far an export reaches, range by range up to an offset, 0 being as far as something stays in the
// database. It believes the manifests, and looks whether their files are there with the bytes that they say
// ([Export.Check] reads them). A range that goes on behind the offset is left out: of one that was pruned in part no
// export could write again what changes in the rest. Errors are a *ledger.Problem if an export could not continue
// there, a range has changed since, or a file is missing. A database that can't be pruned yet returns an empty Held.
func Holds(ctx context.Context, database *store.Store, place Place, ofNetwork bool,
	upTo ledger.Offset) (held Held, err error) {
	c := catalog{place: place}
	if err := c.load(ctx); err != nil {
		return held, err
	}
	if err := c.refuseOtherKind(ofNetwork); err != nil {
		return held, err
	}
	err = database.Export(ctx, func(snapshot *store.ExportSnapshot) error {
		state, err := snapshot.State(ctx)
		if err != nil || !state.Started {
			return err
		}
		if held, err = reachOf(ctx, snapshot, &c, state, upTo); err != nil {
			return err
		}
		return c.lackNoRelation(ctx, snapshot, held.To)
	})
	return held, err
}

// lackNoRelation refuses a manifest of something up to an offset that names no file of a relation.
func (c *catalog) lackNoRelation(ctx context.Context, snapshot *store.ExportSnapshot, upTo ledger.Offset) error {
	relations, err := snapshot.Relations(ctx)
	if err != nil {
		return err
	}
	for n := range c.done {
		for _, relation := range relations {
			if c.done[n].From >= upTo || relation.Computed {
				continue
			}
			if _, err := c.done[n].file(relation.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func reachOf(ctx context.Context, snapshot *store.ExportSnapshot, c *catalog, state store.ExportState,
	upTo ledger.Offset) (held Held, err error) {
	end := "there is more of it than was asked for"
	if upTo == 0 {
		upTo, end = state.Watermark-1, "something has to stay"
	}
	outdated, gap, err := plan(c.place.String(), c.done, state, upTo)
	if err != nil {
		return held, err
	}
	held = Held{To: min(gap.From, upTo), Change: newest(state).Number}
	if n := slices.IndexFunc(outdated, func(m Manifest) bool { return m.From < upTo }); n >= 0 {
		return held, &ledger.Problem{
			What: fmt.Sprintf("the updates of %s in %s were %s after they had been exported", outdated[n].Name(), c.place,
				changedSince(&outdated[n], state).Reason),
			Do: "run `indexer export`, which writes them again, and prune then",
		}
	}
	if held.To < upTo {
		held.Why = fmt.Sprintf("no manifest in %s has what is after offset %d", c.place, held.To)
		full, err := snapshot.Cut(ctx, held.To, upTo, c.largestRange())
		if err != nil {
			return held, err
		}
		held.Behind = full > 0
	}
	for n := range c.done {
		if m := &c.done[n]; m.From < held.To && m.To > held.To {
			held.To, held.Why = m.From, fmt.Sprintf("%s in %s goes up to offset %d: a range is pruned as a whole, and %s",
				m.Name(), c.place, m.To, end)
		}
	}
	return held, nil
}

// largestRange returns the number of updates in the range that has the most; 1 where there is no range.
func (c *catalog) largestRange() int64 {
	most := int64(1)
	for n := range c.done {
		if file, err := c.done[n].file("updates"); err == nil {
			most = max(most, file.Rows)
		}
	}
	return most
}
