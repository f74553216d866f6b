package bench

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// project lets the store derive the projections from the rows that psql wrote, as it does for stored facts, and returns
// the time it took.
func (l *limit) project(ctx context.Context, from int64) (u usage, err error) {
	to, err := queryOne[int64](ctx, l.db, "SELECT max(to_inclusive) FROM "+l.db.pair.Tables+".coverage")
	if err != nil {
		return u, err
	}
	if err := l.db.exec(ctx, fmt.Sprintf("UPDATE %s.checkpoints SET ledger_offset = %d WHERE stream = 'updates'",
		l.db.pair.Tables, from)); err != nil {
		return u, err
	}
	s, err := store.Open(config.StoreOf(l.db.url(), l.db.pair, nil))
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
	scope, _, err := s.Scope(ctx)
	if err != nil {
		return u, err
	}
	u, err = l.db.measured(func() error {
		return leader.MoveWatermark(ctx, scope, ledger.Offset(from),
			ledger.Offset(to))
	})
	if err != nil {
		return u, err
	}
	_, err = l.db.holds(ctx, l.derived)
	return u, err
}
