package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// project has the store derive, from the rows that psql wrote, what follows from them: what is active, and what was. It is
// done as the store does it over rows that it finds stored. It gives how long that took.
func (l *limit) project(ctx context.Context, shape ledger.Shape, from int64) (took time.Duration, err error) {
	to, err := queryOne[int64](ctx, l.db, "SELECT max(to_inclusive) FROM indexer.coverage")
	if err != nil {
		return 0, err
	}
	if err := l.db.exec(ctx, fmt.Sprintf("UPDATE indexer.checkpoints SET ledger_offset = %d WHERE stream = 'updates'", from)); err != nil {
		return 0, err
	}
	s, err := store.Open(store.Config{URL: l.db.url(), Holder: "bench"})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	leader, ok, err := s.Lead(ctx, store.RoleUpdates)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, errors.New("the database has another leader")
	}
	defer leader.Close()
	scope := ledger.Scope{Shape: shape, Reassignments: true, Topology: true}
	began := time.Now()
	if err := leader.Project(ctx, scope, ledger.Offset(from), ledger.Offset(to)); err != nil {
		return 0, err
	}
	took = time.Since(began)
	_, err = l.db.holds(ctx, l.derived)
	return took, err
}
