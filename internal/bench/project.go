package bench

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// project lets the store derive the projections from the rows that psql wrote, as it does for stored facts, and returns the
// time it took.
func (l *limit) project(ctx context.Context, shape ledger.Shape, from int64) (u usage, err error) {
	to, err := queryOne[int64](ctx, l.db, "SELECT max(to_inclusive) FROM indexer.coverage")
	if err != nil {
		return u, err
	}
	if err := l.db.exec(ctx, fmt.Sprintf("UPDATE indexer.checkpoints_both c SET ledger_offset = %[1]d, digest = indexer.changed_digest(c, '{\"ledger_offset\": %[1]d}') WHERE stream = 'updates'", from)); err != nil {
		return u, err
	}
	s, err := store.Open(store.Config{URL: l.db.url(), Holder: "bench"})
	if err != nil {
		return u, err
	}
	defer s.Close()
	leader, ok, err := s.LeadUpdates(ctx)
	if err != nil {
		return u, err
	}
	if !ok {
		return u, errors.New("the database has another leader")
	}
	defer leader.Close()
	scope := ledger.Scope{Shape: shape, Reassignments: true, Topology: true}
	u, err = l.db.measured(func() error { return leader.Project(ctx, scope, ledger.Offset(from), ledger.Offset(to)) })
	if err != nil {
		return u, err
	}
	_, err = l.db.holds(ctx, l.derived)
	return u, err
}
