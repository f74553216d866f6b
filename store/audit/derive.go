package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/tables"
)

// basis is the part of the updates from which the projections follow.
type basis struct {
	held.Extent
	snapshot  bool // one is carried, of the base
	replaying bool // lifetimes from before the base are being computed
}

func (s *Stored) basis(ctx context.Context, tx pgx.Tx) (*basis, error) {
	extent, err := held.Read(ctx, s.db, tx)
	if err != nil || !extent.Started {
		return &basis{}, err
	}
	row, err := s.db.Queries.HeldBesides(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read whether a snapshot is carried, and how far history was filled in: %w", err)
	}
	return &basis{extent, row.Snapshot, row.Replaying}, nil
}

// arguments returns the arguments of the functions that the projections follow from. They use the facts after
// activated_after up to the watermark, and return nothing that ended up to the base. Filled-in history counts if the
// active set at the base is known, because that came from it. It asks for no look-ups until it reaches the beginning of
// the ledger.
//
// A lifetime is compared if it ended after judged_after and began after replayed_to. Others are still being computed:
// those that ended up to the base and, as long as the active set at the base is not known, those that began before it.
func (h *basis) arguments() pgx.NamedArgs {
	args := pgx.NamedArgs{
		"floor": int64(h.HistoryFloor), "base": int64(h.ProjectedFrom), "watermark": int64(h.Watermark),
		"activated_after": int64(h.ProjectedFrom), "judged_after": int64(-1), "replayed_to": int64(-1),
	}
	if h.StateFloor != nil {
		args["activated_after"] = int64(h.HistoryFloor)
	}
	if h.replaying {
		args["judged_after"] = int64(h.ProjectedFrom)
		if h.StateFloor == nil {
			args["replayed_to"] = int64(h.ProjectedFrom)
		}
	}
	return args
}

// replacedSQL is true of a carried row s whose place an event has taken that was filled in.
const replacedSQL = "s.ledger_offset <= @base AND " + held.CoveredS

// strays are rows s of a table that should not be there, as a condition with the arguments of basis.
type strays struct {
	table tables.Table
	where string
}

// nowhere returns what chooses facts outside of coverage, and carried rows where no snapshot is carried or an event has
// taken their place.
func (h *basis) nowhere() (list []strays) {
	for _, table := range tables.In(tables.Facts) {
		list = append(list, strays{table, "s.ledger_offset <= @floor AND NOT " + held.CoveredS},
			strays{table, "s.ledger_offset > @watermark AND NOT " + held.CoveredS})
	}
	for _, table := range tables.In(tables.Snapshot) {
		switch {
		case !h.snapshot:
			list = append(list, strays{table, "true"})
		case table.SnapshotOffset != "":
			list = append(list, strays{table, replacedSQL})
		}
	}
	return list
}
