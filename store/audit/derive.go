package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/tables"
)

// projectionBase is the part of the updates from which the projections follow.
type projectionBase struct {
	bounds.Extent
	snapshot bool // one lies at the floor
}

func (s *Stored) projectionBase(ctx context.Context, tx pgx.Tx) (*projectionBase, error) {
	extent, err := bounds.Read(ctx, s.db, tx)
	if err != nil || !extent.Started {
		return &projectionBase{}, err
	}
	snapshot, err := s.db.Queries.HeldSnapshot(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read whether there is a snapshot: %w", err)
	}
	return &projectionBase{extent, snapshot}, nil
}

// arguments returns the arguments of the functions that the projections follow from. They use the facts after the
// floor up to the watermark, and return nothing that ended up to the floor.
func (b *projectionBase) arguments() pgx.NamedArgs {
	return pgx.NamedArgs{"floor": int64(b.HistoryFloor), "watermark": int64(b.Watermark)}
}

// chosenRows are rows s of a table, chosen by a condition with the arguments of projectionBase.
type chosenRows struct {
	table tables.Table
	where string
}

// outOfCoverage chooses facts outside of coverage, but for entries of a snapshot, and what a resync took in beyond the
// watermark.
func (b *projectionBase) outOfCoverage() (list []chosenRows) {
	for _, table := range tables.In(tables.Facts, tables.Resynced) {
		if !b.snapshot || table.Family == tables.Facts && table.Snapshot == nil {
			list = append(list, chosenRows{table, "s.ledger_offset <= @floor"})
		}
		beyond := "s.ledger_offset > @watermark"
		if table.Family == tables.Facts {
			beyond += " AND NOT " + bounds.CoveredS
		}
		list = append(list, chosenRows{table, beyond})
	}
	return list
}
