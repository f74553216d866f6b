package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/tables"
)

// basis is the part of the updates from which the projections follow.
type basis struct {
	bounds.Extent
	snapshot bool // one lies at the floor
}

func (s *Stored) basis(ctx context.Context, tx pgx.Tx) (*basis, error) {
	extent, err := bounds.Read(ctx, s.db, tx)
	if err != nil || !extent.Started {
		return &basis{}, err
	}
	snapshot, err := s.db.Queries.HeldSnapshot(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read whether there is a snapshot: %w", err)
	}
	return &basis{extent, snapshot}, nil
}

// arguments returns the arguments of the functions that the projections follow from. They use the facts after the
// floor up to the watermark, and return nothing that ended up to the floor.
func (h *basis) arguments() pgx.NamedArgs {
	return pgx.NamedArgs{"floor": int64(h.HistoryFloor), "watermark": int64(h.Watermark)}
}

// strays are rows s of a table that should not be there, as a condition with the arguments of basis.
type strays struct {
	table tables.Table
	where string
}

// nowhere returns what chooses facts outside of coverage, but for entries of a snapshot, and what a resync took in
// beyond the watermark.
func (h *basis) nowhere() (list []strays) {
	for _, table := range tables.In(tables.Facts, tables.Resynced) {
		if !h.snapshot || table.Family == tables.Facts && table.Snapshot == nil {
			list = append(list, strays{table, "s.ledger_offset <= @floor"})
		}
		beyond := "s.ledger_offset > @watermark"
		if table.Family == tables.Facts {
			beyond += " AND NOT " + bounds.CoveredS
		}
		list = append(list, strays{table, beyond})
	}
	return list
}
