package audit

import (
	"context"
	"fmt"

	"ledgerindexer/ledger"
)

// derivedDifferences is what the tables that follow from the facts have otherwise.
type derivedDifferences struct {
	found    bool
	doubtful suspects      // updates that are read again before a repair
	names    bool          // names, or lists of parties, are missing or altered
	remnants bool          // rows stand without facts that may have been pruned
	unread   bool          // rows stand without facts that may be lost, and that were not read again
	beyond   ledger.Offset // the lowest of the updates beyond the watermark that can't be read again; 0: none
}

// derived compares the tables that follow from the facts. Before a repair it reads updates again whose facts or names
// are missing or altered, and those of rows that follow from no fact, where not everything was read again. It does not
// repair derived rows whose facts may have been pruned, here or by the participant.
func (u *Updates) derived(ctx context.Context) error {
	compare := func(found Found) error { return u.Database.CompareDerived(ctx, u.begin, found) }
	pruned, err := u.prunedTo(ctx)
	if err != nil {
		return err
	}
	var is derivedDifferences
	err = compare(func(d Difference) {
		if u.Repairer != nil && (u.refreshed.has(d.Offset) || u.refreshed.has(d.Since)) {
			d.Rendering = &Rendering{}
		}
		u.sort(d, pruned > 0, &is)
		u.Found(d)
	})
	if err != nil || !is.found || u.Repairer == nil {
		return err
	}
	if is.beyond > 0 {
		return &ledger.Problem{
			What: fmt.Sprintf("the update at offset %d is stored although the database claims to hold nothing after offset "+
				"%d, and the participant has pruned its ledger up to offset %d: what is stored there can't be read again, so it "+
				"is not removed", is.beyond, u.result.Watermark, u.pruned),
			Do: "restore the checkpoint and the coverage of the updates from a backup of the database, or index into a new " +
				"database",
		}
	}
	if err := u.rereadSuspects(ctx, &is.doubtful); err != nil {
		return err
	}
	if is.names && u.Selection.All { // perhaps only a look-up refers to the name
		if err := u.lookups(ctx); err != nil {
			return err
		}
	}
	return u.repaired(ctx, compare, func() error {
		switch {
		case is.remnants: // which may be all that is left of facts that were pruned
			u.Note("what follows from the facts was not repaired: rows of contracts stand without the facts that they follow "+
				"from, which may be lost where they were pruned, up to offset %d (`verify --all` compares what was kept with "+
				"what the participant shows there; `verify --offline` names damaged windows; restore a backup of the database)",
				pruned)
			return nil
		case is.unread && is.doubtful.more: // not all that rows may follow from was read again, as a note says
			return nil
		}
		return u.Repairer.RepairDerived(ctx, u.begin)
	})
}

// sort sorts a difference by what a repair has to do about it. pruned is true if facts that are lost can't be read
// again.
func (u *Updates) sort(d Difference, pruned bool, is *derivedDifferences) {
	is.found = true
	is.remnants = is.remnants || pruned && remnant(d)
	name := d.Relation == "templates" || d.Relation == "synchronizers" || d.Relation == "party_lists"
	switch {
	case name && d.Kind != Extra, d.Relation == "updates" && d.Kind == Missing:
		is.names = is.names || name
		is.doubtful.add(d.Offset)
	// what it follows from may be lost, and was not read again
	case d.Kind == Extra && remnant(d) && !pruned && !u.Selection.All:
		is.unread = true
		is.doubtful.add(d.Offset)
		is.doubtful.add(d.Since)
	case d.Relation == "updates" && d.Offset > u.result.Watermark && d.Offset <= u.pruned &&
		(is.beyond == 0 || d.Offset < is.beyond):
		is.beyond = d.Offset
	}
}

// prunedTo returns the offset up to which facts that are lost can't be read again, because they were pruned; 0: there
// are none.
func (u *Updates) prunedTo(ctx context.Context) (ledger.Offset, error) {
	begun, err := u.Database.FinishedSnapshot(ctx)
	switch {
	case err != nil:
		return 0, err
	case u.pruned > u.result.HistoryFloor:
		return u.pruned, nil
	case begun != nil && begun.Pruned && !u.carriedWhole:
		return begun.At, nil
	}
	return 0, nil
}

// remnant reports whether a difference in a derived table may mean that facts are lost.
func remnant(d Difference) bool {
	switch d.Relation {
	case "lifetimes", "active_contracts":
		return d.Kind == Extra
	case "lookups":
		return d.Kind == Missing
	}
	return false
}

// rereadSuspects reads the updates at suspect offsets again, between history floor and watermark, as far as the
// participant still serves them. For offsets at or below the floor it compares the carried snapshot.
func (u *Updates) rereadSuspects(ctx context.Context, s *suspects) error {
	carried := false
	for _, r := range s.ranges() {
		carried = carried || r.From < u.result.HistoryFloor
		r.From = max(r.From, u.result.HistoryFloor, u.pruned)
		r.To = min(r.To, u.result.Watermark)
		if err := u.readRange(ctx, "updates that are suspect", r, false); err != nil {
			return err
		}
	}
	if s.more {
		u.Note("updates at more than %d offsets that are suspect: run `indexer verify --all --repair`", mostDoubtful)
	}
	if carried {
		return u.carried(ctx)
	}
	return nil
}
