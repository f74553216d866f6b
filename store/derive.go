package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// arguments are those of what the projections follow from: facts count after activated_after up to the watermark, and of what
// ended up to the base nothing is said. Filled history counts where it is known what was active at the base: then it is where
// that came from. History that is filled in asks for no look-ups until it reaches to the beginning of the ledger.
//
// A lifetime is compared if it ended after judged_after, and if it began after replayed_to. Lifetimes that ended up to the base are
// being worked out, if there are any; and as long as it is not known what was active at the base, those too that began before it.
func (a *agreement) arguments() pgx.NamedArgs {
	args := pgx.NamedArgs{"floor": a.floor, "base": a.base, "watermark": a.watermark, "activated_after": a.base, "judged_after": -1, "replayed_to": -1}
	if a.stateFloor != nil {
		args["activated_after"] = a.floor
	}
	if a.replaying {
		args["judged_after"] = a.base
		if a.stateFloor == nil {
			args["replayed_to"] = a.base
		}
	}
	return args
}

// replacedSQL is true of a carried row s whose place an event has taken that was filled in.
const replacedSQL = "s.ledger_offset <= @base AND " + coveredS

// strays are rows s of a table that should not be there, as a condition with the agreement's arguments.
type strays struct {
	table tables.Table
	where string
}

// nowhere are facts outside of coverage, and carried rows where no snapshot is carried or an event has taken their place.
func (a *agreement) nowhere() (list []strays) {
	for _, table := range tables.In(tables.Facts) {
		list = append(list, strays{table, "s.ledger_offset <= @floor AND NOT " + coveredS}, strays{table, "s.ledger_offset > @watermark AND NOT " + coveredS})
	}
	for _, table := range tables.In(tables.Snapshot) {
		switch {
		case !a.snapshot:
			list = append(list, strays{table, "true"})
		case table.SnapshotOffset != "":
			list = append(list, strays{table, replacedSQL})
		}
	}
	return list
}

// orphans are exact values without the row that they are of.
func (a *agreement) orphans() (list []strays) {
	for _, table := range tables.All() {
		if table.Orphan != "" && (a.snapshot || table.Family != tables.Snapshot) {
			list = append(list, strays{table, table.Orphan})
		}
	}
	return list
}

// wantLookups asks for the contracts whose creation is nowhere and that nobody asked for, of events after the base.
func (l *Leader) wantLookups(ctx context.Context, tx pgx.Tx, base, watermark int64) error {
	err := l.store.queries.LookupsWant(ctx, tx, dbsqlc.LookupsWantParams{FromExclusive: base, ToInclusive: watermark})
	if err != nil {
		return fmt.Errorf("ask for contracts whose creation is nowhere: %w", err)
	}
	return nil
}
